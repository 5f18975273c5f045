"""Tasks as others publish them: an instruction, a container's files that are not used here, and a judge that looks
for an answer in tags. They ask for nothing, and need pages of a network."""

from __future__ import annotations

import http.server
import json
import shutil
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest
from tasks_and_sandboxes import SolveFolders

from guarantee_email_agent import cli
from guarantee_email_agent.sandbox.embedded import BROWSERS

JUDGE = r"""
import json
import re


def answer_in(text):
    found = re.search(r"<answer>(.*?)</answer>", text or "", re.DOTALL)
    return found and found.group(1).strip()


def test(result: dict) -> dict:
    answer = answer_in(result.get("task_result"))
    for message in reversed(result.get("conversation") or []):
        for call in message.get("tool_calls") or []:
            if call["function"]["name"] == "task_complete":
                answer = answer or answer_in(json.loads(call["function"]["arguments"]).get("result"))
        answer = answer or answer_in(message.get("content"))
    passed = result.get("status") == "success" and answer == "KETTLE"
    return {"passed": passed, "feedback": f"got {answer}", "details": {"answer": answer}}
"""
PAGE = b"<title>Shop</title><button id=b onclick=\"document.title = 'KETTLE'\">Show the code</button>"


@pytest.fixture
def page() -> Iterator[str]:
    """Address of a page on this machine, which a sandbox of its own network does not reach."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.send_header("Content-Length", str(len(PAGE)))
            self.end_headers()
            self.wfile.write(PAGE)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the name that the standard library gives
            """Nobody reads it."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/"
        server.shutdown()
        thread.join()


@pytest.fixture
def folders(tmp_path: Path) -> SolveFolders:
    task = tmp_path / "tasks" / "kettle-code"
    (task / "assets").mkdir(parents=True)
    (task / "assets" / "series.csv").write_text("date,y\n2024-01-01,1\n")
    (task / "task.yaml").write_text("instruction: |-\n  Find the code.\n\n  <answer>CODE</answer>\n")
    (task / "test.py").write_text(JUDGE)
    (task / "Dockerfile").write_text("FROM ghcr.io/agent-infra/sandbox:latest\n")
    (task / "docker-compose.yaml").write_text("services: {client: {build: ., ports: ['${HOST_PORT}:8080']}}\n")
    return SolveFolders(tmp_path)


def solve(folders: SolveFolders, page: str, *options: str) -> list[str]:
    """What the agent got for its actions."""
    script = folders.folder / "script.json"
    actions = [
        {"action_type": "shell", "command": "cat /home/gem/assets/series.csv"},
        {"action_type": "browser_navigate", "url": page},
        {"action_type": "dom_click", "selector": "#b"},
        {"action_type": "dom_evaluate", "expression": "document.title"},
        {"action_type": "task_complete", "result": "<answer>KETTLE</answer>"},
    ]
    script.write_text(json.dumps(actions))
    arguments = ["--agent", "script", "--script", str(script), "--output-dir", str(folders.results), *options]
    assert cli.run(["solve", str(folders.folder / "tasks"), *arguments]) == 0
    return [step["feedback"]["message"] for step in folders.record("kettle-code")["execution_trace"]]


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason=f"there is none of {', '.join(BROWSERS)}")
def test_a_public_task_runs_as_it_is_with_the_network_where_it_is_allowed(folders: SolveFolders, page: str) -> None:
    series, _, _, title, _ = solve(folders, page, "--allow", "network")
    assert series == "date,y\n2024-01-01,1"
    assert title == "KETTLE"


@pytest.mark.slow
@pytest.mark.skipif(not any(map(shutil.which, BROWSERS)), reason=f"there is none of {', '.join(BROWSERS)}")
def test_without_leave_it_has_no_network(folders: SolveFolders, page: str) -> None:
    assert "net::ERR_" in solve(folders, page)[1]
