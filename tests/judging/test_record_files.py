"""Records of many runs, found in folders and in files of JSON lines."""

import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest

from guarantee_email_agent.judging import record_files
from guarantee_email_agent.judging.record_files import RecordIndex, find_records
from guarantee_email_agent.utils.errors import TaskError

TASKS = ("six", "six.2", "seven")


def answers(index: RecordIndex, task_name: str | None) -> list[object]:
    """What the records of a task answer, or why they cannot be read."""
    found: list[object] = []
    for place in index.places(task_name):
        try:
            found.append(place.read()["task_result"])
        except TaskError as error:
            found.append(error.message.partition(".jsonl:")[2])
    return found


def find_in_lines(folder: Path, content: bytes) -> RecordIndex:
    path = folder / "runs.jsonl"
    path.write_bytes(content)
    return find_records(path, TASKS)


class TestFolder:
    def test_records_of_a_task_stand_in_its_file_and_on_lines(self, tmp_path: Path) -> None:
        for name in ("seven.json", "_seven.json", ".seven.json"):
            (tmp_path / name).write_text(json.dumps({"task_result": name}), encoding="utf-8")
        (tmp_path / "more.jsonl").write_text('{"task_name": "seven", "task_result": "a line"}', encoding="utf-8")
        index = find_records(tmp_path, TASKS)
        assert answers(index, "seven") == ["seven.json", "a line"]
        assert (index.count, index.count_of("seven"), list(index.task_names)) == (2, 2, ["seven"])

    def test_lines_without_a_name_in_a_file_that_is_named_after_a_task(self, tmp_path: Path) -> None:
        lines = '{"task_result": "1"}\n{"task_result": "2", "task_name": "seven"}\n'
        (tmp_path / "six.jsonl").write_text(lines, encoding="utf-8")
        index = find_records(tmp_path, TASKS)
        assert (answers(index, "six"), answers(index, "seven")) == (["1"], ["2"])

    def test_a_judge_finds_the_files_beside_the_record(self, tmp_path: Path) -> None:
        (tmp_path / "six.jsonl").write_text('{"task_result": "1", "record_dir": "/etc"}', encoding="utf-8")
        [place] = find_records(tmp_path / "six.jsonl", TASKS).places("six")
        assert place.read()["record_dir"] == str(tmp_path)

    @pytest.mark.parametrize("make", [os.mkfifo, Path.mkdir, lambda path: path.symlink_to("absent")])
    def test_what_is_no_file_is_one_problem_and_costs_no_other_record(
        self, tmp_path: Path, make: Callable[[Path], object]
    ) -> None:
        (tmp_path / "six.json").write_text('{"task_result": "1"}', encoding="utf-8")
        make(tmp_path / "odd.jsonl")
        index = find_records(tmp_path, TASKS)
        assert answers(index, "six") == ["1"]
        [(name, problem)] = index.problems.items()
        assert name == "odd.jsonl"
        assert "odd.jsonl: this is a" in problem

    @pytest.mark.parametrize(
        ("name", "said"),
        [
            ("absent", "the folder of records does not exist"),
            ("absent.jsonl", "does not exist. Correct the path"),
            ("six.json", "neither a folder nor a file of JSON lines. Name a folder or a .jsonl file"),
        ],
    )
    def test_a_place_without_records(self, tmp_path: Path, name: str, said: str) -> None:
        (tmp_path / "six.json").write_text("{}", encoding="utf-8")
        with pytest.raises(TaskError, match=said) as caught:
            find_records(tmp_path / name, TASKS)
        assert caught.value.code == "task_results_not_found"


class TestLines:
    def test_byte_order_mark_windows_line_breaks_and_lines_without_anything(self, tmp_path: Path) -> None:
        first, second = b'{"task_name": "six", "task_result": "\xc3\xa9"}', b'{"task_result":"2","task_name":"six"}'
        index = find_in_lines(tmp_path, b"\xef\xbb\xbf" + first + b"\r\n\r\n \t\n" + second)
        assert answers(index, "six") == ["é", "2"]
        assert [place.name for place in index.places("six")] == [f"{tmp_path}/runs.jsonl:{line}" for line in (1, 4)]

    def test_lines_of_several_tasks_keep_their_order(self, tmp_path: Path) -> None:
        lines = [{"task_name": name, "task_result": n} for n, name in enumerate(["six", "seven", "six", "seven"])]
        index = find_in_lines(tmp_path, "\n".join(map(json.dumps, lines)).encode())
        assert (answers(index, "six"), answers(index, "seven")) == ([0, 2], [1, 3])

    @pytest.mark.parametrize(
        ("line", "said"),
        [
            (b"nonsense\n", "2: no JSON (column 1): Expecting value"),
            (b"[1, 2]\n", "2: a record is a JSON object"),
            (b'{"task_result": "1"}\n', "2: the record has no task_name. Add it"),
            (b'{"task_name": 7}\n', "2: task_name is 7, not text"),
            (b'{"task_name": "\xff"}\n', "2: this is not UTF-8 text (byte 16 of the line)"),
            (b'{"\0t\0a": 1}\n', "2: this holds zero bytes, as UTF-16 text does"),
            (b"\x1f\x8b\x08\x00\xff\n", "2: the file is compressed (gzip). Unpack it first"),
            (b"[" * 100_000 + b"\n", "2: nested too deep"),
            (b'{"task_name": ' + b"9" * 9_000 + b"}\n", "2: holds a number that is too long"),
            (b'{"task_name": "six", "task_res', "was it cut off?"),
        ],
    )
    def test_a_line_that_is_no_record_is_told_with_its_number(self, tmp_path: Path, line: bytes, said: str) -> None:
        index = find_in_lines(tmp_path, b'{"task_name": "six", "task_result": "1"}\n' + line)
        assert answers(index, "six") == ["1"]
        [problem] = answers(index, None)
        assert said in str(problem)

    @pytest.mark.parametrize("at_end", [b"", b'\n{"task_name": "six", "task_result": "1"}'])
    def test_a_line_that_is_too_long_is_not_kept(
        self, tmp_path: Path, at_end: bytes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(record_files, "MAX_RECORD_BYTES", 1_000)
        line = b'{"task_name": "six", "task_result": "' + b"x" * 5_000_000 + b'"}'
        index = find_in_lines(tmp_path, line + at_end)
        length = len(line) + bool(at_end)
        assert answers(index, None) == [f"1: the record has {length:,} bytes, and 1,000 are the most. Make it smaller"]
        assert answers(index, "six") == (["1"] if at_end else [])

    def test_a_file_that_shrinks_while_it_is_judged(self, tmp_path: Path) -> None:
        index = find_in_lines(tmp_path, b'{"task_name": "six", "task_result": "1"}\n' * 2)
        (tmp_path / "runs.jsonl").write_bytes(b'{"task_name": "six", "task_result": "1"}\n')
        assert answers(index, "six") == ["1", "2: the file was cut while it was judged. Grade it again"]

    def test_an_empty_file_has_no_records(self, tmp_path: Path) -> None:
        assert find_in_lines(tmp_path, b"").count == 0
