"""uv runs with our rights: neither a task nor a package may have a say in it."""

from __future__ import annotations

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from guarantee_email_agent.isolation import syscalls as kernel
from guarantee_email_agent.judging import judge_dependencies
from guarantee_email_agent.judging.judge_dependencies import DependencyError, create_environment, search_path

needs_uv = pytest.mark.skipif(
    not (shutil.which("uv") or importlib.util.find_spec("uv")),
    reason="there is no uv to provide dependencies: install it",
)
PATH = os.environ["PATH"]


@pytest.fixture
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where uv looks for packages, and nowhere else."""
    folder = tmp_path / "wheels"
    folder.mkdir()
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")  # no test leaves this machine
    monkeypatch.setenv("UV_FIND_LINKS", str(folder))
    return folder


def fake_uv(folder: Path, script: str) -> str:
    """A search path on which uv is a shell script."""
    folder.mkdir(exist_ok=True)
    program = folder / "uv"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.defpath}"


@needs_uv
def test_no_package_is_built(wheels: Path, tmp_path: Path) -> None:
    source = tmp_path / "shelf-1.0"
    source.mkdir()
    (source / "pyproject.toml").write_text(
        '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
        '[project]\nname = "shelf"\nversion = "1.0"\n'
    )
    (source / "backend.py").write_text(f"open({str(tmp_path / 'built')!r}, 'w')\n")
    shutil.make_archive(str(wheels / "shelf-1.0"), "gztar", tmp_path, "shelf-1.0")
    with pytest.raises(DependencyError, match="uv cannot provide it: "):
        create_environment(sys.executable, ["shelf"], PATH)
    assert not (tmp_path / "built").exists()


@needs_uv
def test_an_installed_package_is_not_started(wheels: Path, tmp_path: Path) -> None:
    info = "shelf-1.0.dist-info"
    with zipfile.ZipFile(wheels / "shelf-1.0-py3-none-any.whl", "w") as archive:
        # A line of a .pth file that begins with "import" runs whenever Python starts with it.
        archive.writestr("evil.pth", f"import os; open({str(tmp_path / 'started')!r}, 'w')\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", f"evil.pth,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    python = Path(create_environment(sys.executable, ["shelf"], PATH))
    assert list(python.parent.parent.rglob("evil.pth"))
    assert not (tmp_path / "started").exists()


@needs_uv
def test_no_settings_and_no_environment_of_the_folder_that_we_stand_in(
    wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "uv.toml").write_text("nonsense = [\n")
    (tmp_path / ".python-version").write_text(f"{tmp_path}/.venv/bin/python\n")
    evil = tmp_path / ".venv" / "bin" / "python"
    evil.parent.mkdir(parents=True)
    (evil.parent.parent / "pyvenv.cfg").write_text("home = /usr/bin\n")
    evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    evil.chmod(0o755)
    for name in ("VIRTUAL_ENV", "CONDA_PREFIX", "UV_PROJECT_ENVIRONMENT"):
        monkeypatch.setenv(name, str(tmp_path / ".venv"))
    monkeypatch.setenv("UV_PYTHON", str(evil))
    monkeypatch.setenv("UV_CONFIG_FILE", str(tmp_path / "uv.toml"))
    assert Path(create_environment(sys.executable, [], PATH)).exists()
    assert not (tmp_path / "ran").exists()


@needs_uv
def test_a_python_that_is_not_here_is_not_downloaded(wheels: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mirror:
        monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", f"http://127.0.0.1:{mirror.getsockname()[1]}")
        with pytest.raises(DependencyError, match="uv cannot provide it: "):
            create_environment(">=3.7,<3.8", [], PATH)
        mirror.setblocking(False)
        with pytest.raises(BlockingIOError):
            mirror.accept()


def test_an_environment_without_our_secrets(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ANTHROPIC_API_KEY", "PYTHONPATH", "LD_LIBRARY_PATH", "UV_PYTHON"):
        monkeypatch.setenv(name, "secret")
    monkeypatch.setenv("https_proxy", "http://127.0.0.1:9")
    monkeypatch.setenv("UV_INDEX_OURS_PASSWORD", "of the index")
    path = fake_uv(tmp_path / "bin", "env >&2; pwd >&2; ls -A >&2; exit 1")
    with pytest.raises(DependencyError) as caught:
        create_environment(sys.executable, [], path)
    said = str(caught.value)
    assert "secret" not in said
    assert "https_proxy=http://127.0.0.1:9" in said
    assert "UV_INDEX_OURS_PASSWORD=" in said
    assert said.endswith("/empty")


@pytest.mark.skipif(kernel.landlock_version() < 2, reason="this kernel has no Landlock that lets files be moved")
def test_it_changes_nothing_but_its_cache_and_the_environment(wheels: Path, tmp_path: Path) -> None:
    script = f"touch $UV_CACHE_DIR/fine $TMPDIR/fine && touch {tmp_path}/evil; exit 1"
    with pytest.raises(DependencyError, match="Permission denied"):
        create_environment(sys.executable, [], fake_uv(tmp_path / "bin", script))
    assert (tmp_path / "cache" / "fine").exists()
    assert not (tmp_path / "evil").exists()


def test_its_deadline_holds_for_what_it_starts(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(judge_dependencies, "TIMEOUT_S", 1.5)
    fifo = tmp_path / "cache" / "alive"
    fifo.parent.mkdir()
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    # A child of uv that holds a pipe and its stderr for as long as it lives.
    path = fake_uv(tmp_path / "bin", f"(echo here; sleep 600) > {fifo} & sleep 600")
    with pytest.raises(DependencyError, match=r"^uv did not provide it within 1\.5 s$"):
        create_environment(sys.executable, [], path)
    os.set_blocking(reader, True)
    assert os.read(reader, 100) == b"here\n"
    assert os.read(reader, 100) == b""
    os.close(reader)


@needs_uv
def test_a_cache_that_cannot_be_had_is_none(wheels: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "file").touch()
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "file" / "cache"))
    assert Path(create_environment(sys.executable, [], PATH)).exists()


def test_it_is_looked_for_outside_of_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = tmp_path / "task"
    (task / "bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(task / "bin")
    (tmp_path / "tasks").mkdir()
    monkeypatch.chdir(tmp_path / "tasks")
    entries = ["", ".", "bin", "../task", str(task), str(task / "bin"), str(tmp_path / "link"), os.getcwd(), "/usr/bin"]
    monkeypatch.setenv("PATH", os.pathsep.join(entries))
    assert search_path(task) == "/usr/bin"


def test_our_end_ends_it(wheels: Path, tmp_path: Path) -> None:
    """Also where we are killed, and can do nothing about it."""
    fifo = tmp_path / "cache" / "alive"
    fifo.parent.mkdir()
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    path = fake_uv(tmp_path / "bin", f"exec > {fifo}; echo here; exec sleep 600")
    program = (
        "import sys\nfrom guarantee_email_agent.judging.judge_dependencies import create_environment\n"
        "create_environment(sys.executable, [], sys.argv[1])\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, path]) as process, fifo.open("rb") as alive:
        os.close(reader)
        assert alive.readline() == b"here\n"
        process.kill()
        assert alive.read() == b""
