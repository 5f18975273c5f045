"""The file endpoints, through the client that judges use."""

import base64
from pathlib import Path

import httpx
import pytest
from agent_sandbox.errors import UnprocessableEntityError
from running_sandbox import Box, refused

from guarantee_email_agent.sandbox.inside.api_request import Arguments
from guarantee_email_agent.sandbox.inside.files import Files, find
from guarantee_email_agent.utils.errors import TaskError


def test_what_is_written_is_read(box: Box) -> None:
    written = box.write("/home/gem/new/folder/note.txt", "Grüße\nzwei\ndrei\n")
    assert (written.file, written.bytes_written) == ("/home/gem/new/folder/note.txt", 18)
    assert box.read("/home/gem/new/folder/note.txt") == "Grüße\nzwei\ndrei\n"


def test_lines_are_counted_from_0_and_the_last_is_left_out(box: Box) -> None:
    box.write("/tmp/lines", "a\nb\nc\nd\n")
    assert box.read("/tmp/lines", start_line=1, end_line=3) == "b\nc\n"


def test_appending_and_new_lines(box: Box) -> None:
    box.write("/tmp/added", "one")
    box.write("/tmp/added", "two", append=True, leading_newline=True, trailing_newline=True)
    assert box.read("/tmp/added") == "one\ntwo\n"


def test_bytes_go_in_and_out(box: Box) -> None:
    content = bytes(range(256)) * 1000
    box.write("/tmp/b", base64.b64encode(content).decode(), encoding="base64")
    assert b"".join(box.real.file.download_file(path="/tmp/b")) == content
    assert box.ours.download("/v1/file/download", {"path": "/tmp/b"}, timeout_s=10) == content


def test_replacing_keeps_the_bytes_that_are_no_utf8(box: Box) -> None:
    box.write("/tmp/r", base64.b64encode(b"a \xe9 a").decode(), encoding="base64")
    assert box.real.file.replace_in_file(file="/tmp/r", old_str="a", new_str="c").data.replaced_count == 2
    assert box.real.file.replace_in_file(file="/tmp/r", old_str="a", new_str="c").data.replaced_count == 0
    edit = box.real.file.str_replace_editor
    assert edit(command="insert", path="/tmp/r", insert_line=0, new_str="b").data.new_content == "b\nc \ufffd c"
    edit(command="str_replace", path="/tmp/r", old_str="b", new_str="d")
    assert b"".join(box.real.file.download_file(path="/tmp/r")) == b"d\nc \xe9 c"


def test_searching_one_file(box: Box) -> None:
    box.write("/tmp/s", "one\ntwo\nthree\n")
    found = box.real.file.search_in_file(file="/tmp/s", regex="^t").data
    assert (found.matches, found.line_numbers) == (["two", "three"], [1, 2])


def test_a_pattern_that_never_ends_holds_nobody_up(box: Box) -> None:
    box.write("/tmp/evil", "a" * 40 + "!")
    with pytest.raises(TaskError, match=r"gave no answer within 0\.5 s") as late:
        box.post("/v1/file/search", timeout_s=0.5, file="/tmp/evil", regex="(a+)+$")
    assert late.value.code == "sandbox_timeout"
    assert box.read("/tmp/evil").endswith("!")


def test_finding_and_listing(box: Box) -> None:
    for name in ("a.py", "deep/b.py", "deep/er/c.txt", ".hidden/d.py"):
        box.write(f"/home/gem/tree/{name}", name)
    found = box.real.file.find_files(path="/home/gem/tree", glob="*.py").data.files
    assert sorted(found) == [f"/home/gem/tree/{name}" for name in (".hidden/d.py", "a.py", "deep/b.py")]
    listed = box.real.file.list_path(path="/home/gem/tree").data
    assert [(file.name, file.is_directory) for file in listed.files] == [("a.py", False), ("deep", True)]
    assert (listed.total_count, listed.directory_count, listed.file_count) == (2, 1, 1)
    everything = box.real.file.list_path(path="/home/gem/tree", recursive=True, show_hidden=True, sort_by="name").data
    assert [file.name for file in everything.files] == [".hidden", "a.py", "b.py", "c.txt", "d.py", "deep", "er"]
    box.output("cd tree; chmod 0 deep; seq 10001 > many; mkdir full; cd full; seq 10001 | xargs touch")
    assert box.real.file.find_files(path="/home/gem/tree", glob="*.py").data.unreadable == ["/home/gem/tree/deep"]
    full = {"path": "/home/gem/tree/full", "glob": "*", "file": "/home/gem/tree/many", "regex": ""}
    for operation in ("list", "find", "search"):
        with pytest.raises(TaskError, match="over 10,000 fit"):
            box.ours.call("POST", f"/v1/file/{operation}", full, timeout_s=20.0)


def test_the_editor(box: Box) -> None:
    edit = box.real.file.str_replace_editor
    edit(command="create", path="/home/gem/e.py", file_text="one = 1\ntwo = 2\n")
    replaced = edit(command="str_replace", path="/home/gem/e.py", old_str="two = 2", new_str="two = 22").data
    assert (replaced.prev_exist, replaced.new_content) == (True, "one = 1\ntwo = 22\n")
    edit(command="insert", path="/home/gem/e.py", insert_line=0, new_str="# first")
    assert "     3\ttwo = 22" in edit(command="view", path="/home/gem/e.py").data.output
    assert box.read("/home/gem/e.py") == "# first\none = 1\ntwo = 22\n"
    with refused(400) as refusal:
        edit(command="str_replace", path="/home/gem/e.py", old_str="= ", new_str="")
    assert "occurs 2 times" in str(refusal.value.body)


def test_what_is_not_there_is_not_found(box: Box) -> None:
    with refused(404) as missing:
        box.read("/home/gem/nothing")
    body = {"success": False, "message": "/home/gem/nothing: File does not exist", "data": None}
    assert missing.value.body == body
    for ask in (
        lambda: box.post("/v1/file/read", file="/home/gem/nothing"),
        lambda: box.ours.download("/v1/file/download", {"path": "/home/gem/nothing"}, timeout_s=10),
    ):
        with pytest.raises(TaskError, match=r"^/home/gem/nothing: File does not exist$") as told:
            ask()
        assert (told.value.code, told.value.details["status"]) == ("sandbox_refused", 404)


@pytest.mark.parametrize(
    "body",
    [{}, {"file": 3}, {"file": ""}, {"file": "/tmp/x\0y"}, {"file": "/tmp/x", "start_line": "1"}, {"file": None}],
)
def test_wrong_arguments_are_told_where(box: Box, body: dict[str, object]) -> None:
    answer = httpx.post(f"{box.sandbox.base_url}/v1/file/read", json=body)
    assert answer.status_code == 422
    assert answer.json()["detail"][0]["loc"][0] == "body"


def test_the_client_understands_wrong_arguments(box: Box) -> None:
    with pytest.raises(UnprocessableEntityError):
        box.real.file.search_in_file(file="/etc/passwd", regex="(")
    with pytest.raises(UnprocessableEntityError):
        box.write("/tmp/x", "not base64!", encoding="base64")


def test_relative_paths_start_at_home(box: Box) -> None:
    box.write("relative.txt", "here")
    assert box.output("cat /home/gem/relative.txt ~/relative.txt") == "herehere"


NAMES = ("a.py", "b.txt", "deep/c.py", "deep/er/d.py", "deep/[x].md", "deep/y.md", ".git/config")


@pytest.fixture
def tree(tmp_path: Path) -> str:
    for name in NAMES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(name)
    return str(tmp_path)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("*.py", ["a.py", "deep/c.py", "deep/er/d.py"]),
        ("config", [".git/config"]),
        ("**/*.py", ["a.py", "deep/c.py", "deep/er/d.py"]),
        ("deep/*.py", ["deep/c.py", "deep/er/d.py"]),
        ("deep/**", ["deep/[x].md", "deep/c.py", "deep/er", "deep/er/d.py", "deep/y.md"]),
        ("**/er/*", ["deep/er/d.py"]),
        ("[ab].*", ["a.py", "b.txt"]),
        ("[!acdy].*", ["b.txt"]),
        ("deep/[[]x].md", ["deep/[x].md"]),
    ],
)
def test_a_pattern_fits_paths(tree: str, pattern: str, found: list[str]) -> None:
    result, _ = find(Files(tree), Arguments({"path": tree, "glob": pattern}))
    assert sorted(path.removeprefix(f"{tree}/") for path in result["files"]) == found
