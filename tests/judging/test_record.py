import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.judging.record import check_record_file, complete_record, read_record, write_record
from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.utils.errors import TaskError

KEYS = [
    "task_name",
    "instruction",
    "status",
    "iterations",
    "task_result",
    "conversation",
    "execution_trace",
    "sandbox",
]  # fmt: skip
ODD = {"task_result": 42, "conversation": "none", "sandbox": [1], "iterations": "many"}


def make_task(**settings: Any) -> Task:
    return Task("six", Path("tasks/six"), "What is six times seven?", settings, Path("tasks/six/test.py"))


class TestCompletion:
    @pytest.mark.parametrize(
        ("raw", "status"),
        [
            ({}, "failed"),
            ({"task_result": None}, "failed"),
            ({"task_result": ""}, "success"),
            ({"task_result": "42"}, "success"),
            ({"conversation": [{"role": "assistant", "content": "42"}]}, "success"),
            ({"conversation": []}, "failed"),
            ({"task_result": "42", "status": "failed"}, "failed"),
            ({"task_result": "42", "status": "out of time"}, "out of time"),
        ],
    )
    def test_the_status_of_a_record_without_one(self, raw: Mapping[str, Any], status: str) -> None:
        assert complete_record(raw, make_task())["status"] == status

    @pytest.mark.parametrize(
        ("raw", "settings", "expected"),
        [
            ({"task_name": "valid_001", "instruction": "Hi"}, {}, {"task_name": "valid_001", "instruction": "Hi"}),
            (ODD, {}, ODD),
            ({"model": "m", "tokens": None}, {}, {"model": "m", "tokens": None}),
            ({}, {"level": 3}, {"level": 3}),
            ({"wanted": "41"}, {"wanted": "42"}, {"wanted": "42"}),
            (
                {},
                {"task_result": "42", "status": "success", "sandbox": {"network": True}},
                {"task_result": "", "status": "failed", "sandbox": {}},
            ),
        ],
        ids=["own-task", "odd-values", "further-keys", "task-keys", "task-keys-win", "run-keys-win"],
    )
    def test_what_the_run_and_its_task_say(
        self, raw: Mapping[str, Any], settings: dict[str, Any], expected: Mapping[str, Any]
    ) -> None:
        assert complete_record(raw, make_task(**settings)).items() >= expected.items()

    @given(st.dictionaries(st.sampled_from([*KEYS, "eval", "model"]), st.none() | st.text() | st.lists(st.integers())))
    def test_always_has_every_key_and_no_null_in_them(self, raw: dict[str, Any]) -> None:
        record = complete_record(raw, make_task())
        assert [key for key in record if key in KEYS] == KEYS
        assert all(record[key] is not None for key in KEYS)


class TestFiles:
    def test_what_was_written_is_read(self, tmp_path: Path) -> None:
        record = {"task_result": "日本 🎉 \x1b \udcff \u2028", "sandbox": {"docker_port": 8080}, "tokens": [1.5, None]}
        write_record(tmp_path / "six.json", record)
        assert read_record(tmp_path / "six.json") == record

    def test_nothing_else_is_left_beside_it(self, tmp_path: Path) -> None:
        write_record(tmp_path / "six.json", {"task_result": "x" * 100_000})
        write_record(tmp_path / "six.json", {"task_result": "42"})
        assert os.listdir(tmp_path) == ["six.json"]
        assert read_record(tmp_path / "six.json") == {"task_result": "42"}

    @pytest.mark.parametrize(
        ("content", "code", "message"),
        [
            (b"", "task_record_invalid", "The text is empty"),
            (b"{'task_result': 42}", "task_record_invalid", "no JSON (line 1, column 2)"),
            (b"[]", "task_record_invalid", "not a list"),
            (b'{"messages": [{"role": "user"}]}', "task_record_invalid", "with --from openai or langchain"),
            (b'{"taskResult": 42}', "task_record_invalid", "has 'taskResult' and no task_result. Call it"),
            (b"null", "task_record_invalid", "not null"),
            (b"42", "task_record_invalid", "not 42"),
            (b"[" * 100_000, "task_record_invalid", "nested too deep"),
            (b'{"n": ' + b"9" * 5_000 + b"}", "task_record_invalid", "a number that is too long"),
            (b'{"a": 1, "b": [{"task_result": 1, "x": 2, "task_result": 1}]}', "task_record_invalid",
             'has the key "task_result" twice in one object'),
            (b'{"' + b"k" * 1000 + b'": 1, "' + b"k" * 1000 + b'": 2}', "task_record_invalid", "twice in one object"),
            (b'{"a": "\xff"}', "task_record_not_utf8", "is not UTF-8 text"),
            (None, "task_record_not_found", "the file does not exist. Correct the path"),
        ],
    )  # fmt: skip
    def test_a_file_that_holds_no_record(self, tmp_path: Path, content: bytes | None, code: str, message: str) -> None:
        path = tmp_path / "six.json"
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(TaskError) as caught:
            read_record(path)
        assert (caught.value.code, caught.value.exit_code) == (code, 2)
        assert message in caught.value.message
        assert caught.value.message.startswith(f"{path}: ")
        assert len(caught.value.message.splitlines()) == 1

    @pytest.mark.parametrize("value", [{(1, 2): 3}, 10**5000], ids=["key", "number"])
    def test_what_json_cannot_hold_leaves_the_former_record(self, tmp_path: Path, value: Any) -> None:
        write_record(tmp_path / "six.json", {"task_result": "42"})
        with pytest.raises(TaskError, match="the record cannot be written as JSON") as caught:
            write_record(tmp_path / "six.json", {"task_result": value})
        assert caught.value.code == "task_record_unwritable"
        assert read_record(tmp_path / "six.json") == {"task_result": "42"}

    @pytest.mark.parametrize(
        ("make", "what"),
        [
            (lambda path: path.symlink_to("target.json"), "a link"),
            (lambda path: path.symlink_to("absent.json"), "a link"),
            (os.mkfifo, "a pipe"),
            (Path.mkdir, "a folder"),
        ],
    )
    def test_what_is_no_file_stays(self, tmp_path: Path, make: Callable[[Path], object], what: str) -> None:
        (tmp_path / "target.json").write_text("mine")
        make(tmp_path / "six.json")
        for write in (lambda path: write_record(path, {}), check_record_file):
            with pytest.raises(TaskError, match=rf"the record cannot be written \(there is {what} in its place\)"):
                write(tmp_path / "six.json")
        assert (tmp_path / "target.json").read_text() == "mine"
        assert sorted(os.listdir(tmp_path)) == ["six.json", "target.json"]

    @pytest.mark.parametrize(
        ("make", "what"), [(os.mkfifo, "a pipe"), (lambda p: p.symlink_to("/dev/zero"), "a device")]
    )
    def test_a_pipe_or_a_device_is_not_waited_for(
        self, tmp_path: Path, make: Callable[[Path], object], what: str
    ) -> None:
        make(tmp_path / "six.json")
        with pytest.raises(TaskError, match=f"this is {what}, not a file"):
            read_record(tmp_path / "six.json")

    def test_a_folder_that_is_not_there(self, tmp_path: Path) -> None:
        with pytest.raises(TaskError, match="the record cannot be written") as caught:
            write_record(tmp_path / "absent" / "six.json", {})
        assert caught.value.code == "task_record_unwritable"
