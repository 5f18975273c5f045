"""The files for CI servers in docs/ci: each fits its server's schema, and all run the command that docs/ci.md runs."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

CI = Path(__file__).parents[1] / "docs" / "ci"
INSTALL = "python3 -m venv .venv && .venv/bin/pip install -q ."


def evaluation() -> str:
    """What docs/ci.md shows, and the check of the documents runs."""
    document = (CI.parent / "ci.md").read_text(encoding="utf-8")
    (command,) = re.findall(r"^\$ (guarantee-email-agent eval .*) > /dev/null$", document, re.MULTILINE)
    return f".venv/bin/{command}"


def content(name: str) -> Any:
    return yaml.safe_load((CI / name).read_text(encoding="utf-8"))


@pytest.mark.parametrize(("name", "schema"), [("github.yaml", "github-workflows"), ("gitlab.yaml", "gitlab-ci")])
def test_it_fits_the_schema_of_its_server(name: str, schema: str) -> None:
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
