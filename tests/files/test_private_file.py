import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from guarantee_email_agent.files.private_file import locked, make_private_folder, private_draft, read_private_text
from guarantee_email_agent.files.report_files import write_report
from guarantee_email_agent.files.text_file import InputFileError


@pytest.fixture
def secret(tmp_path: Path) -> Path:
    file = tmp_path / "secret.json"
    file.write_text("old")
    file.chmod(0o600)
    return file


def refusal(file: Path) -> InputFileError:
    with pytest.raises(InputFileError) as caught:
        read_private_text(file, 100)
    return caught.value


def replace(file: Path, text: str, room: int = 100) -> None:
    with private_draft(file, room) as draft:
        draft.commit(text)


@pytest.mark.parametrize("mode", [0o640, 0o604, 0o620, 0o602])
def test_a_file_that_others_may_use_is_refused(secret: Path, mode: int) -> None:
    secret.chmod(mode)
    error = refusal(secret)
    assert error.code == "document_not_private"
    assert "Run chmod 600" in error.message


def test_a_link_is_refused_unless_it_is_a_mounted_secret(secret: Path, tmp_path: Path) -> None:
    link = tmp_path / "link"
    link.symlink_to(secret)
    assert refusal(link).message == "this is a link; name the file itself"
    assert read_private_text(link, 100, follow_links=True) == "old"


def test_what_is_no_file_or_too_large_is_refused(secret: Path, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe", 0o600)
    assert refusal(tmp_path / "pipe").message == "this is no file"
    assert refusal(tmp_path / "missing").code == "document_not_found"
    secret.write_text("x" * 101)
    assert refusal(secret).code == "document_too_large"


def test_what_is_made_is_for_its_owner_alone_whatever_the_umask(tmp_path: Path) -> None:
    (tmp_path / "known").touch()
    (tmp_path / "known").chmod(0o644)
    before = os.umask(0)
    try:
        replace(tmp_path / "new", "text")
        make_private_folder(tmp_path / "a" / "b" / "c")
        for name in ("report", "known"):
            write_report(tmp_path / name, b"a mail", "code")
    finally:
        os.umask(before)
    modes = {str(path.relative_to(tmp_path)): stat.S_IMODE(path.stat().st_mode) for path in tmp_path.rglob("*")}
    folders = dict.fromkeys(("a", "a/b", "a/b/c"), 0o700)
    assert modes == {"new": 0o600, "report": 0o600, "known": 0o644, **folders}


def test_a_draft_that_is_not_committed_leaves_the_old_file_and_nothing_else(secret: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), private_draft(secret, 100):
        raise KeyboardInterrupt
    assert secret.read_text() == "old"
    assert list(tmp_path.iterdir()) == [secret]


def test_a_draft_that_a_killed_process_left_is_not_written_into(secret: Path, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.write_text("mine")
    (tmp_path / ".secret.json.draft").symlink_to(elsewhere)
    replace(secret, "new")
    assert (secret.read_text(), elsewhere.read_text()) == ("new", "mine")


def test_one_process_at_a_time_holds_the_lock(secret: Path) -> None:
    hold = (
        "import sys; from pathlib import Path; from guarantee_email_agent.files.private_file import locked\n"
        "with locked(Path(sys.argv[1]), 10): print('held', flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", hold, secret], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as holder:
        assert holder.stdout.readline() == "held\n"
        with pytest.raises(TimeoutError), locked(secret, 0.1):
            pass
        holder.kill()
    with locked(secret, 10):
        pass


@pytest.mark.skipif(os.geteuid() != 0, reason="only root makes files for others")
def test_what_root_writes_stays_its_owners(secret: Path, tmp_path: Path) -> None:
    os.chown(secret, 1234, 1234)
    with locked(secret, 10):
        replace(secret, "new")
    assert {file.stat().st_uid for file in tmp_path.iterdir()} == {1234}


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has files that are worth it")
def test_a_file_of_roots_that_somebody_linked_into_a_folder_stays_roots(tmp_path: Path) -> None:
    of_root = tmp_path / "of root"
    of_root.write_text("root's")
    folder = tmp_path / "folder"
    folder.mkdir()
    os.chown(folder, 1234, 1234)
    os.link(of_root, folder / ".secret.json.lock")
    with locked(folder / "secret.json", 10):
        pass
    assert of_root.stat().st_uid == 0
