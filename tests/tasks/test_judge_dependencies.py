"""Judges that declare packages: a wheel of our own stands in for one from a registry."""

from __future__ import annotations

import importlib.util
import shutil
import zipfile
from pathlib import Path

import pytest

from guarantee_email_agent.tasks.judge import judge

needs_uv = pytest.mark.skipif(
    not (shutil.which("uv") or importlib.util.find_spec("uv")),
    reason="there is no uv to provide dependencies: install it",
)
READS_SHELF = """\
def test(result):
    import shelf
    return {"passed": True, "feedback": shelf.WORD}
"""


@pytest.fixture
def wheel(tmp_path: Path) -> Path:
    file = tmp_path / "wheels" / "shelf-1.0-py3-none-any.whl"
    file.parent.mkdir()
    info = "shelf-1.0.dist-info"
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("shelf.py", "WORD = 'from the wheel'\n")
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: shelf\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nGenerator: test\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", f"shelf.py,,\n{info}/METADATA,,\n{info}/WHEEL,,\n{info}/RECORD,,\n")
    return file


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "cache"))
    monkeypatch.setenv("UV_NO_INDEX", "1")  # no test leaves this machine
    (tmp_path / "task").mkdir()
    return tmp_path / "task" / "test.py"


def declaring(*lines: str, judge: str = READS_SHELF) -> str:
    return "".join(f"# {line}\n" for line in ("/// script", *lines, "///")) + judge


@needs_uv
def test_a_declared_package_is_there(file: Path, wheel: Path) -> None:
    file.write_text(declaring(f'dependencies = ["shelf @ {wheel.as_uri()}"]'), encoding="utf-8")
    first, second = judge(file, {}), judge(file, {})
    assert (first.verdict, first.feedback, first.error) == ("passed", "from the wheel", None)
    assert second.feedback == "from the wheel"
    assert [each.name for each in file.parent.iterdir()] == ["test.py"]


@needs_uv
def test_another_version_of_the_judge_gets_what_it_declares(file: Path, wheel: Path) -> None:
    file.write_text(READS_SHELF, encoding="utf-8")
    assert "No module named 'shelf'" in str(judge(file, {}).error)
    file.write_text(declaring(f'dependencies = ["shelf @ {wheel.as_uri()}"]'), encoding="utf-8")
    assert judge(file, {}).verdict == "passed"


@needs_uv
def test_isolated_all_the_same(file: Path, wheel: Path) -> None:
    hang = "def test(result):\n    while True: pass\n"
    file.write_text(declaring(f'dependencies = ["shelf @ {wheel.as_uri()}"]', judge=hang), encoding="utf-8")
    assert judge(file, {}, 0.7).error == "gave no verdict within 0.7 s"


@needs_uv
def test_a_package_that_cannot_be_had(file: Path) -> None:
    file.write_text(declaring('dependencies = ["no-such-shelf==1.0"]'), encoding="utf-8")
    error = str(judge(file, {}).error)
    assert error.startswith("declares what it needs (no-such-shelf==1.0), and uv cannot provide it: ")


def test_without_uv(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "")
    monkeypatch.setattr("importlib.util.find_spec", lambda _: None)
    file.write_text(declaring('dependencies = ["shelf"]'), encoding="utf-8")
    assert judge(file, {}).error == (
        "declares what it needs (shelf), and there is no uv to provide it. Install uv: pip install uv"
    )


@pytest.mark.parametrize(
    "lines", [(), ('requires-python = ">=3.11"',), ("dependencies = []",), ("[tool.other]", "x = 1")], ids=str
)
def test_what_this_python_has_needs_no_uv(file: Path, monkeypatch: pytest.MonkeyPatch, lines: tuple[str, ...]) -> None:
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    monkeypatch.setattr("shutil.which", lambda _: pytest.fail("asked for uv"))
    fine = "def test(result): return {'passed': True, 'feedback': ''}\n"
    file.write_text(declaring(*lines, judge=fine), encoding="utf-8")
    assert judge(file, {}).verdict == "passed"


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
    file.write_text(source, encoding="utf-8")
    verdict = judge(file, {})
    assert verdict.verdict == "error"
    assert why in str(verdict.error)
