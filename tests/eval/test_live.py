"""`eval --llm live` and `record`: the real SDK, an event loop, and a server on loopback that speaks `/v1/messages`."""

import asyncio
import json
import shlex
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from messages_server import INTERPRETED, MessagesServer, answer, error_reply, text, tool_call
from scenario_folder import TEMPLATES, ScenarioFolder
from shipped_instructions import InstructionFolder

from guarantee_email_agent import evaluate as evaluate_from_python
from guarantee_email_agent import evaluate_async
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import InstructionSettings
from guarantee_email_agent.eval.case_result import as_model_usage
from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.llm.usage import ModelUsage
from guarantee_email_agent.runlog.records import Usage
from guarantee_email_agent.utils.errors import ConfigurationError

FAILING_WARRANTY_SYSTEM = "valid_warranty_056"
"""Expects no reply and no scenario, which is also what comes of a mail without a model."""


class LiveSuite(ScenarioFolder):
    """valid_warranty_001 and whatever a test takes, evaluated with a model behind the server."""

    def __init__(self, folder: Path, server: MessagesServer) -> None:
        config = load_config(cwd=TEMPLATES, environ={"ANTHROPIC_API_KEY": "test-key", "ANTHROPIC_BASE_URL": server.url})
        super().__init__(folder / "scenarios", replace(config, source=None))
        self.recordings = folder / "recordings"
        self.server = server
        self.take("valid_warranty_001")

    def write_many(self, count: int) -> None:
        for number in range(1, count + 1):
            self.write(number)

    def configure(self, **llm: Any) -> None:
        self.config = replace(self.config, llm=replace(self.config.llm, **llm))

    def set_key(self, key: str | None) -> None:
        self.config = replace(self.config, secrets=replace(self.config.secrets, anthropic_api_key=key))

    def evaluate(self, llm: str = "live", **options: Any) -> tuple[int, str]:
        return super().evaluate(llm=llm, **options)

    def results(self, llm: str, **options: Any) -> list[dict[str, Any]]:
        return self.timeless_report(llm=llm, **options)["results"]

    def recorded(self) -> dict[str, bytes]:
        files = (path for path in self.recordings.rglob("*") if path.is_file())
        return {str(path.relative_to(self.recordings)): path.read_bytes() for path in files}


@pytest.fixture(autouse=True)
def _one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each call, so that requests can be counted as calls."""
    monkeypatch.setattr("guarantee_email_agent.llm.api_client.MAX_ATTEMPTS", 1)


@pytest.fixture
def suite(tmp_path: Path, server: MessagesServer) -> LiveSuite:
    return LiveSuite(tmp_path, server)


def test_scenarios_are_answered_by_the_api_and_by_mocks_of_all_else(suite: LiveSuite) -> None:
    suite.take("missing_info_001")
    code, printed = suite.evaluate()
    assert code == 0
    assert "Pass rate: 2/2 (100%)" in printed
    assert suite.server.tools_asked_for == ["record_triage", "choose_sentences"] * 2
    assert not suite.recordings.exists()


def test_summary_and_report_tell_who_answered_and_what_it_cost(suite: LiveSuite) -> None:
    told = suite.evaluate()[1].splitlines()[-1]
    assert told == "claude-sonnet-4-6: 2 answers, 44 tokens sent, 10 received, $0.0002"
    report = suite.report(llm="live")
    assert (report["llm"], report["model"]) == ("live", "claude-sonnet-4-6")
    assert report["tokens"] == {"input": 24, "output": 10, "cache_read": 14, "cache_write": 6}
    assert report["cost_usd"] == pytest.approx((24 * 3 + 10 * 15 + 14 * 0.3 + 6 * 3.75) / 1_000_000, abs=1e-6)


def test_tokens_are_no_figure_where_an_answer_does_not_say_them(suite: LiveSuite) -> None:
    suite.take("valid_warranty_002")
    suite.server.replies = [
        answer(tool_call("record_triage", {"topic": "other", "serial_numbers": []}), usage=None),
        INTERPRETED,
    ]
    report = suite.report(llm="live")
    assert (report["tokens"], report["cost_usd"]) == (None, None)
    taken_over = as_model_usage(Usage(**ModelUsage(2, TokenUsage(5, uncounted=1), None, 9).as_dict()))
    assert taken_over == ModelUsage(2, TokenUsage(uncounted=1), None, 9)


def test_results_come_in_order_and_no_more_are_under_way_than_jobs(suite: LiveSuite) -> None:
    suite.write_many(20)
    one_by_one = suite.results("live", jobs=1)
    assert suite.server.most_at_once == 1
    assert suite.results("live", jobs=4) == one_by_one
    assert 1 <= suite.server.most_at_once <= 4


def test_the_api_failing_is_a_failed_scenario_with_its_reason_alone(suite: LiveSuite) -> None:
    suite.take("valid_warranty_002")
    suite.server.replies = [error_reply(500), INTERPRETED]

    code, printed = suite.evaluate()

    assert code == 4
    assert printed.splitlines()[2:4] == [
        "✗ valid_warranty_001: Customer with valid warranty requests status check - FAILED",
        "    agent: stopped in step triage: The model API answered HTTP 500: It went wrong. Try again later",
    ]
    assert "✓ valid_warranty_002" in printed


def test_an_api_that_is_down_is_not_asked_for_every_scenario(suite: LiveSuite) -> None:
    suite.write_many(19)
    suite.configure(when_down="template")
    suite.server.replies = [error_reply(500)]
    results = suite.results("live")
    assert [result["passed"] for result in results] == [False] * 19
    assert "The language model is down" in results[-1]["failures"][0]
    assert len(suite.server.requests) == 5


def test_waiting_that_the_api_asks_for_is_real_and_no_time_of_the_scenario(suite: LiveSuite) -> None:
    suite.server.replies = [error_reply(429, retry_after="1"), INTERPRETED]
    report = suite.report(llm="live")
    (result,) = report["results"]
    assert result["passed"]
    assert report["duration_s"] >= 1
    assert result["processing_time_ms"] <= 1000 * (report["duration_s"] - 1) + 100  # which is rounded
    assert result["actual_output"]["processing_time_ms"] == result["processing_time_ms"]


def test_records_for_a_judge_hold_the_live_conversation(suite: LiveSuite, tmp_path: Path) -> None:
    (tmp_path / "records").mkdir()
    suite.evaluate(records_dir=tmp_path / "records")
    record = json.loads((tmp_path / "records" / "valid_warranty_001.json").read_bytes())
    assert record["iterations"] == 2
    calls = [call["function"]["name"] for said in record["conversation"] for call in said.get("tool_calls", ())]
    assert calls == ["record_triage", "choose_sentences"]


def test_a_failure_is_told_as_it_happens_without_a_word_of_the_mail(
    suite: LiveSuite, capsys: pytest.CaptureFixture[str]
) -> None:
    suite.take("valid_warranty_002")
    suite.server.replies = [error_reply(500, "My name is Canary"), INTERPRETED]
    printed = suite.evaluate()[1]
    assert capsys.readouterr().err == "✗ valid_warranty_001: agent\n"
    assert printed.index("✓ valid_warranty_002") < printed.index("✗ valid_warranty_001")


def test_no_scenario_is_begun_that_could_pass_the_cost_limit(suite: LiveSuite) -> None:
    suite.write_many(8)
    one = suite.report(llm="live", only=("valid_warranty_001",))["cost_usd"]
    suite.server.requests.clear()

    code, printed = suite.evaluate(jobs=4, max_cost_usd=one * 3.5)

    assert code == 4
    assert len(suite.server.requests) == 6
    assert (
        "Stopped: 3 of 8 scenarios ran, the gate is not decided: $0.0007 is paid, and the next one (up to "
        f"$0.0002) could pass --max-cost {one * 3.5:g}" in printed
    )
    assert "passed!" not in printed


def test_the_report_of_a_run_that_was_stopped_has_not_passed(suite: LiveSuite) -> None:
    suite.take("valid_warranty_002")
    report = suite.report(llm="live", max_cost_usd=0.000001)
    assert (report["gate"], report["interrupted"], report["totals"]["total"]) == ("failed", True, 1)


def test_a_cost_limit_needs_a_price(suite: LiveSuite) -> None:
    suite.configure(model="local-model")
    with pytest.raises(ConfigurationError, match="--max-cost: the price of local-model is not known"):
        suite.evaluate(max_cost_usd=1.0)
    assert suite.server.requests == []


@pytest.mark.parametrize(
    "odd", [{"model": "x"}, {"usage": None}, {"usage": {"input_tokens": -1, "output_tokens": "5"}}]
)
def test_a_cost_that_gets_unknown_ends_a_run_with_a_limit(suite: LiveSuite, odd: dict[str, Any]) -> None:
    suite.take("valid_warranty_002")
    suite.server.replies = [answer(tool_call("record_triage", {"topic": "other", "serial_numbers": []}), **odd)]
    code, printed = suite.evaluate(max_cost_usd=1.0)
    assert code == 4
    assert "Stopped: 1 of 2 scenarios ran" in printed
    assert "what the model costs is no longer known" in printed
    assert printed.splitlines()[-1].endswith(", cost not known")


@pytest.mark.parametrize(
    ("at_most", "failed"),
    [
        ({"calls": 3, "tokens": 54, "usd": 0.01}, []),
        ({"tokens": 53, "usd": 0.00001}, ["at_most.tokens", "at_most.usd"]),
    ],
)
def test_what_a_scenario_may_take_of_the_model_also_from_a_recording(
    suite: LiveSuite, at_most: dict[str, float], failed: list[str]
) -> None:
    suite.write(1, lambda text: f"{text}at_most: {json.dumps(at_most)}\n")
    for llm in ("record", "replay"):
        (result,) = suite.results(llm)
        assert [failure.partition(":")[0] for failure in result["failures"]] == failed


def test_every_exchange_is_kept_in_a_folder_for_each_scenario(suite: LiveSuite) -> None:
    suite.take("missing_info_001", "no_reply_001")

    assert suite.evaluate("record")[0] == 0

    names = sorted(name.rpartition("-")[0] for name in suite.recorded())
    assert names == [
        "missing_info_001/run01-01-triage",
        "missing_info_001/run01-02-choice",
        "valid_warranty_001/run01-01-triage",
        "valid_warranty_001/run01-02-choice",
    ]


def test_recording_twice_gives_the_same_files_without_the_key(suite: LiveSuite) -> None:
    suite.take("missing_info_001")
    suite.set_key("sk-very-secret")
    suite.evaluate("record")
    assert suite.server.headers[0]["authorization"] == "Bearer sk-very-secret"
    first = suite.recorded()
    assert first
    assert not [name for name, content in first.items() if b"very-secret" in content]
    suite.evaluate("record", jobs=4)
    assert suite.recorded() == first


def test_a_scenario_without_an_answer_keeps_what_was_recorded_before(suite: LiveSuite) -> None:
    suite.take("valid_warranty_002")
    suite.evaluate("record")
    first = suite.recorded()
    suite.configure(max_tokens=999)
    suite.server.replies = [INTERPRETED, error_reply(500), INTERPRETED]  # the choice of the first one

    assert suite.evaluate("record")[0] == 4

    second = suite.recorded()
    assert {name for name in second if second[name] == first.get(name)} == {
        name for name in first if name.startswith("valid_warranty_001/")
    }
    assert len(second) == len(first)


def test_what_the_model_does_wrong_is_recorded_as_it_is(suite: LiveSuite) -> None:
    suite.server.replies = [answer(text("It is about a warranty."), stop_reason="end_turn"), INTERPRETED]
    suite.evaluate("record")
    kinds = [name.split("-")[2] for name in sorted(suite.recorded())]
    assert kinds == ["triage", "triage", "choice"]
    suite.server.replies = [error_reply(500)]
    assert suite.evaluate("replay")[0] == 0


def test_recordings_that_cannot_be_written_are_told_before_the_api_is_asked(suite: LiveSuite) -> None:
    suite.recordings.write_text("a file stands in the way")
    with pytest.raises(ConfigurationError, match=r"the folder for recordings cannot be written to \(it is no folder\)"):
        suite.evaluate("record")
    assert suite.server.requests == []


def test_a_recording_that_cannot_be_written_fails_its_scenario(suite: LiveSuite) -> None:
    suite.take("valid_warranty_002")
    suite.recordings.mkdir()
    (suite.recordings / "valid_warranty_001").write_text("a file stands in the way")
    (first, second) = suite.results("record")
    assert first["failures"][0].startswith("recording: ")
    assert "cannot be written" in first["failures"][0]
    assert second["passed"]


def test_a_replay_gives_the_same_results_without_the_api(suite: LiveSuite) -> None:
    suite.take("missing_info_001", "no_reply_001", FAILING_WARRANTY_SYSTEM)
    recorded = suite.results("record")
    asked = len(suite.server.requests)
    suite.set_key(None)
    assert suite.results("replay") == recorded
    assert suite.results("replay", jobs=2) == recorded
    assert len(suite.server.requests) == asked
    report = suite.report(llm="replay")
    assert (report["llm"], report["model"]) == ("replay", "claude-sonnet-4-6")
    assert (report["tokens"]["input"], report["cost_usd"]) == (0, 0.0)


@pytest.mark.parametrize(
    ("make", "problem"),
    [
        (lambda _: None, r"does not exist: nothing is recorded of this suite\. Record it first"),
        (lambda folder: (folder / "valid_warranty_001").mkdir(parents=True), "holds no recording: nothing is recorded"),
        (lambda folder: folder.write_text("in the way"), "recordings is no folder: nothing is recorded of this suite"),
    ],
    ids=["absent", "empty", "file"],
)
def test_a_replay_of_what_was_never_recorded_is_an_error(
    suite: LiveSuite, make: Callable[[Path], object], problem: str
) -> None:
    make(suite.recordings)
    with pytest.raises(ConfigurationError, match=problem):
        suite.evaluate("replay")


def test_a_miss_tells_a_command_that_a_shell_takes(suite: LiveSuite, tmp_path: Path) -> None:
    suite.folder = suite.folder.rename(tmp_path / "my scenarios")
    suite.evaluate("record")
    source = tmp_path / "it's mine.yaml"
    suite.config = replace(suite.config, llm=replace(suite.config.llm, max_tokens=999), source=source)

    (result,) = suite.results("replay")

    command = result["failures"][0].partition("Record it anew: ")[2]
    assert shlex.split(command) == [
        *("eval", "--llm", "record", "--config", str(source), "--eval-dir", str(suite.folder)),
        *("--only", "valid_warranty_001"),
    ]


def test_each_repetition_has_a_recording_of_its_own(suite: LiveSuite) -> None:
    choice = answer(tool_call("choose_sentences", {"ids": ["sorry-it-fails"]}))
    suite.server.replies = [INTERPRETED, INTERPRETED, INTERPRETED, choice]
    assert suite.evaluate("record", repeat=2)[0] == 0

    files = sorted(suite.recorded())
    assert [name.partition("/")[2][:8] for name in files] == ["run01-01", "run01-02", "run02-01", "run02-02"]
    assert suite.evaluate("replay", repeat=2)[0] == 0
    assert suite.evaluate("replay")[0] == 0
    code, printed = suite.evaluate("replay", repeat=3)
    assert code == 4
    assert "run 3 of 3: agent: stopped in step triage: The triage request of valid_warranty_001, run 3" in printed
    command = f"eval --llm record --eval-dir {suite.folder} --repeat 3 --only valid_warranty_001"
    assert f"Record it anew: {command}\n" in printed


def test_an_edited_instruction_is_a_miss_that_is_named(suite: LiveSuite, folder: InstructionFolder) -> None:
    suite.take("missing_info_001")
    suite.config = replace(suite.config, instructions=InstructionSettings(folder.main, folder.scenarios))
    suite.evaluate("record")
    folder.replace_all(folder.scenario("missing-info"), "a form field", "a field")

    code, printed = suite.evaluate("replay")

    assert code == 4
    assert "✓ valid_warranty_001" in printed
    failure = printed.splitlines()[3]
    assert failure.startswith(
        "    agent: stopped in step draft: The choice request of missing_info_001, run 1, is not recorded: "
        "the scenario's instruction (now '"
    )
    assert failure.endswith(f". Record it anew: eval --llm record --eval-dir {suite.folder} --only missing_info_001")


def test_no_answer_of_the_model_is_a_failure_even_where_no_reply_is_expected(suite: LiveSuite) -> None:
    suite.take(FAILING_WARRANTY_SYSTEM)
    suite.evaluate("record")
    shutil.rmtree(suite.recordings / FAILING_WARRANTY_SYSTEM)
    (result,) = suite.results("replay", only=(FAILING_WARRANTY_SYSTEM,))
    assert not result["passed"]
    assert "nor is any other of this kind" in result["failures"][0]
    suite.server.replies = [error_reply(503)]
    (result,) = suite.results("live", only=(FAILING_WARRANTY_SYSTEM,))
    assert not result["passed"]
    assert len(result["failures"]) == 1
    assert "HTTP 503" in result["failures"][0]


class TestFromPython:
    def test_a_live_model_answers_and_its_recording_again(self, suite: LiveSuite) -> None:
        live = evaluate_from_python(suite.folder, config=suite.config, llm="live", jobs=2, repeat=2)
        asked = len(suite.server.requests)
        assert (live.passed, asked > 0) == (True, True)
        assert live.results[0].case is not None
        assert live.results[0].case.shown.usage.calls > 0
        with pytest.raises(ConfigurationError, match="nothing is recorded of this suite"):
            evaluate_from_python(suite.folder, config=suite.config, llm="replay")
        assert evaluate_from_python(suite.folder, config=suite.config, llm="record").passed
        suite.server.requests.clear()
        suite.set_key(None)
        replayed = evaluate_from_python(suite.folder / "valid_warranty_001.yaml", config=suite.config, llm="replay")
        assert (replayed.passed, suite.server.requests) == (True, [])

    def test_within_an_event_loop(self, suite: LiveSuite) -> None:
        live = asyncio.run(evaluate_async(suite.folder, config=suite.config, llm="live"))
        assert (live.passed, len(suite.server.requests) > 0) == (True, True)

    def test_what_makes_no_sense_is_told_before_anything_is_asked(self, suite: LiveSuite) -> None:
        with pytest.raises(ConfigurationError, match="llm='replay' needs a folder or a file"):
            evaluate_from_python([], config=suite.config, llm="replay")
        suite.set_key(None)
        with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY"):
            evaluate_from_python(suite.folder, config=suite.config, llm="live")
        assert suite.server.requests == []
