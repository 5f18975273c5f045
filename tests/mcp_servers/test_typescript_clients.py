"""Our servers as clients for TypeScript see them: the official SDK, and the Inspector's command line."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.services.call_errors import ERROR_META_KEY

MODULES = Path(os.environ.get("NODE_MODULES", Path(__file__).parents[2] / "node_modules"))
INSPECTOR = MODULES / ".bin" / "mcp-inspector"
CLIENT = Path(__file__).with_name("typescript_client.mjs")
NODE = shutil.which("node") or ""

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not NODE or not (MODULES / "@modelcontextprotocol" / "sdk").is_dir() or not INSPECTOR.exists(),
        reason="needs node, @modelcontextprotocol/sdk and @modelcontextprotocol/inspector (npm)",
    ),
]


@pytest.fixture
def server(tmp_path: Path) -> list[str]:
    """The command line of the warranty server with one device."""
    table = tmp_path / "warranties.csv"
    table.write_text("serial_number,expiration_date,coverage\nSN-100,2030-01-31,full\n")
    return [sys.executable, "-m", "guarantee_email_agent.mcp_servers.warranty", "--file", str(table)]


def run(*command: object) -> Any:
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_sdk_reads_answers_and_errors(server: list[str]) -> None:
    calls = [["check_warranty", {"serial_number": "sn100"}], ["check_warranty", {"serial_number": ""}], ["nothing", {}]]
    found = run(NODE, CLIENT, MODULES, json.dumps(calls), *server)
    answer, bad_argument, unknown_tool = found["answers"]
    assert answer["structuredContent"]["status"] == "valid"
    assert "refused" not in bad_argument, bad_argument
    assert bad_argument["isError"] is True
    assert bad_argument["content"][0]["text"].startswith("warranty_api_invalid_argument: ")
    assert bad_argument["_meta"][ERROR_META_KEY]["code"] == "warranty_api_invalid_argument"
    assert unknown_tool["_meta"][ERROR_META_KEY]["code"] == "warranty_api_unknown_tool"
    (tool,) = found["tools"]
    assert (tool["title"], tool["annotations"]["idempotentHint"]) == ("Check warranty", True)


def test_the_inspector_reads_answers_and_errors(server: list[str]) -> None:
    def call(number: str) -> Any:
        arguments = ("--method", "tools/call", "--tool-name", "check_warranty", "--tool-arg", f"serial_number={number}")
        return run(INSPECTOR, "--cli", *server, *arguments)

    assert call("sn100")["structuredContent"]["status"] == "valid"
    refused = call("x" * 101)
    assert refused["isError"] is True
    assert refused["_meta"][ERROR_META_KEY]["code"] == "warranty_api_invalid_argument"
