"""A task's assets: what comes along, and what a stranger's folder may not bring in."""

import os
import socket
import threading
from dataclasses import replace
from pathlib import Path

import pytest
from processes import as_nobody
from running_sandbox import SMALL, MakeBox

from guarantee_email_agent.sandbox import SandboxLimits, SandboxSettings
from guarantee_email_agent.sandbox.asset_files import asset_uploads
from guarantee_email_agent.utils.errors import TaskError


def _uploads(folder: Path, limits: SandboxLimits = SMALL) -> list[tuple[dict[str, str], bytes]]:
    return [(dict(query), content) for query, content in asset_uploads(folder, "assets", limits)]


@pytest.fixture
def assets(tmp_path: Path) -> Path:
    folder = tmp_path / "assets"
    folder.mkdir()
    return folder


def test_a_link_in_the_place_of_the_folder_is_refused(tmp_path: Path, make_box: MakeBox) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (secret / "key").write_text("of the host")
    (tmp_path / "assets").symlink_to(secret)
    with pytest.raises(TaskError, match=rf"/assets: is a link to {secret}\. Put a folder .* in its place") as refusal:
        make_box(SandboxSettings(assets=tmp_path / "assets"))
    assert refusal.value.code == "sandbox_assets"


def test_files_folders_and_links_come_as_they_are(assets: Path) -> None:
    (assets / "empty").mkdir()
    (assets / "run.sh").write_text("true")
    (assets / "run.sh").chmod(0o4750)
    (assets / "up").symlink_to("../../..")
    (assets / "folder").symlink_to("/etc")
    assert sorted(_uploads(assets), key=lambda upload: upload[0]["path"]) == [
        ({"path": "assets", "folder": "1"}, b""),
        ({"path": "assets/empty", "folder": "1"}, b""),
        ({"path": "assets/folder", "link": "/etc"}, b""),
        ({"path": "assets/run.sh", "mode": "750"}, b"true"),
        ({"path": "assets/up", "link": "../../.."}, b""),
    ]


def test_links_that_lead_out_lead_to_the_sandboxs_own_files(assets: Path, make_box: MakeBox) -> None:
    (assets.parent / "secret").write_text("of the host")
    (assets / "above").symlink_to("../../../../../../../../../..")
    (assets / "shadow").symlink_to("/etc/shadow")
    box = make_box(SandboxSettings(assets=assets))
    for path in (f"assets/above{assets.parent}/secret", "assets/shadow", "assets/above/etc/shadow"):
        assert box.shell(f"cat {path}").exit_code == 1


@pytest.mark.parametrize("kind", ["FIFO", "socket", "device"])
def test_what_holds_no_content_is_refused(assets: Path, kind: str) -> None:
    if kind == "FIFO":
        os.mkfifo(assets / "odd")
    elif kind == "socket":
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(str(assets / "odd"))
    elif os.geteuid() != 0:
        pytest.skip("only root can make a device")
    else:
        os.mknod(assets / "odd", 0o20666, os.makedev(1, 5))
    with pytest.raises(TaskError, match=r"/odd: is neither file, folder nor link\. Remove it"):
        _uploads(assets)


def test_more_than_the_disk_is_refused_unread(assets: Path) -> None:
    with (assets / "huge").open("wb") as file:
        file.truncate(10 << 30)
    uploads = asset_uploads(assets, "assets", SMALL)
    next(uploads)  # the folder itself
    with pytest.raises(TaskError, match=r"/assets: has no room on the sandbox's disk of 32 MiB\. Ask for more with"):
        next(uploads)


def test_more_files_than_allowed_are_refused(assets: Path) -> None:
    for number in range(11):
        (assets / str(number)).touch()
    with pytest.raises(TaskError, match="/assets: holds more than the 10 files"):
        _uploads(assets, replace(SMALL, files=10))


def test_a_file_that_grows_while_it_is_read_ends(assets: Path) -> None:
    path, done = assets / "log", threading.Event()
    path.write_bytes(b"x" * (1 << 20))

    def grow() -> None:
        with path.open("ab") as file:
            while not done.is_set() and file.tell() < 1 << 30:
                file.write(b"y" * (1 << 16))
                file.flush()

    thread = threading.Thread(target=grow)
    thread.start()
    try:
        size = sum(len(content) for _, content in asset_uploads(assets, "assets", SandboxLimits()))
    finally:
        done.set()
        thread.join()
    assert 1 << 20 <= size <= path.stat().st_size


def test_a_large_file_arrives_in_parts(assets: Path, make_box: MakeBox) -> None:
    content = os.urandom(1 << 20) * 40
    (assets / "large").write_bytes(content)
    assert len(_uploads(assets, SandboxLimits())) == 1 + 3
    box = make_box(SandboxSettings(assets=assets))
    assert (
        box.output("stat -c %s assets/large; tail -c 5 assets/large | xxd -p")
        == f"{len(content)}\n{content[-5:].hex()}"
    )


def test_a_name_that_is_no_text_is_refused(assets: Path) -> None:
    Path(os.fsdecode(os.fsencode(assets) + b"/\xff")).touch()
    with pytest.raises(TaskError, match=r"not UTF-8\. Rename it"):
        _uploads(assets)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_folder_that_cannot_be_read_is_no_empty_one(assets: Path) -> None:
    (assets / "closed").mkdir(mode=0o700)
    with as_nobody(assets), pytest.raises(TaskError, match=r"closed: cannot be read \(Permission denied\)"):
        _uploads(assets)
