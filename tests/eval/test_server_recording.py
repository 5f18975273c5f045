"""`mock record` as an agent meets it: a program on stdio between it and the real server."""

import asyncio
import json
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from command_line import MODULE, environment, run_program
from mcp_sessions import PROGRAMS, Script, tool

from guarantee_email_agent.eval.loader import EvalLoader

KEY: Final = "sk_live_4eC39HqLyjWDarjtT1zdp7dc"
SAID: Final = {
    "plain": KEY,
    "of a login": "Bearer eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJqYW5lIn0.c2lnbmF0dXJl",
    "of a database": "see postgres://shop:open-sesame@db.example.com/shop",
    "of a form": "POST password=open-sesame&user=1",
    "of two lines": "-----BEGIN RSA PRIVATE KEY-----\nMIIopen-sesame\n-----END RSA PRIVATE KEY-----",
}
GUEST: Final = {"guest": "Jane Doe", "mail": "jane.doe@firm.com", "phone": "+49 171 5550123", "number": 1234567}
GUESTS: Final = f"{'Uwe Otto, ' * 7}Berta Kowalska"
OF_ID: Final = {"rooms": {"B-4711": {"by": {"Jane": 1234567.0}}}, "guests": GUESTS}
BOOKED: Final = {"id": "B-4711", **GUEST, **OF_ID, "api_key": "hunter2hunter2", "notes": list(SAID.values())}
PRIVATE: Final = ("Jane", "Doe", "Kowalska", "firm.com", "5550123", "1234567", "4711", "hunter2", KEY, "eyJ", "sesame")
MAP: Final = [{"type": "text", "text": "The map"}, {"type": "image", "data": "Zm9v", "mimeType": "image/png"}]
TOOLS: Final = (
    tool("book", "guest", "filter"),
    tool("find", "id"),
    tool("map"),
    tool("list", "iso8601"),
    tool("cancel"),
    tool("wait"),
)
REPLAYER: Final = """
from mcp import Client

async def agent(task):
    async with Client(task["mcp_servers"]["hotel"]["url"]) as hotel:
        for tool, arguments in CALLS:
            await hotel.call_tool(tool, arguments)
"""


def said(text: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **more}


@pytest.fixture
def script(tmp_path: Path) -> Script:
    script = Script(tmp_path / "script.json")
    answers = {
        "book": said("booked", structuredContent=BOOKED),
        "find": said(json.dumps(GUEST)),
        "map": {"content": MAP},
    }
    script.write(*TOOLS, **answers, cancel={"code": -32000, "message": "not today"}, wait=None)
    return script


def record(folder: Path, script: Script, *calls: tuple[str, dict[str, Any]]) -> tuple[list[Any], str]:
    """What the agent was answered, and what the program said."""
    from mcp import Client, StdioServerParameters
    from mcp.client.stdio import stdio_client

    server = [sys.executable, str(PROGRAMS / "scripted_tools.py"), str(script.file)]
    command = [*MODULE, "mock", "record", "hotel", "--out", str(folder / "out"), "--", *server]
    parameters = StdioServerParameters(command=command[0], args=command[1:], env=environment())

    async def work(errors: Any) -> list[Any]:
        async with Client(stdio_client(parameters, errors)) as client:
            assert [each.name for each in (await client.list_tools()).tools] == [each["name"] for each in TOOLS]
            answers = [await client.call_tool(name, arguments) for name, arguments in calls if name != "wait"]
            if "wait" in dict(calls):
                with suppress(TimeoutError):  # the server never answers
                    await asyncio.wait_for(client.call_tool("wait", {}), 0.2)
            return answers

    with (folder / "stderr").open("w") as errors:
        answers = asyncio.run(work(errors))
    return answers, (folder / "stderr").read_text()


@pytest.mark.slow
def test_a_scenario_made_of_what_passed_runs_at_once(tmp_path: Path, script: Script) -> None:
    calls: list[tuple[str, dict[str, Any]]] = [
        ("book", {"guest": GUEST, "filter": {"contains": "sea"}}),
        ("find", {"id": "B-4711"}),
        ("find", {"id": "B-4711"}),
        ("map", {}),
        ("cancel", {}),
        ("wait", {}),
    ]
    answers, told = record(tmp_path, script, *calls)

    assert answers[0].structured_content == BOOKED
    assert answers[3].content[1].data == "Zm9v"
    assert (answers[4].is_error, answers[4].content[0].text) == (True, "not today")
    path = tmp_path / "out" / "hotel_001.yaml"
    assert f"✓ wrote {path}: 6 calls of 5 tools" in told
    assert ("1 address" in told, "6 secrets" in told, "✗" in told) == (True, True, False), told
    assert [word for word in PRIVATE if word in path.read_text()] == []
    case = EvalLoader(any_agent=True).load_eval_test_case(path)
    mocks: Any = case.input.mock_responses["hotel"]
    expected = case.expected_output.calls
    assert case.review
    assert [(call.tool, call.times) for call in expected] == [("book", 1), ("find", 2), ("map", 1), ("cancel", 1)]
    assert mocks["map"][0]["content"] == [MAP[0], {"type": "image", "mimeType": "image/png"}]
    assert mocks["cancel"] == [{"when": {}, "answer": "not today", "is_error": True}]
    assert mocks["wait"] == [{"when": {}, "error": "timeout"}]
    # The same thing is the same everywhere: what was booked is what is found.
    booked = mocks["book"][0]
    assert booked["when"]["filter"] == {"equals": {"contains": "sea"}}
    assert json.loads(mocks["find"][0]["answer"]) == booked["when"]["guest"]
    assert mocks["find"][0]["when"]["id"] == booked["answer"]["id"]

    again = [("cancel", {}), ("map", {}), ("book", {"guest": booked["when"]["guest"], "filter": {"contains": "sea"}})]
    assert_passes(tmp_path, [*again, *[("find", mocks["find"][0]["when"])] * 2])


def assert_passes(folder: Path, calls: list[tuple[str, dict[str, Any]]]) -> None:
    (folder / "replayer.py").write_text(REPLAYER.replace("CALLS", repr(calls)))
    run = run_program(folder, "eval", "--eval-dir", "out", "--agent", "python:replayer:agent", program=MODULE)
    assert (run.returncode, "Pass rate: 1/1 (100%)" in run.stdout, run.stderr) == (0, True, ""), run.stdout


@pytest.mark.slow
def test_answers_that_differ_come_in_turn_and_what_asks_for_more_comes_first(tmp_path: Path) -> None:
    script = Script(tmp_path / "script.json")
    one, two = ({"tools": TOOLS, "answers": {"list": said(word)}} for word in ("one", "two"))
    # The file is read for each message, and what comes later holds from the second call on.
    script.file.write_text(json.dumps({**one, "later": two}))
    calls: list[tuple[str, dict[str, Any]]] = [("list", {}), ("list", {}), ("list", {"iso8601": "rooms"})]
    record(tmp_path, script, *calls)
    mocks: Any = (
        EvalLoader(any_agent=True)
        .load_eval_test_case(tmp_path / "out" / "hotel_001.yaml")
        .input.mock_responses["hotel"]
    )
    assert mocks["list"][0] == {"when": {"iso8601": "rooms"}, "answer": "two"}
    assert mocks["list"][1]["when"] == {}
    assert mocks["list"][1]["answers"] == [{"answer": "one"}, {"answer": "two"}]
    assert_passes(tmp_path, calls)


def test_without_a_call_nothing_is_written(tmp_path: Path, script: Script) -> None:
    _, told = record(tmp_path, script)
    assert "hotel: no call was made, so there is nothing to keep" in told
    assert list((tmp_path / "out").iterdir()) == []


def test_a_server_that_is_none_is_one_line(tmp_path: Path) -> None:
    command = [*MODULE, "mock", "record", "hotel", "--out", "out", "--", sys.executable, "-c", "exit(7)"]
    run = subprocess.run(
        command,
        cwd=tmp_path,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (run.returncode, run.stdout, run.stderr.count("\n")) == (3, "", 1), run.stderr
