"""Logs that inspect-ai 0.3.285 wrote; from one of them the events were taken away, which nobody reads here."""

from __future__ import annotations

import json
import shutil
import zipfile
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.judging import inspect_log, record_from_inspect
from guarantee_email_agent.judging.inspect_log import find_inspect_samples, single_sample
from guarantee_email_agent.judging.record_files import RecordIndex
from guarantee_email_agent.utils.errors import TaskError

TRANSCRIPTS = Path(__file__).parent / "transcripts"
ANSWER = "The warranty of SN12345 is valid until 2027-05-31. Grüße – 日本"
SAMPLE = {"id": "größe", "epoch": 1, "messages": [{"role": "assistant", "content": "42"}], "output": None}


def answers(index: RecordIndex) -> dict[str, list[object]]:
    return {name: [place.read()["task_result"] for place in index.places(name)] for name in index.task_names}


def write_archive(path: Path, members: dict[str, object], method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as archive:
        for name, content in members.items():
            archive.writestr(name, json.dumps(content))
    return path


class TestArchive:
    def test_each_epoch_of_each_sample_is_a_record(self) -> None:
        pytest.importorskip("backports.zstd", reason="backports-zstd is not installed: uv sync --group ci")
        index = find_inspect_samples(TRANSCRIPTS / "inspect_zstandard.eval")
        assert answers(index) == {
            "valid_number": [ANSWER, ANSWER],
            "unknown_number": ["SN99999 is not in our records."] * 2,
        }
        [record, _] = [place.read() for place in index.places("valid_number")]
        assert (record["status"], record["iterations"]) == ("success", 2)
        [entry] = record["execution_trace"]
        assert entry["action"] == {"serial_number": "SN12345", "action_type": "check_warranty"}
        assert "2027-05-31" in entry["feedback"]["message"]

    @pytest.mark.parametrize("method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
    def test_of_older_versions(self, tmp_path: Path, method: int) -> None:
        path = write_archive(tmp_path / "log.eval", {"header.json": {}, "samples/a_epoch_1.json": SAMPLE}, method)
        assert answers(find_inspect_samples(path)) == {"a": ["42"]}
        assert single_sample(path).read()["task_result"] == "42"

    def test_a_method_that_is_unknown_here(self, tmp_path: Path) -> None:
        path = write_archive(tmp_path / "log.eval", {"samples/a_epoch_1.json": SAMPLE}, zipfile.ZIP_DEFLATED)
        path.write_bytes(path.read_bytes().replace(b"\x14\x00\x00\x00\x08\x00", b"\x14\x00\x00\x00\x62\x00"))
        with pytest.raises(TaskError, match=r"a_epoch_1.json: cannot be decompressed .* inspect log convert"):
            single_sample(path).read()

    def test_a_damaged_sample_costs_no_other(self, tmp_path: Path) -> None:
        path = write_archive(tmp_path / "l.eval", {f"samples/{n}_epoch_1.json": SAMPLE for n in "ab"}, 0)
        path.write_bytes(path.read_bytes().replace(b'"42"', b'"43"', 1))
        index = find_inspect_samples(tmp_path)
        [damaged], [whole] = index.places("a"), index.places("b")
        assert whole.read()["task_result"] == "42"
        with pytest.raises(TaskError, match=r"a_epoch_1.json: the sample is damaged \(Bad CRC-32"):
            damaged.read()

    def test_a_sample_that_unpacks_to_more_than_is_read(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(inspect_log, "MAX_RECORD_BYTES", 1_000_000)
        large = {**SAMPLE, "store": "x" * 2_000_000}
        path = write_archive(tmp_path / "log.eval", {"samples/a_epoch_1.json": large})
        with pytest.raises(TaskError, match="the sample has more than 1,000,000 bytes"):
            single_sample(path).read()

    def test_a_log_that_is_still_written(self, tmp_path: Path) -> None:
        content = (TRANSCRIPTS / "inspect_zstandard.eval").read_bytes()
        (tmp_path / "log.eval").write_bytes(content[:-100])
        [problem] = find_inspect_samples(tmp_path).problems.values()
        assert "log.eval: this is no whole log of Inspect" in problem


class TestJsonLog:
    def test_a_run_that_was_cut_off_has_no_answer(self) -> None:
        record = single_sample(TRANSCRIPTS / "inspect_limited.json").read()
        assert (record["task_result"], record["status"]) == ("", "failed")
        assert record["reason"] == {"code": "inspect_limit", "message": "message"}

    def test_names_and_numbers_of_samples(self, tmp_path: Path) -> None:
        samples: list[Any] = [SAMPLE, {**SAMPLE, "id": 7}, {**SAMPLE, "epoch": 2}]
        for ascii_only, mark in ((True, b""), (False, b"\xef\xbb\xbf")):
            log = json.dumps({"version": 2, "samples": samples, "z": [{}]}, ensure_ascii=ascii_only, indent=1)
            (tmp_path / "log.json").write_bytes(mark + log.encode())
            assert answers(find_inspect_samples(tmp_path)) == {"größe": ["42", "42"], "7": ["42"]}

    @pytest.mark.parametrize("content", ["", "[]", '{"samples": [', '{"samples": [{"id": 1}', "[" * 99_999, '{"a": 1'])
    def test_what_is_no_log(self, tmp_path: Path, content: str) -> None:
        (tmp_path / "log.json").write_text(content)
        shutil.copy(TRANSCRIPTS / "inspect_limited.json", tmp_path)
        index = find_inspect_samples(tmp_path)
        assert index.count_of("valid_number") == 1
        (problem,) = index.problems.values()
        assert problem.startswith(f"{tmp_path}/log.json: this is no whole log of Inspect. Pass the .json or .eval file")

    @pytest.mark.parametrize(
        ("name", "said"),
        [("absent.json", "does not exist"), ("absent.eval", "does not exist"), ("notes.txt", "Name one")],
    )
    def test_a_place_without_logs(self, tmp_path: Path, name: str, said: str) -> None:
        (tmp_path / "notes.txt").touch()
        with pytest.raises(TaskError, match=said) as caught:
            find_inspect_samples(tmp_path / name)
        assert caught.value.code == "task_results_not_found"

    @pytest.mark.parametrize("ending", ["json", "eval"])
    def test_a_single_log_that_is_not_there(self, tmp_path: Path, ending: str) -> None:
        with pytest.raises(TaskError, match="No such file"):
            single_sample(tmp_path / f"absent.{ending}").read()

    def test_several_samples_are_no_single_record(self, tmp_path: Path) -> None:
        (tmp_path / "log.json").write_text(json.dumps({"samples": [SAMPLE, SAMPLE]}))
        with pytest.raises(TaskError, match=r"the log has 2 samples. Grade them with --results"):
            single_sample(tmp_path / "log.json").read()


class TestSample:
    def test_an_error(self) -> None:
        record = record_from_inspect({**SAMPLE, "error": {"message": "boom", "traceback": "…"}})
        assert (record["status"], record["reason"]) == ("failed", {"code": "inspect_error", "message": "boom"})

    def test_an_output_that_is_in_no_message_and_an_attachment(self) -> None:
        sample = {
            "messages": [{"role": "user", "content": "attachment://ab"}],
            "output": {"completion": "42"},
            "attachments": {"ab": "6 × 7?"},
            "metadata": {"task_result": "43"},
        }
        record = record_from_inspect(sample)
        assert (record["task_result"], record["status"]) == ("42", "success")
        assert record["conversation"] == [{"role": "user", "content": "6 × 7?"}]

    def test_a_tool_that_failed(self) -> None:
        call = {"id": "1", "function": "look", "arguments": {"at": 1}, "type": "function"}
        error = {"type": "timeout", "message": "too slow"}
        messages = [
            {"role": "assistant", "content": "", "tool_calls": [call]},
            {"role": "tool", "content": "", "tool_call_id": "1", "error": error},
        ]
        [entry] = record_from_inspect({"messages": messages})["execution_trace"]
        assert entry["feedback"] == {"done": False, "message": "too slow", "error": True}

    @pytest.mark.parametrize(
        ("sample", "said"),
        [
            ({}, "the sample has no 'messages'"),
            (None, "the sample is null"),
            ({"messages": []}, "the transcript has no messages"),
            ({"messages": [{"content": "x"}]}, "message 1 has no role"),
        ],
    )
    def test_what_is_none(self, sample: object, said: str) -> None:
        with pytest.raises(TaskError, match=said):
            record_from_inspect(sample)
