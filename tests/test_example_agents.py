"""The agents in `examples/agents`, each built with a framework, judged by the scenarios beside them."""

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "agents"
TIMEOUT_S = 900  # a framework takes seconds to start, on a busy machine half a minute, and does so for each scenario
BOOKINGS = [f"booking_{number:03}" for number in range(1, 5)]
FAULT = 'email["headers"].get("Reply-To", email["from"])'


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "agents")
    return tmp_path / "agents"


def beside_the_model(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    whole = [sys.executable, "scripted_model.py", *command]
    return subprocess.run(whole, cwd=folder, capture_output=True, text=True, timeout=TIMEOUT_S, check=False)


def judged(folder: Path, agent: str, *only: str, suite: str = "scenarios") -> dict[str, list[str]]:
    """The failures of each scenario. agent: a program, or the address of a service."""
    options = ("--eval-dir", suite, "--jobs", "2", "--agent-timeout", "300", "--json", "report.json")
    chosen = ("--only", *only) if only else ()
    agent_option = ("--agent", agent if agent.startswith("http:") else f"command:{sys.executable} {agent}")
    done = beside_the_model(
        folder, sys.executable, "-m", "guarantee_email_agent", "eval", *options, *agent_option, *chosen
    )
    assert done.returncode in (0, 4), done.stderr
    results: list[dict[str, Any]] = json.loads((folder / "report.json").read_text())["results"]
    return {result["scenario_id"]: result["failures"] for result in results}


@pytest.mark.slow
def test_the_agent_without_a_mail_passes_and_a_fault_of_it_is_found(folder: Path) -> None:
    agent, suite = folder / "calendar" / "calendar_agent.py", "calendar/scenarios"
    assert judged(folder, f"calendar/{agent.name}", suite=suite) == {key: [] for key in BOOKINGS}
    agent.write_text(agent.read_text().replace('slots"]:', 'slots"][::-1]:'))
    (failure, *_) = judged(folder, f"calendar/{agent.name}", "booking_001", suite=suite)["booking_001"]
    assert failure.startswith("answer.json: start: another value is there")


@pytest.mark.slow
@pytest.mark.parametrize("framework", ["langgraph", "pydantic_ai"])
def test_it_passes_in_a_framework_too(folder: Path, framework: str) -> None:
    chosen = ("booking_002", "booking_004")  # every start of the framework takes seconds
    found = judged(folder, f"calendar/calendar_{framework}.py", *chosen, suite="calendar/scenarios")
    assert found == {key: [] for key in chosen}


@pytest.mark.slow
def test_it_passes_as_a_service(folder: Path) -> None:
    command = [sys.executable, "calendar/calendar_http.py"]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, text=True) as service:
        try:
            address = service.stdout.readline().strip()
            assert judged(folder, address, suite="calendar/scenarios") == {key: [] for key in BOOKINGS}
        finally:
            service.kill()


@pytest.mark.slow
def test_the_agent_in_pydantic_ai_passes(folder: Path) -> None:
    chosen = ("order_status_001", "no_answer_003")
    assert judged(folder, "pydantic_ai_agent.py", *chosen) == {name: [] for name in chosen}


@pytest.mark.slow
def test_the_fault_of_the_agent_in_langgraph_is_found(folder: Path) -> None:
    failures = judged(folder, "langgraph_agent.py", "order_status_001", "order_status_003")
    (failure,) = failures.pop("order_status_003")
    assert failure.startswith("email_sent: a mail went to somebody else")
    assert "somebody.else@example.com" in failure
    assert failures == {"order_status_001": []}


@pytest.mark.slow
def test_without_the_fault_it_passes(folder: Path) -> None:
    agent = folder / "langgraph_agent.py"
    text = agent.read_text()
    assert text.count(FAULT) == 1
    agent.write_text(text.replace(FAULT, 'email["from"]'))
    assert judged(folder, agent.name, "order_status_003") == {"order_status_003": []}


def test_the_program_beside_the_model_has_its_address_and_gives_the_exit_code(folder: Path) -> None:
    program = "import os, sys; print(os.environ['ANTHROPIC_BASE_URL']); sys.exit(3)"
    done = beside_the_model(folder, sys.executable, "-c", program)
    assert done.stdout.startswith("http://127.0.0.1:")
    assert done.returncode == 3


def test_a_program_that_is_not_there_is_told_in_one_line(folder: Path) -> None:
    done = beside_the_model(folder, "no-such-program")
    assert done.stderr == "scripted_model.py: no-such-program cannot be started: No such file or directory\n"
    assert done.returncode == 2
