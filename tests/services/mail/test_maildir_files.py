from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.services.mail import maildir_files
from guarantee_email_agent.services.mail.maildir_files import rename_without_replacing


@pytest.fixture(params=["in one step", "in two steps"])
def _renaming(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """As the file system can."""
    if request.param == "in two steps":
        monkeypatch.setattr(maildir_files, "_renameat2", lambda: None)


@pytest.mark.usefixtures("_renaming")
@pytest.mark.parametrize("name", ["source", "söurce: 1"])
def test_a_file_is_renamed(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"mail")
    rename_without_replacing(tmp_path / name, tmp_path / "target")
    assert [(file.name, file.read_bytes()) for file in tmp_path.iterdir()] == [("target", b"mail")]


@pytest.mark.usefixtures("_renaming")
def test_a_file_that_is_there_already_is_never_overwritten(tmp_path: Path) -> None:
    for name in ("source", "target"):
        (tmp_path / name).write_text(name)
    with pytest.raises(FileExistsError):
        rename_without_replacing(tmp_path / "source", tmp_path / "target")
    assert {file.name: file.read_text() for file in tmp_path.iterdir()} == {"source": "source", "target": "target"}


@pytest.mark.usefixtures("_renaming")
def test_a_file_that_is_gone_is_told_as_such(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        rename_without_replacing(tmp_path / "source", tmp_path / "target")


def test_a_file_system_that_cannot_rename_in_one_step_is_served(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(maildir_files, "_renameat2", lambda: lambda *_: 22)  # EINVAL, as NFS answers
    (tmp_path / "source").touch()
    rename_without_replacing(tmp_path / "source", tmp_path / "target")
    assert (tmp_path / "target").exists()
