import os
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from tasks_and_sandboxes import write_task

from guarantee_email_agent.judging.task import MAX_TASK_BYTES, InvalidTask, Task, discover_tasks, load_task
from guarantee_email_agent.utils.errors import TaskError


def make_socket(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(os.fspath(path))


def refusal(folder: Path) -> TaskError:
    with pytest.raises(TaskError) as caught:
        load_task(folder)
    return caught.value


@contextmanager
def as_a_plain_user() -> Iterator[None]:
    """Root may read everything, so it is somebody else for a moment."""
    ours = os.geteuid()
    os.seteuid(ours or 65534)
    try:
        yield
    finally:
        os.seteuid(ours)


class TestLoad:
    def test_the_least_that_a_task_has(self, tmp_path: Path) -> None:
        folder = write_task(tmp_path / "answer")
        assert load_task(folder) == Task("answer", folder, "Say 42", {}, folder / "test.py")

    def test_a_judge_alone(self, tmp_path: Path) -> None:
        folder = write_task(tmp_path / "answer", None)
        assert load_task(folder) == Task("answer", folder, "", {}, folder / "test.py")
        (folder / "task.yml").touch()
        assert "answer: has a task.yml, which nothing reads. Call it task.yaml" in refusal(folder).message

    @pytest.mark.parametrize("compose", ["docker-compose.yaml", "compose.yaml"])
    def test_all_that_a_task_can_have(self, tmp_path: Path, compose: str) -> None:
        folder = write_task(
            tmp_path / "full", "instruction: Say 42\njudge_network: true\njudge_timeout_s: 2.5\nlevel: {hard: [1, 2]}\n"
        )
        (folder / "assets").mkdir()
        (folder / "Dockerfile").touch()
        (folder / compose).touch()
        task = load_task(folder)
        found = (task.dockerfile, task.compose_file, task.assets)
        assert found == (folder / "Dockerfile", folder / compose, folder / "assets")
        assert (task.judge_network, task.judge_timeout_s) == (True, 2.5)
        assert task.settings == {"judge_network": True, "judge_timeout_s": 2.5, "level": {"hard": [1, 2]}}

    def test_the_name_is_the_directory_s_however_it_is_written(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(write_task(tmp_path / "answer"))
        (tmp_path / "answer" / "sub").mkdir()
        assert [load_task(written).name for written in (".", "sub/..", "../answer/")] == ["answer"] * 3


class TestRefusals:
    @pytest.mark.parametrize(
        ("task_yaml", "code", "message"),
        [
            ("", "task_missing_field", "instruction is missing. Add it"),
            ("level: 1\n", "task_missing_field", "instruction is missing. Add it"),
            ("instructon: Say 42\n", "task_missing_field", "is missing – is it misspelled as 'instructon'?"),
            ("instruction: ' '\n", "task_invalid_value", "task.yaml:1: instruction must not be blank"),
            ("a: 1\ninstruction: 42\n", "task_wrong_type", 'yaml:2: instruction is the number 42, not text; quote'),
            ("instruction:\n", "task_wrong_type", "instruction must be text, but is empty"),
            ("- instruction\n", "task_wrong_type", "must be a mapping of keys to values"),
            ("instruction: a\n1: b\n", "task_wrong_type", "yaml:2: the key 1 is not text; quote it"),
            ("instruction: a\njudge_netwrok: 1\n", "task_unknown_key", "yaml:2: unknown key 'judge_netwrok' – did you"),
            ("instruction: a\njudge_network: 1\n", "task_wrong_type", "judge_network must be true or false"),
            ("instruction: a\njudge_timeout_s: 0\n", "task_invalid_value", "must be above 0 and at most 86400"),
            ("instruction: a\njudge_timeout_s: .nan\n", "task_wrong_type", "must be a number"),
            ("instruction: a\n---\nb: 1\n", "task_yaml_invalid", "more than one YAML document"),
            ("instruction: 'a\n", "task_yaml_invalid", "task.yaml:1: YAML does not parse (line 1"),
            (b"instruction: \xff\n", "task_file_not_utf8", "is not UTF-8 text"),
            (b"#" * (MAX_TASK_BYTES + 1), "task_file_too_large", "is larger than"),
        ],
    )  # fmt: skip
    def test_of_a_task_file(self, tmp_path: Path, task_yaml: str | bytes | None, code: str, message: str) -> None:
        error = refusal(write_task(tmp_path / "bad", task_yaml))
        assert (error.code, error.exit_code) == (code, 2)
        assert message in error.message
        assert str(tmp_path / "bad") in error.message
        assert len(error.message.splitlines()) == 1

    def test_of_a_task_without_a_judge(self, tmp_path: Path) -> None:
        error = refusal(write_task(tmp_path / "bad", judge=None))
        assert error.code == "task_no_test"
        assert "has no test.py. Write it: a function test(result)" in error.message

    @pytest.mark.parametrize(
        ("make", "what"),
        [
            (lambda path: path.mkdir(), "that is a folder. Write a file"),
            (os.mkfifo, "that is a pipe. Write a file"),
            (make_socket, "that is a socket. Write a file"),
            (lambda path: path.symlink_to("/dev/zero"), "that is a device. Write a file"),
            (lambda path: path.symlink_to("absent.py"), "that is a link to what does not exist. Write a file"),
            (lambda path: path.symlink_to("test.py"), "that cannot be read (Too many levels of symbolic links)"),
            (lambda path: path.symlink_to(__file__), "that is a link out of the task's folder. Put the file itself"),
        ],
    )
    def test_of_a_judge_that_is_no_file(
        self, tmp_path: Path, make: Callable[[Path], object], what: str, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        folder = write_task(tmp_path / "bad", judge=None)
        monkeypatch.chdir(folder)  # the path of a socket has to be short
        make(Path("test.py"))
        error = refusal(folder)
        assert error.code == "task_no_test"
        assert f"bad: has a test.py {what}" in error.message

    def test_a_link_within_the_task_is_fine(self, tmp_path: Path) -> None:
        folder = write_task(tmp_path / "good")
        (folder / "test.py").rename(folder / "judge.py")
        (folder / "test.py").symlink_to("judge.py")
        (tmp_path / "link").symlink_to(folder)
        assert load_task(folder).test_file.is_file()
        assert load_task(tmp_path / "link").name == "link"

    def test_of_a_task_file_that_was_moved_away(self, tmp_path: Path) -> None:
        folder = write_task(tmp_path / "bad", None)
        (folder / "task.yaml").symlink_to("absent")
        assert "has a task.yaml that is a link to what does not exist" in refusal(folder).message

    @pytest.mark.parametrize(
        ("name", "message"),
        [
            ("absent", "absent: does not exist. Correct the path"),
            ("file", "file: is not a folder"),
            ("a" * 300, "cannot be read (File name too long)"),
            ("a\0b", "embedded null"),
            ("loop", "cannot be read (Too many levels of symbolic links)"),
            ("moved", "is a link to what does not exist"),
            ("file/below", "does not exist. Correct the path"),
        ],
    )
    def test_of_a_path_that_leads_nowhere(self, tmp_path: Path, name: str, message: str) -> None:
        (tmp_path / "loop").symlink_to("loop")
        (tmp_path / "moved").symlink_to("absent")
        (tmp_path / "file").touch()
        error = refusal(tmp_path / name)
        assert error.code == "task_not_found"
        assert message in error.message

    @pytest.mark.parametrize("mode", [0o000, 0o444])
    def test_of_a_folder_that_is_closed_to_us(self, folder: Path, mode: int) -> None:
        task = write_task(folder / "closed")
        task.chmod(mode)
        with as_a_plain_user():
            error = refusal(task)
        task.chmod(0o755)
        assert (error.code, error.exit_code) == ("task_unreadable", 2)
        assert error.message.endswith("closed: cannot be read (Permission denied). Check its permissions")

    def test_of_a_folder_of_tasks_says_how_to_grade_that(self, tmp_path: Path) -> None:
        write_task(tmp_path / "one")
        assert "name one of them, or grade all with --results DIR" in refusal(tmp_path).message


class TestDiscovery:
    def test_in_the_order_of_their_names_with_the_unusable_ones_among_them(self, tmp_path: Path) -> None:
        write_task(tmp_path / "b")
        write_task(tmp_path / "c", "instruction: 1\n")
        write_task(tmp_path / "a")
        (tmp_path / "empty").mkdir()
        found = discover_tasks(tmp_path)
        assert [(task.name, isinstance(task, InvalidTask)) for task in found] == [
            ("a", False),
            ("b", False),
            ("c", True),
            ("empty", True),
        ]
        broken = found[2]
        assert isinstance(broken, InvalidTask)
        assert broken.message.startswith(f"{tmp_path / 'c' / 'task.yaml'}:1: instruction is the number 1")

    def test_a_link_is_followed_and_one_that_leads_nowhere_does_not_disappear(self, tmp_path: Path) -> None:
        write_task(tmp_path / "elsewhere" / "task")
        (tmp_path / "tasks").mkdir()
        (tmp_path / "tasks" / "linked").symlink_to(tmp_path / "elsewhere" / "task")
        (tmp_path / "tasks" / "moved").symlink_to(tmp_path / "absent")
        linked, moved = discover_tasks(tmp_path / "tasks")
        assert isinstance(linked, Task)
        assert linked.name == "linked"
        assert isinstance(moved, InvalidTask)
        assert "is a link to what does not exist" in moved.message

    def test_the_folder_of_records_is_no_task(self, tmp_path: Path) -> None:
        write_task(tmp_path / "one")
        (tmp_path / "out" / "records").mkdir(parents=True)

        def names(records: Path) -> list[str]:
            return [task.name for task in discover_tasks(tmp_path, records)]

        assert names(tmp_path / "out" / "records") == ["one"]
        assert names(tmp_path) == names(tmp_path / "one") == ["one", "out"]

    def test_names_that_begin_with_a_dot_or_an_underscore_are_no_tasks(self, tmp_path: Path) -> None:
        for name in ("_records", ".git", "task"):
            write_task(tmp_path / name)
        (tmp_path / "README.md").touch()
        assert [task.name for task in discover_tasks(tmp_path)] == ["task"]

    @pytest.mark.parametrize(
        ("make", "code", "message"),
        [
            (lambda folder: None, "task_not_found", "does not exist"),
            (lambda folder: folder.touch(), "task_not_found", "is not a folder"),
            (lambda folder: folder.mkdir(), "task_none_found", "holds no task directories"),
            (write_task, "task_is_single", "is a task itself"),
        ],
    )  # fmt: skip
    def test_of_something_else(self, tmp_path: Path, make: object, code: str, message: str) -> None:
        assert callable(make)
        make(tmp_path / "tasks")
        with pytest.raises(TaskError, match=message) as caught:
            discover_tasks(tmp_path / "tasks")
        assert (caught.value.code, caught.value.exit_code) == (code, 2)
