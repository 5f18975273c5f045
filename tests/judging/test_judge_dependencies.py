"""Judges that declare packages: a wheel of our own stands in for one from a registry."""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from guarantee_email_agent.judging.judge import judge
from guarantee_email_agent.judging.verdict import Verdict

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
    file.parent.mkdir()
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


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_NO_INDEX", "1")  # no test leaves this machine
    (tmp_path / "task").mkdir()
    return tmp_path / "task" / "test.py"


def declaring(*lines: str, judge: str = READS_SHELF) -> str:
    return "".join(f"# {line}\n" for line in ("/// script", *lines, "///")) + judge


def needing(package: Path, judge: str = READS_SHELF) -> str:
    return declaring(f'dependencies = ["shelf @ {package.as_uri()}"]', judge=judge)


def judge_source(file: Path, source: str, timeout_s: float = 60) -> Verdict:
    file.write_text(source, encoding="utf-8")
    return judge(file, {}, timeout_s)


@needs_uv
def test_a_declared_package_is_there(file: Path, wheel: Path) -> None:
    first, second = (judge_source(file, needing(wheel)) for _ in range(2))
    assert (first.verdict, first.feedback, first.error) == ("passed", "from the wheel", None)
    assert second.feedback == "from the wheel"
    assert [each.name for each in file.parent.iterdir()] == ["test.py"]


@needs_uv
def test_another_version_of_the_judge_gets_what_it_declares(file: Path, wheel: Path) -> None:
    assert "No module named 'shelf'" in str(judge_source(file, READS_SHELF).error)
    assert judge_source(file, needing(wheel)).verdict == "passed"


@needs_uv
def test_isolated_all_the_same(file: Path, wheel: Path) -> None:
    hang = "def test(result):\n    while True: pass\n"
    assert judge_source(file, needing(wheel, hang), 0.7).error == "gave no verdict within 0.7 s"


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
        assert judge_source(file, f"{needing(wheel)}# {number}\n").verdict == "passed"
    assert len(list(temporary.glob("judge-packages-*"))) == 1


@needs_uv
def test_what_was_installed_goes_with_our_process(file: Path, wheel: Path, tmp_path: Path) -> None:
    file.write_text(needing(wheel), encoding="utf-8")
    program = (
        "from pathlib import Path\nfrom guarantee_email_agent.judging.judge import judge\n"
        f"print(judge(Path({str(file)!r}), {{}}).feedback)\n"
    )
    (tmp_path / "temporary").mkdir()
    environment = {**os.environ, "TMPDIR": str(tmp_path / "temporary")}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True)
    assert done.stdout == "from the wheel\n"
    assert list((tmp_path / "temporary").iterdir()) == []


class TestNothingRunsOutsideOfIsolation:
    """Installing is done by our own user, with our environment: a judge's packages must have no say in it."""

    @needs_uv
    def test_no_package_is_built(self, file: Path, tmp_path: Path) -> None:
        package = tmp_path / "package"
        package.mkdir()
        (package / "pyproject.toml").write_text(
            '[build-system]\nrequires = []\nbuild-backend = "backend"\nbackend-path = ["."]\n'
            '[project]\nname = "shelf"\nversion = "1.0"\n'
        )
        (package / "backend.py").write_text(f"open({str(tmp_path / 'built')!r}, 'w')\n")
        assert "Building source distributions is disabled" in str(judge_source(file, needing(package)).error)
        assert not (tmp_path / "built").exists()

    @needs_uv
    def test_an_installed_package_is_not_started(self, file: Path, tmp_path: Path) -> None:
        # A line of a .pth file that begins with "import" runs whenever Python starts with it.
        wheel = make_wheel(tmp_path, evil=f"import os; open({str(tmp_path / 'started')!r}, 'w')\n")
        for number in range(2):
            assert judge_source(file, f"{needing(wheel)}# {number}\n").verdict == "passed"
        assert not (tmp_path / "started").exists()

    def test_uv_takes_no_settings_from_a_judge(self, file: Path, tmp_path: Path) -> None:
        source = declaring("dependencies = []", "[tool.uv]", f"cache-dir = '{tmp_path}/evil'")
        error = "has settings for uv, which a judge cannot make. Remove [tool.uv] from the block"
        assert judge_source(file, source).error == error

    @needs_uv
    def test_nor_from_the_folder_that_we_stand_in(
        self, file: Path, wheel: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.chdir(file.parent)
        (file.parent / "uv.toml").write_text("nonsense = [\n")
        assert judge_source(file, needing(wheel)).feedback == "from the wheel"

    @needs_uv
    @pytest.mark.parametrize("declared", ["--index-url=http://127.0.0.1:9/", "-r /etc/passwd", "--editable=."])
    def test_an_option_is_no_package(self, file: Path, declared: str) -> None:
        assert "Failed to parse" in str(judge_source(file, declaring(f'dependencies = ["{declared}"]')).error)


def test_without_uv(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    assert judge_source(file, declaring('dependencies = ["shelf"]')).error == (
        "declares what it needs (shelf), and there is no uv to provide it. Install uv: pip install uv"
    )


@pytest.mark.parametrize(
    "lines",
    [(), ('requires-python = ">=3.11"',), ("dependencies = []",), ("[tool.other]", "x = 1"), ("tool = 1",)],
    ids=str,
)
def test_what_this_python_has_needs_no_uv(file: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...]) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda _: pytest.fail("asked for uv"))
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
    ],
)
def test_a_block_that_cannot_be_read(file: Path, source: str, why: str) -> None:
    assert why in str(judge_source(file, source).error)
