"""Judges that declare packages: a wheel of our own stands in for one from a registry."""

import importlib.util
import os
import shutil
import socket
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from guarantee_email_agent.isolation import syscalls as kernel
from guarantee_email_agent.judging import judge_dependencies
from guarantee_email_agent.judging.judge import judge
from guarantee_email_agent.judging.judge_dependencies import DependencyError, create_environment, search_path
from guarantee_email_agent.judging.verdict import Verdict

pytestmark = pytest.mark.slow

needs_uv = pytest.mark.skipif(
    not (shutil.which("uv") or importlib.util.find_spec("uv")),
    reason="there is no uv to provide dependencies: install it",
)
READS_SHELF = """\
def test(result):
    import shelf
    return {"passed": True, "feedback": shelf.WORD}
"""


def make_wheel(folder: Path, **files: str) -> Path:
    """A package named shelf. files: further ones, by their names without the ending .pth."""
    file = folder / "wheels" / "shelf-1.0-py3-none-any.whl"
    info = "shelf-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("shelf.py", "WORD = 'from the wheel'\n")
        for name, content in files.items():
            archive.writestr(f"{name}.pth", content)
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", f"shelf.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return file


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    return make_wheel(tmp_path)


@pytest.fixture(autouse=True)
def wheels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where uv looks for packages, and nowhere else: no test leaves this machine."""
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_FIND_LINKS", str(tmp_path / "wheels"))
    (tmp_path / "wheels").mkdir()
    return tmp_path / "wheels"


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("guarantee_email_agent.judging.judge_dependencies._environments", {})
    (tmp_path / "task").mkdir()
    return tmp_path / "task" / "test.py"


def declaring(*lines: str, judge: str = READS_SHELF) -> str:
    return "".join(f"# {line}\n" for line in ("/// script", *lines, "///")) + judge


NEEDS_SHELF = declaring('dependencies = ["shelf"]')


def judge_source(file: Path, source: str, timeout_s: float = 60) -> Verdict:
    file.write_text(source, encoding="utf-8")
    return judge(file, {}, timeout_s)


@needs_uv
def test_a_declared_package_is_there(file: Path, wheel: Path) -> None:
    first, second = (judge_source(file, NEEDS_SHELF) for _ in range(2))
    assert (first.verdict, first.feedback, first.error) == ("passed", "from the wheel", None)
    assert second.feedback == "from the wheel"
    assert [each.name for each in file.parent.iterdir()] == ["test.py"]


@needs_uv
def test_a_package_that_cannot_be_had(file: Path) -> None:
    error = str(judge_source(file, declaring('dependencies = ["no-such-shelf==1.0"]')).error)
    assert error.startswith("declares what it needs (no-such-shelf==1.0), and uv cannot provide it: ")


@needs_uv
def test_all_judges_that_declare_the_same_share_it(
    file: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    temporary = tmp_path / "temporary"
    temporary.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(temporary))
    for number in range(3):
        assert judge_source(file, f"{NEEDS_SHELF}# {number}\n").verdict == "passed"
    assert len(list(temporary.glob("judge-packages-*"))) == 1


@needs_uv
def test_what_was_installed_goes_with_our_process(file: Path, wheel: Path, tmp_path: Path) -> None:
    file.write_text(NEEDS_SHELF, encoding="utf-8")
    program = (
        "from pathlib import Path\nfrom guarantee_email_agent.judging.judge import judge\n"
        f"print(judge(Path({str(file)!r}), {{}}).feedback)\n"
    )
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "from the wheel\n"
    assert list((tmp_path / "temporary").iterdir()) == []


@pytest.mark.parametrize(
    ("declared", "why"),
    [
        ("shelf @ http://127.0.0.1:9/shelf.whl", "by its address"),
        ("shelf @ file:///shelf.whl", "by its address"),
        ("shelf@git+https://127.0.0.1/shelf", "by its address"),
        ("shelf[more] @ file:///shelf.whl ; python_version > '3'", "by its address"),
        *((text, "which is not the name of a package") for text in (
            "git+https://127.0.0.1/shelf", "http://127.0.0.1:9/shelf.whl", "file:shelf.whl", "/shelf", "./shelf",
            "shelf.whl/", "../task", ".", "~/shelf", "-r /etc/passwd", "--index-url=http://127.0.0.1:9/", "-e .",
            "--editable=.", "-shelf", "${HOME}", "shelf==${HOME}", "shelf===/shelf", "shelf\\u0000", "", "shelf other",
            "shelf; " + "(" * 5000,
        )),
    ],
)  # fmt: skip
def test_a_dependency_is_a_name(file: Path, monkeypatch: pytest.MonkeyPatch, declared: str, why: str) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: pytest.fail("asked for uv"))
    error = str(judge_source(file, declaring(f'dependencies = ["{declared}"]')).error)
    assert why in error
    assert len(error) < 400
    assert "\n" not in error


@pytest.mark.parametrize(
    "declared",
    ["3.12", "3", "python3.11", "pypy", "cpython@/x", "/bin/sh", "./python", "system", "default", ">=3.11,/bin/sh",
     "===/bin/sh", "===3.11", "==${HOME}", ">=3.11 --config-file=/x", "-p", ">=" + "9" * 5000, "x" * 10_000],
)  # fmt: skip
@pytest.mark.parametrize("dependencies", ["", "dependencies = ['shelf']"])
def test_a_version_of_python_is_one(
    file: Path, monkeypatch: pytest.MonkeyPatch, declared: str, dependencies: str
) -> None:
    monkeypatch.setattr("shutil.which", lambda *_, **__: pytest.fail("asked for uv"))
    error = str(judge_source(file, declaring(f'requires-python = "{declared}"', dependencies)).error)
    assert error.startswith("declares a 'requires-python' that is no version specifier: ")
    assert len(error) < 400


def test_nor_is_the_file_run_that_stands_there(file: Path, tmp_path: Path) -> None:
    program = tmp_path / "task" / "python"
    program.write_text(f"#!/bin/sh\ntouch {tmp_path}/ran\n")
    program.chmod(0o755)
    judge_source(file, declaring(f'requires-python = "{program}"'))
    assert not (tmp_path / "ran").exists()


@needs_uv
@pytest.mark.parametrize("change", [lambda source: source.replace("\n", "\r\n"), lambda source: "\ufeff" + source])
def test_line_ends_and_byte_order_marks_are_those_of_python(
    file: Path, wheel: Path, change: Callable[[str], str]
) -> None:
    file.write_bytes(change(NEEDS_SHELF).encode())
    assert judge(file, {}).feedback == "from the wheel"


def test_without_uv(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert judge_source(file, declaring('dependencies = ["shelf"]')).error == (
        "declares what it needs (shelf), and there is no uv to provide it. Install uv: pip install uv"
    )


@pytest.mark.parametrize(
    "lines",
    [
        (),
        ("requires-python = ''",),
        ('requires-python = ">=3.11,<4"',),
        ('requires-python = " ~= 3.11 "',),
        ('requires-python = ">=3.11"',),
        ("dependencies = []",),
        ("[tool.other]", "x = 1"),
        ("tool = 1",),
    ],
    ids=str,
)
def test_what_this_python_has_needs_no_uv(file: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...]) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda *_, **__: pytest.fail("asked for uv"))
    fine = "def test(result): return {'passed': True, 'feedback': ''}\n"
    assert judge_source(file, declaring(*lines, judge=fine)).verdict == "passed"


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ("# /// script\n# dependencies = []\n" + READS_SHELF, "in a block without its end"),
        ("# /// script\n# dependencies = []\n", "in a block without its end"),
        ("# /// script\n# dependencies = [\n# ///\n", "in a block that is no TOML"),
        ("# /// script\n# dependencies = 'shelf'\n# ///\n", "not as a list of texts"),
        ("# /// script\n# requires-python = 3\n# ///\n", "not as a text"),
        ("# /// script\n# dependencies = ['\0']\n# ///\n", "in a block that is no TOML"),
        ("# /// script\n# ///\n\n# /// script\n# ///\n", "in two blocks"),
        (f"# /// script\n# {'#' * 20_000}\n# ///\n", "of more than 20,000 characters"),
        ("# /// script\n# [tool.uv]\n# cache-dir = '/evil'\n# ///\n", "has settings for uv, which a judge cannot make"),
    ],
)
def test_a_block_that_cannot_be_read(file: Path, source: str, why: str) -> None:
    assert why in str(judge_source(file, source).error)


PATH = os.environ["PATH"]


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
def test_an_installed_package_is_not_started(tmp_path: Path) -> None:
    # A line of a .pth file that begins with "import" runs whenever Python starts with it.
    make_wheel(tmp_path, evil=f"import os; open({str(tmp_path / 'started')!r}, 'w')\n")
    python = Path(create_environment(sys.executable, ["shelf"], PATH))
    assert list(python.parent.parent.rglob("evil.pth"))
    assert not (tmp_path / "started").exists()


@needs_uv
def test_no_settings_and_no_environment_of_the_folder_that_we_stand_in(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
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
def test_a_python_that_is_not_here_is_not_downloaded(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server(("127.0.0.1", 0)) as mirror:
        monkeypatch.setenv("UV_PYTHON_INSTALL_MIRROR", f"http://127.0.0.1:{mirror.getsockname()[1]}")
        with pytest.raises(DependencyError, match="uv cannot provide it: "):
            create_environment(">=3.7,<3.8", [], PATH)
        mirror.setblocking(False)
        with pytest.raises(BlockingIOError):
            mirror.accept()


def test_an_environment_without_our_secrets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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
def test_it_changes_nothing_but_its_cache_and_the_environment(tmp_path: Path) -> None:
    script = f"touch $UV_CACHE_DIR/fine $TMPDIR/fine && touch {tmp_path}/evil; exit 1"
    with pytest.raises(DependencyError, match="Permission denied"):
        create_environment(sys.executable, [], fake_uv(tmp_path / "bin", script))
    assert (tmp_path / "cache" / "fine").exists()
    assert not (tmp_path / "evil").exists()


def test_its_deadline_holds_for_what_it_starts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
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


def test_it_is_looked_for_outside_of_the_task(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    task = tmp_path / "task"
    (task / "bin").mkdir(parents=True)
    (tmp_path / "link").symlink_to(task / "bin")
    (tmp_path / "tasks").mkdir()
    monkeypatch.chdir(tmp_path / "tasks")
    entries = ["", ".", "bin", "../task", str(task), str(task / "bin"), str(tmp_path / "link"), os.getcwd(), "/usr/bin"]
    monkeypatch.setenv("PATH", os.pathsep.join(entries))
    assert search_path(task) == "/usr/bin"
