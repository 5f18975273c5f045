from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tasks_and_sandboxes import MakeTask, complete, read_json

from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.judging.verdict import Verdict
from guarantee_email_agent.solving.agents.agent import Step
from guarantee_email_agent.solving.run_limits import RunLimits
from guarantee_email_agent.solving.run_recorder import EarlierRun, OutputFiles, RunRecorder, earlier_run
from guarantee_email_agent.solving.tools import ToolCall, ToolResult


@pytest.fixture
def task(make_task: MakeTask) -> Task:
    return make_task()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "sum.json"


@pytest.fixture
def recorder(task: Task, file: Path) -> RunRecorder:
    return RunRecorder(file, task, "llm", RunLimits(), "2026-01-18T10:00:00Z")


def test_arguments_that_json_does_not_know_are_written_as_text(recorder: RunRecorder, file: Path) -> None:
    recorder.add_step(Step("half a pair: \udc80", (ToolCall("1", "note", {"path": Path("/a"), "text": "\udc80"}),)))
    message = read_json(file)["conversation"][0]
    assert json.loads(message["tool_calls"][0]["function"]["arguments"]) == {"path": "/a", "text": "\udc80"}


def test_verdict_comes_back_as_it_was_kept(recorder: RunRecorder, file: Path, task: Task) -> None:
    recorder.finish(None)
    recorder.before_judging()
    verdict = Verdict("failed", "why", {"score": 0.5}, None, "printed", 3.5)
    recorder.add_verdict(verdict)
    assert earlier_run(file, task) == EarlierRun(verdict)


def test_conversation_of_a_program_has_the_call_before_its_result(recorder: RunRecorder, file: Path) -> None:
    call = complete()
    recorder.start([{"role": "user", "content": "Add."}], {})
    report = {"conversation": [{"role": "user", "content": "40 + 2?"}], "status": "failed", "notes": "mine"}
    recorder.add_step(Step(calls=(call,), record=report))
    recorder.add_result(ToolResult(call, "42", done=True), {"action_type": "task_complete", "result": "42"}, 0.0)
    record = read_json(file)
    assert [message["role"] for message in record["conversation"]] == ["user", "assistant", "tool"]
    assert record["conversation"][0]["content"] == "40 + 2?"
    assert record["conversation"][1]["tool_calls"][0]["id"] == record["conversation"][2]["tool_call_id"]
    assert record["notes"] == "mine"


def test_a_long_output_is_shortened_in_the_record_and_whole_beside_it(recorder: RunRecorder, file: Path) -> None:
    call = ToolCall("1", "shell_execute", {"command": "seq"})
    recorder.begin()
    recorder.add_result(ToolResult(call, "short"), {}, 0.0)
    recorder.add_result(ToolResult(call, "1 [… left out …] 9", whole="123456789"), {}, 0.0)
    short, long = (step["feedback"] for step in read_json(file)["execution_trace"])
    assert "output_file" not in short
    assert (long["message"], long["output_characters"]) == ("1 [… left out …] 9", 9)
    assert (file.parent / long["output_file"]).read_text() == "123456789"
    recorder.begin()
    assert not (file.parent / "sum.outputs").exists()


def test_program_that_names_its_status_does_not_pass_for_done_if_its_run_is_cut_short(
    recorder: RunRecorder, file: Path
) -> None:
    recorder.add_step(Step(calls=(complete(),), record={"status": "success", "finished": True, "reason": None}))
    record = read_json(file)
    assert (record["status"], record["finished"], record["reason"]["code"]) == ("failed", False, "interrupted")


LONG = "ä" * 40_000


@pytest.fixture
def outputs(tmp_path: Path) -> OutputFiles:
    return OutputFiles(tmp_path / "sum.json")


def test_an_output_is_whole_in_the_file_that_is_named(outputs: OutputFiles, tmp_path: Path) -> None:
    assert outputs.keep(7, LONG) == {"output_file": "sum.outputs/0007.txt", "output_characters": 40_000}
    assert (tmp_path / "sum.outputs" / "0007.txt").read_text(encoding="utf-8") == LONG


def test_nothing_is_made_where_nothing_is_kept(outputs: OutputFiles, tmp_path: Path) -> None:
    outputs.remove()
    assert list(tmp_path.iterdir()) == []


def test_half_a_character_is_written_as_its_escape(outputs: OutputFiles, tmp_path: Path) -> None:
    outputs.keep(1, "a\udc80b")
    assert (tmp_path / "sum.outputs" / "0001.txt").read_text() == "a\\udc80b"


def test_the_outputs_of_a_run_have_a_limit_together(tmp_path: Path) -> None:
    outputs = OutputFiles(tmp_path / "sum.json", max_bytes=100_000)
    assert outputs.keep(1, LONG)["output_file"] is not None
    lost = outputs.keep(2, LONG)
    assert (lost["output_file"], lost["output_characters"]) == (None, 40_000)
    assert lost["output_lost"] == "the outputs of this run take more than 100,000 bytes"
    assert outputs.keep(3, "x" * 20_000)["output_file"] == "sum.outputs/0003.txt"
    assert sorted(path.name for path in (tmp_path / "sum.outputs").iterdir()) == ["0001.txt", "0003.txt"]


def test_those_of_an_earlier_run_are_removed(outputs: OutputFiles, tmp_path: Path) -> None:
    outputs.keep(1, LONG)
    outputs.keep(2, LONG)
    OutputFiles(tmp_path / "sum.json").remove()
    assert not (tmp_path / "sum.outputs").exists()


def test_what_is_not_of_a_run_stays(outputs: OutputFiles, tmp_path: Path) -> None:
    folder = tmp_path / "sum.outputs"  # a task may have this name, where records lie among the tasks
    (folder / "assets").mkdir(parents=True)
    (folder / "test.py").write_text("mine")
    outputs.keep(1, LONG)
    outputs.remove()
    assert sorted(path.name for path in folder.iterdir()) == ["assets", "test.py"]


def test_a_name_that_is_too_long_costs_the_output_alone(tmp_path: Path) -> None:
    lost = OutputFiles(tmp_path / f"{'x' * 250}.json").keep(1, LONG)
    assert lost["output_lost"] == "it cannot be written (File name too long)"


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (lambda folder, _: folder.write_text("mine"), "Not a directory"),
        (lambda folder, mine: folder.symlink_to(mine.parent), "Not a directory"),
        (lambda folder, mine: (folder.mkdir(), (folder / "0001.txt").symlink_to(mine)), "File exists"),
        (lambda folder, _: (folder.mkdir(), os.mkfifo(folder / "0001.txt")), "File exists"),
    ],
    ids=["file", "link", "link within", "pipe within"],
)
def test_what_stands_in_the_place_of_an_output_is_neither_followed_nor_waited_for(
    outputs: OutputFiles, tmp_path: Path, make: Callable[[Path, Path], object], why: str
) -> None:
    folder, mine = tmp_path / "sum.outputs", tmp_path / "elsewhere" / "mine.txt"
    mine.parent.mkdir()
    mine.write_text("mine")
    make(folder, mine)
    lost = outputs.keep(1, LONG)
    assert (lost["output_file"], lost["output_lost"]) == (None, f"it cannot be written ({why})")
    outputs.remove()
    assert (mine.read_text(), os.listdir(mine.parent)) == ("mine", ["mine.txt"])
    # Nothing stays but what is no output.
    assert not os.path.lexists(folder) or (folder.is_file() and folder.read_text() == "mine")
