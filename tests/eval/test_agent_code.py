"""What `--agent` names, as far as a command line and source show it."""

import os
import sys
from pathlib import Path

import pytest

from guarantee_email_agent.eval.verdict_inputs import follow_agent

OUR_PYTHON = sys.executable
NOT_KNOWN = "which shelf the agent's Python has is not known"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    for name, source in {
        "agent.py": "import os, helper\nos.environ['MODE'], os.environ['MCP_CONFIG']\n",
        "helper.py": "import shelf\n",
        "pkg/__init__.py": "",
        "pkg/__main__.py": "from . import work\n",
        "pkg/work.py": "",
        "run.sh": "#!/bin/bash\nexec python agent.py --config settings.json\n",
        "settings.json": "{}",
        "bin/python9": "binary",
    }.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(source)
    for name in ("bin/python9", "run.sh"):
        (tmp_path / name).chmod(0o700)
    return tmp_path


def files(agent: str) -> set[str]:
    return {os.path.relpath(path) for path in follow_agent(agent).files}


def test_our_own_agent_is_the_program() -> None:
    assert not any(follow_agent(None))


def test_a_url_tells_nothing_of_what_answers() -> None:
    assert follow_agent("http://127.0.0.1:1/x").unknown == ("what answers at the agent's URL cannot be told",)


@pytest.mark.parametrize("form", ["command:{python} agent.py", "command:{python} -u agent.py", "python:agent:main"])
def test_a_python_file_is_followed_in_our_python(form: str) -> None:
    agent = form.format(python=OUR_PYTHON)
    code = follow_agent(agent)
    assert files(agent) == {"agent.py", "helper.py"}
    assert (code.modules, code.unknown) == ({"shelf"}, ())
    assert "MODE" in code.variables


def test_what_another_python_has_installed_is_not_known() -> None:
    code = follow_agent("command:bin/python9 agent.py")
    assert files("command:bin/python9 agent.py") == {"bin/python9", "agent.py", "helper.py"}
    assert (code.modules, code.unknown, code.variables) == (set(), (NOT_KNOWN,), {"MODE"})


def test_a_module_is_found_where_pythonpath_says(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    wanted = {"pkg/__init__.py", "pkg/__main__.py", "pkg/work.py"}
    agent = f"command:env A=B {OUR_PYTHON} -m pkg"
    assert files(agent) == wanted
    assert follow_agent(agent).modules == {"pkg"}  # a program that starts in an empty folder does not find it there
    monkeypatch.setenv("PYTHONPATH", str(folder))
    assert files(agent) == wanted
    assert follow_agent(agent).modules == set()


@pytest.mark.parametrize(
    ("command", "found", "unknown"),
    [
        ("bash run.sh", {"run.sh", "agent.py", "helper.py", "settings.json"}, "what a shell starts is not followed"),
        ("./run.sh", {"run.sh", "agent.py", "helper.py", "settings.json"}, "what a shell starts is not followed"),
        ("sh -c 'python agent.py'", {"agent.py", "helper.py"}, "what a shell starts is not followed"),
        ("uv run agent.py", {"agent.py", "helper.py"}, "uv chooses Python and packages when it runs"),
        ("timeout 9 python agent.py", {"agent.py", "helper.py"}, "the libraries of timeout are not followed"),
        ("bin/python9 agent.py --c=settings.json", {"settings.json"}, NOT_KNOWN),
        ("bin/python9 agent.py pkg", {"agent.py"}, "the files in pkg are not followed"),
    ],
)
def test_what_a_wrapper_starts_is_looked_at_and_said_to_be_incomplete(
    command: str, found: set[str], unknown: str
) -> None:
    code = follow_agent(f"command:{command}")
    assert found <= files(f"command:{command}")
    assert unknown in code.unknown


def test_a_variable_that_the_command_sets_is_known() -> None:
    assert follow_agent(f"command:env MODE=a {OUR_PYTHON} agent.py").variables == set()
