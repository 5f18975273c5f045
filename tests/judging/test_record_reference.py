"""What a kept verdict says of the record that it is about, while that stands and afterwards."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.judging.record_files import Extent, RecordPlace, SingleRecordFile, find_records
from guarantee_email_agent.judging.record_reference import converter, refer_to, with_record
from guarantee_email_agent.runlog.records import CaseResult

TRANSCRIPTS = Path(__file__).parent / "transcripts"
RECORD = {
    "instruction": "Count them.",
    "task_result": "42",
    "conversation": [{"role": "user", "content": "Count them."}, {"role": "assistant", "content": "42"}],
    "execution_trace": [{"action": {"action_type": "shell", "command": "ls"}, "feedback": {"message": "a b"}}],
}


def single(file: Path, form: str = "") -> RecordPlace:
    return RecordPlace(SingleRecordFile(file, "count", converter(form)), Extent())


def kept(place: RecordPlace, form: str = "") -> CaseResult:
    """As it comes out of a run store."""
    reference = refer_to(place, form)
    trace = json.loads(json.dumps({"record": reference._asdict()}))
    return CaseResult("six", 1, "passed", trace=trace, judgement={"verdict": "passed"})


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "count.json"
    path.write_text(json.dumps(RECORD))
    return path


def test_what_the_agent_did_is_read_from_its_record(file: Path) -> None:
    shown = with_record(kept(single(file)))
    assert (shown.request, shown.response) == ("Count them.", "42")
    assert shown.trace["conversation"] == RECORD["conversation"]
    assert shown.trace["execution_trace"] == RECORD["execution_trace"]
    assert shown.trace["record"]["file"] == str(file)
    assert shown.judgement == {"verdict": "passed"}


def test_another_verdict_on_the_same_work_changes_nothing(file: Path) -> None:
    before = kept(single(file))
    file.write_text(json.dumps({**RECORD, "eval": {"passed": True}, "digests": {"judge": "1"}}, indent=4))
    assert with_record(before).response == "42"


def test_other_work_is_not_shown_for_what_was_judged(file: Path) -> None:
    before = kept(single(file))
    assert with_record(before).response == "42"
    file.write_text(json.dumps({**RECORD, "task_result": "41"}))
    shown = with_record(before)
    assert (shown.request, shown.response) == (None, None)
    assert shown.trace["problem"] == f"{file} was changed since, so that it is not shown"


def test_a_record_that_has_gone_is_said_to_have(file: Path) -> None:
    before = kept(single(file))
    file.unlink()
    assert with_record(before).trace["problem"] == f"{file} is not there any more"


@pytest.mark.parametrize("content", ["", "[]", '{"task_result": ', "[" * 100_000, "\udcff"])
def test_what_stands_in_its_place_and_is_no_record_is_one_line(file: Path, content: str) -> None:
    before = kept(single(file))
    file.write_text(content, errors="surrogateescape")
    problem = with_record(before).trace["problem"]
    assert str(file) in problem
    assert "\n" not in problem


def test_a_line_of_many_is_found_again_where_others_follow(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    lines = [{"task_name": "count", "task_result": str(number)} for number in range(3)]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    places = list(find_records(path, ["count"]).places("count"))
    before = [kept(place) for place in places]
    with open(path, "a") as more:
        more.write('{"task_name": "count", "task_result": "later"}\n')
    assert [with_record(each).response for each in before] == ["0", "1", "2"]
    path.write_text("".join(f"{json.dumps(line)}\n" for line in reversed(lines)))
    assert [with_record(each).response for each in before] == [None, "1", None]


@pytest.mark.parametrize(("name", "form"), [("openai_agents.json", "openai"), ("langgraph.json", "langchain")])
def test_a_transcript_of_another_program_is_read_as_it_was(tmp_path: Path, name: str, form: str) -> None:
    found = sorted(TRANSCRIPTS.glob(f"{form}*.json"))
    path = tmp_path / name
    shutil.copy(found[0], path)
    place = single(path, form)
    assert with_record(kept(place, form)).trace["conversation"] == place.read()["conversation"]


@pytest.mark.parametrize(
    "trace",
    [
        None,
        [],
        {},
        {"record": None},
        {"record": {"file": "/etc/passwd"}},
        {"record": {"file": 1, "number": "", "start": 0, "length": 0, "form": "", "sha256": ""}},
        {"conversation": [], "execution_trace": []},
    ],
)
def test_a_result_without_a_record_stays_as_it_is(trace: Any) -> None:
    transcript = CaseResult("six", 1, "passed", trace=trace)
    assert with_record(transcript) == transcript


def test_a_reference_that_somebody_made_up_shows_nothing(tmp_path: Path) -> None:
    (tmp_path / "secret.json").write_text('{"task_result": "secret"}')
    values = {"number": 0, "start": 0, "length": 0, "form": "", "sha256": "00"}
    for file in (str(tmp_path / "secret.json"), "\0", "/dev/zero"):
        shown = with_record(CaseResult("six", 1, "passed", trace={"record": {"file": file, **values}}))
        assert (shown.request, shown.response) == (None, None)
        assert shown.trace["problem"]


def test_a_record_that_cannot_be_read_has_no_reference(tmp_path: Path) -> None:
    (tmp_path / "count.json").write_text("[]")
    assert refer_to(single(tmp_path / "count.json"), "") is None
    assert refer_to(single(tmp_path / "absent.json"), "") is None
