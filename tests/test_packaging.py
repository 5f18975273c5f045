"""What a person gets who installs the package instead of cloning the repository."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parent.parent


def _uv() -> str:
    """`uv run` tells its own path; started otherwise, uv stands beside this Python or on the path."""
    places = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', '')}"
    uv = os.environ.get("UV") or shutil.which("uv", path=places)
    assert uv, "uv builds the package. Install it: python3 -m pip install uv"
    return uv


def _run(*command: str | Path, cwd: Path) -> str:
    environment = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        encoding="utf-8",
        check=False,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built by way of the source distribution, so that what that leaves out is missing here too."""
    folder = tmp_path_factory.mktemp("dist")
    _run(_uv(), "build", "--quiet", "--python", sys.executable, "--out-dir", folder, ROOT, cwd=folder)
    return next(folder.glob("*.whl"))


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of a new environment that holds the wheel and what it depends on."""
    folder = tmp_path_factory.mktemp("installed")
    _run(_uv(), "venv", "--quiet", "--python", sys.executable, "environment", cwd=folder)
    python = folder / "environment" / ("Scripts" if os.name == "nt" else "bin") / "python"
    _run(_uv(), "pip", "install", "--quiet", "--python", python, wheel, cwd=folder)
    return python


def test_wheel_carries_every_instruction_and_scenario(wheel: Path) -> None:
    edited = [
        ROOT / "config.yaml",
        *(ROOT / "instructions").rglob("*.md"),
        *(ROOT / "evals" / "scenarios").rglob("*.yaml"),
        *(ROOT / "evals" / "scenarios").rglob("schema.json"),
    ]
    wanted = {f"guarantee_email_agent/defaults/{path.relative_to(ROOT).as_posix()}" for path in edited}
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())


def test_wheel_carries_the_phrases_of_every_language(wheel: Path) -> None:
    folder = "guarantee_email_agent/email/languages"
    wanted = {f"{folder}/{path.name}" for path in (ROOT / "src" / folder).iterdir()}
    assert wanted <= set(zipfile.ZipFile(wheel).namelist())


def test_wheel_says_that_it_is_typed(wheel: Path) -> None:
    assert "guarantee_email_agent/py.typed" in zipfile.ZipFile(wheel).namelist()


def test_installed_module_passes_its_suite_outside_a_checkout(python: Path, tmp_path: Path) -> None:
    assert "Eval passed!" in _run(python, "-m", "guarantee_email_agent", "eval", cwd=tmp_path)


def test_installed_console_script_is_the_same_program(python: Path, tmp_path: Path) -> None:
    assert "Eval passed!" in _run(python.with_name("guarantee-email-agent"), "eval", cwd=tmp_path)
