"""The files for CI servers in docs/ci: each fits its server's schema, and all run the command that docs/ci.md runs.

Of the project's own CI, .ci/run: what its steps end with, where nothing may be mounted."""

import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from subprocess import PIPE
from typing import Any

import pytest
import yaml
from waiting import PATIENCE_S, wait_until

CI = Path(__file__).parents[1] / "docs" / "ci"
INSTALL = (
    "python3 -m venv .venv && .venv/bin/pip install -q --require-hashes -r requirements/run.txt "
    "-r requirements/build.txt && .venv/bin/pip install -q --no-deps --no-build-isolation ."
)


def evaluation() -> str:
    """What docs/ci.md shows, and the check of the documents runs."""
    document = (CI.parent / "ci.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^\$ (guarantee-email-agent eval .*) > /dev/null$", document, re.MULTILINE)
    return f".venv/bin/{command}"


def content(name: str) -> Any:
    return yaml.safe_load((CI / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "schema"), [("github.yaml", "github-workflows"), ("gitlab.yaml", "gitlab-ci")])
def test_it_fits_the_schema_of_its_server(name: str, schema: str) -> None:
    pytest.importorskip("check_jsonschema", reason="check_jsonschema is not installed: uv sync --group ci")
    checker = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", f"vendor.{schema}"]
    done = subprocess.run([*checker, CI / name], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout.strip()) == (0, "ok -- validation done")


def test_github_runs_what_the_document_runs() -> None:
    steps = content("github.yaml")["jobs"]["evaluation"]["steps"]
    assert [step["run"] for step in steps if "run" in step] == [INSTALL, evaluation()]


def test_gitlab_runs_what_the_document_runs() -> None:
    assert content("gitlab.yaml")["evaluation"]["script"] == [INSTALL, evaluation()]


def test_jenkins_runs_what_the_document_runs() -> None:
    assert re.findall(r"^ +sh '(.*)'$", (CI / "Jenkinsfile").read_text(encoding="utf-8"), re.MULTILINE) == [
        INSTALL,
        evaluation(),
    ]


def test_every_report_that_is_written_is_kept() -> None:
    written = set(re.findall(r"report\.\w+", evaluation()))
    gitlab = content("gitlab.yaml")["evaluation"]["artifacts"]
    assert {*gitlab["paths"], gitlab["reports"]["junit"]} == written
    upload = content("github.yaml")["jobs"]["evaluation"]["steps"][-1]
    assert upload["with"]["path"] == "report.*"
    assert upload["if"] == "${{ !cancelled() }}"
    assert "artifacts: 'report.*'" in (CI / "Jenkinsfile").read_text(encoding="utf-8")


@pytest.fixture
def begin_ci(tmp_path: Path) -> Callable[[str], subprocess.Popen[str]]:
    """Begins steps as .ci/run would, on a machine that lets nobody mount anything."""
    programs, temporary = tmp_path / "bin", tmp_path / "temporary"
    for folder in (programs, temporary, tmp_path / ".ci"):
        folder.mkdir()
    for name in ("mount", "umount"):
        (programs / name).write_text("#!/bin/sh\nexit 32\n", encoding="utf-8")
        (programs / name).chmod(0o755)
    set_up, _, rest = (CI.parents[1] / ".ci" / "run").read_text(encoding="utf-8").partition("\n# What the tests work")
    assert rest
    environment = {
        **os.environ,
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PIP_INDEX_URL": "https://packages.invalid/simple",
        "TMPDIR": str(temporary),
    }

    def begin(steps: str) -> subprocess.Popen[str]:
        script = tmp_path / ".ci" / "run"
        script.write_text(f"{set_up}\n{steps}\n", encoding="utf-8")
        return subprocess.Popen(
            ["bash", script], env=environment, stdout=PIPE, stderr=PIPE, text=True, start_new_session=True
        )

    return begin


@pytest.fixture
def ci_run(
    begin_ci: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> Callable[[str], subprocess.CompletedProcess[str]]:
    def execute(steps: str) -> subprocess.CompletedProcess[str]:
        with begin_ci(steps) as process:
            output, errors = process.communicate()
        assert not list((tmp_path / "temporary").iterdir())
        return subprocess.CompletedProcess(process.args, process.returncode, output, errors)

    return execute


def test_whoever_ends_it_ends_its_steps_and_what_they_started(
    begin_ci: Callable[[str], subprocess.Popen[str]], tmp_path: Path
) -> None:
    with begin_ci("both a 'touch a; sleep 1000' b 'touch b; sleep 1000 & wait'") as process:
        wait_until(lambda: (tmp_path / "a").exists() and (tmp_path / "b").exists())
        process.terminate()
        process.communicate(timeout=PATIENCE_S)  # ends with the last of those that write there
    assert process.returncode == -signal.SIGTERM
    assert not list((tmp_path / "temporary").iterdir())


def test_where_nothing_may_be_mounted_what_passed_has_passed(
    ci_run: Callable[[str], subprocess.CompletedProcess[str]],
) -> None:
    done = ci_run("both a 'echo of a' b 'echo of b'\nstep c 'echo of c'\necho end")
    assert done.returncode == 0
    assert re.findall(r"^(of .|end)$", done.stdout, re.MULTILINE) == ["of a", "of b", "of c", "end"]


@pytest.mark.parametrize("steps", ["both a 'exit 7' b 'echo of b'", "both b 'echo of b' a 'exit 7'", "step a 'exit 7'"])
def test_a_step_that_fails_is_named_and_ends_it(
    ci_run: Callable[[str], subprocess.CompletedProcess[str]], steps: str
) -> None:
    done = ci_run(f"{steps}\necho end")
    assert done.returncode == 1
    assert "##### FAILED: a" in done.stdout
    assert ("of b" in done.stdout) == steps.startswith("both")
    assert "end" not in done.stdout.split()


def test_uv_is_installed_in_its_pinned_version_everywhere() -> None:
    root = CI.parents[1]
    files = [root / "README.md", root / "CONTRIBUTING.md", root / ".ci" / "run", *root.glob("docs/*.md"), *CI.iterdir()]
    installs = re.findall(r"pip install [^&`\n]*\buv\b[^&`\n]*", "\n".join(file.read_text("utf-8") for file in files))
    assert {"-r requirements/uv.txt" in install for install in installs} == {True}
