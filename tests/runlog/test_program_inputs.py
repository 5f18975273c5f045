import tomllib
from pathlib import Path

import pytest

from guarantee_email_agent.files.python_code import FollowedCode
from guarantee_email_agent.runlog.program_inputs import (
    LIBRARIES,
    OF_EXTRAS,
    code_inputs,
    digest_of_folder,
    program_inputs,
)
from guarantee_email_agent.runlog.records import Input, InputSet

ROOT = Path(__file__).parents[2]
DECIDING_NOTHING = {"imapclient", "junitparser", "sqlalchemy"}


def test_every_library_that_decides_is_named_with_its_version() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    assert {each.partition(">")[0] for each in declared} - DECIDING_NOTHING == set(LIBRARIES)
    kept = {each.name: each.content for each in program_inputs() if each.kind == "library"}
    assert kept.keys() == {"python", *LIBRARIES, *OF_EXTRAS}
    assert all(kept.values())
    assert InputSet(program_inputs()).incomplete == ()


@pytest.mark.parametrize("change", ["write", "rename", "add", "remove"])
def test_the_code_is_another_one_once_any_file_is(tmp_path: Path, change: str) -> None:
    for name in ("a.py", "inner/b.txt"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(name)
    before = digest_of_folder(tmp_path)
    (tmp_path / "__pycache__").mkdir()
    (tmp_path / "__pycache__" / "a.pyc").write_text("")
    assert digest_of_folder(tmp_path) == before
    if change == "write":
        (tmp_path / "inner" / "b.txt").write_text("c")
    elif change == "rename":
        (tmp_path / "a.py").rename(tmp_path / "c.py")
    elif change == "add":
        (tmp_path / "c.py").write_text("")
    else:
        (tmp_path / "a.py").unlink()
    assert digest_of_folder(tmp_path) != before


def test_code_that_cannot_be_read_has_no_digest(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="archive"):
        digest_of_folder(tmp_path / "archive")


def test_of_followed_code_versions_and_names_are_kept_and_no_value(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MODE", "a secret")
    code = FollowedCode((), frozenset({"yaml", "no_such_module"}), frozenset({"MODE"}), ("a reason",))
    inputs = InputSet(code_inputs(code))
    kept = {(each.kind, each.name.lower()): each.content for each in inputs.inputs}
    assert kept["library", "no_such_module"] == b"not installed"
    assert kept["library", "pyyaml"]
    assert kept["environment", "mode"] == b""
    assert inputs.incomplete == ("a reason", "the value of the environment variable MODE is not kept")
    assert not any(b"secret" in (content or b"") for content in kept.values())


def test_an_input_that_is_named_twice_is_one() -> None:
    own, other = Input.of("library", "mcp", b"2.3.0"), Input.of("judge", "data.csv", b"a")
    same_name = Input.of("judge", "data.csv", b"b")
    assert InputSet([own, own]).inputs == (own,)
    assert InputSet([own, own]).digest == InputSet([own]).digest
    (judge,) = InputSet([other, same_name]).inputs
    assert judge.digest not in (other.digest, same_name.digest)
