import html as html_module
import io
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from kept_suite import KeptSuite
from mcp_by_hand import write_program
from scenario_folder import BUILT_IN, ScenarioFolder

from guarantee_email_agent.eval.agents.evaluation import find_agent
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.views.result_view import print_result
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.terminal import Terminal

pytestmark = pytest.mark.slow

HEALTHY = """
found = call("orders", "get_order", id="A-1")["structuredContent"]
send(body="Your order is " + found["status"])
print(json.dumps({"task_result": "answered", "iterations": 2}))
"""
SCENARIO: dict[str, Any] = {
    "description": "A customer asks where an order is",
    "category": "orders",
    "created": "2026-11-01",
    "input": {
        "email": {
            "subject": "My order",
            "body": "Where is A-1?",
            "from": "customer@example.com",
            "received": "2026-11-01T10:00:00Z",
        },
        "mock_responses": {"orders": {"get_order": [{"when": {"id": "A-1"}, "answer": {"status": "shipped"}}]}},
    },
    "expected_output": {
        "email_sent": True,
        "ticket_created": False,
        "response_body_contains": ["shipped"],
        "calls": [
            {"server": "orders", "tool": "get_order", "arguments": {"id": "A-1"}, "times": 1},
            {"server": "mail", "tool": "send_reply"},
        ],
        "ordered": True,
        "never_called": [{"server": "ticketing"}],
    },
}


CALL_OVER_STDIO = """
import itertools, subprocess
numbers = itertools.count(1)
def call(server, tool, **arguments):
    said, params = task["mcp_servers"][server], {"name": tool, "arguments": arguments}
    body = json.dumps({"jsonrpc": "2.0", "id": next(numbers), "method": "tools/call", "params": params})
    command = [said["command"], *said["args"]]
    done = subprocess.run(command, env=said["env"], input=body, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout)["result"]
"""


@pytest.fixture
def suite(tmp_path: Path) -> KeptSuite:
    """The same scenario, where runs are kept."""
    suite = KeptSuite(tmp_path / "scenarios")
    write(suite, 1)
    return suite


@pytest.fixture
def folder(tmp_path: Path) -> ScenarioFolder:
    """One scenario that knows nothing of warranties, as `orders_1`."""
    folder = ScenarioFolder(tmp_path / "scenarios", BUILT_IN)
    write(folder, 1)
    return folder


def write(folder: ScenarioFolder, number: int, **changes: Any) -> None:
    scenario = {"scenario_id": f"orders_{number}", **SCENARIO, **changes}
    (folder.folder / f"orders_{number}.yaml").write_text(json.dumps(scenario))


def judged(folder: ScenarioFolder, program: str, **options: Any) -> list[dict[str, Any]]:
    """The results in the report of an agent with this body."""
    command = write_program(folder.folder.parent, program)
    return folder.report(agent=f"command:{command}", **options)["results"]


def failures(folder: ScenarioFolder, program: str, **options: Any) -> list[str]:
    (result,) = judged(folder, program, **options)
    return [failure.partition("\n")[0] for failure in result["failures"]]


@pytest.mark.parametrize(("language", "failed"), [("de", []), ("en", ["reply_language: written in another language"])])
def test_the_language_of_any_agents_reply_is_read_off_its_words(
    language: str, failed: list[str], folder: ScenarioFolder
) -> None:
    expected = {"email_sent": True, "ticket_created": False, "reply_language": language}
    write(folder, 1, expected_output=expected)
    program = 'send(body="Guten Tag, Ihre Bestellung ist unterwegs und wird morgen bei Ihnen sein.")'
    assert failures(folder, program) == failed


BOOKING: dict[str, Any] = {
    "input": {"task": {"wish": "Monday"}, "mock_responses": {"calendar": {"book": {"id": "B-1"}}}},
    "expected_output": {
        "answer": {"contains": ["b-1"], "json": {"id": "B-1"}, "excludes": ["sorry"]},
        "calls": [{"server": "calendar", "tool": "book"}],
    },
}


def test_a_task_without_a_mail_in_sight(folder: ScenarioFolder, tmp_path: Path) -> None:
    write(folder, 1, **BOOKING)
    program = """
    assert sorted(task) == ["environment", "mcp_servers", "task"] and sorted(task["mcp_servers"]) == ["calendar"]
    print(json.dumps({"task_result": call("calendar", "book", **task["task"])["structuredContent"]}))
    """
    (result,) = judged(folder, program, records_dir=tmp_path / "records")
    assert (result["failures"], result["actual_output"]["answer"]) == ([], {"id": "B-1"})
    record = json.loads((tmp_path / "records" / "orders_1.json").read_text())
    assert (record["instruction"], record["task_result"]) == ('{\n "wish": "Monday"\n}', '{"id": "B-1"}')
    assert (record["scenario"]["mail"], record["scenario"]["task"]) == (None, {"wish": "Monday"})


@pytest.mark.parametrize(
    ("mocks", "more", "servers"),
    [
        ({"gmail": {}}, {"email_sent": False}, ["mail"]),
        ({"warranty_api": {"status": "valid"}}, {}, ["warranty"]),
        ({}, {"never_called": [{"server": "ticketing"}]}, ["ticketing"]),
        ({}, {"email_sent": False, "ticket_created": False}, ["mail", "ticketing"]),
    ],
)
def test_a_task_gets_the_servers_that_its_scenario_names(
    folder: ScenarioFolder, mocks: dict[str, Any], more: dict[str, Any], servers: list[str]
) -> None:
    met = {"task": "Look", "mock_responses": mocks}
    write(folder, 1, input=met, expected_output={"answer": {"equals": json.dumps(servers)}, **more})
    program = 'print(json.dumps({"task_result": json.dumps(sorted(task["mcp_servers"]))}))'
    if "mail" in servers:  # an inbox without a mail
        program = f'assert call("mail", "list_unprocessed")["structuredContent"]["messages"] == []\n{program}'
    assert failures(folder, program) == []


@pytest.mark.parametrize(
    ("said", "answer"), [("NaN", "NaN"), ("[1, Infinity]", "[1, Infinity]"), ("[1, null]", [1, None])]
)
def test_an_answer_that_json_has_not_is_text_in_the_report(folder: ScenarioFolder, said: str, answer: object) -> None:
    write(folder, 1, input={"task": "Count"}, expected_output={"answer": {"equals": answer}})
    (result,) = judged(folder, f"""print('{{"task_result": {said}}}')""")
    assert (result["failures"], result["actual_output"]["answer"]) == ([], answer)


def test_a_mail_of_a_task_goes_to_whom_the_scenario_names(folder: ScenarioFolder) -> None:
    expected = {"email_sent": True, "sent_to": "ann@example.com"}
    write(folder, 1, input={"task": "Write to Ann"}, expected_output=expected)
    assert failures(folder, "send('ann@example.com')") == []
    assert failures(folder, "send('bob@example.com')") == ["email_sent: a mail went to somebody else"]


@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("send(body='shipped')", ["calls: orders.get_order was not called"]),
        (f"send(body='shipped'){HEALTHY.replace('send(', '0 and send(')}", ["calls: made in another order"]),
        (f"{HEALTHY}send(message_id='<2@example.com>')", ["email_sent: 2 mails were sent"]),
        (HEALTHY.replace("send(", "send('other@example.com', "), ["email_sent: a mail went to somebody else"]),
        (f"call('ticketing', 'list_tickets'){HEALTHY}", ["never_called: ticketing.list_tickets was called"]),
        (
            f"call('orders', 'get_order', id='B'){HEALTHY}",
            ["calls: orders.get_order has no answer for these arguments: {'id': 'B'}"],
        ),
        (f"call('orders', 'get_order', id='A-1'){HEALTHY}", ["calls: orders.get_order was called 2 times"]),
        (f"call('orders', 'cancel', id='A-1'){HEALTHY}", ["calls: orders.cancel is not mocked"]),
        (
            HEALTHY.replace("send(", "send(in_reply_to='<other@example.com>', "),
            ["email_sent: the reply stands in another thread"],
        ),
        (HEALTHY.replace("send(", "send(in_reply_to=task['email']['message_id'], "), []),
        (HEALTHY.replace("send(", "send(in_reply_to='<eval-orders_1@example.com>', "), []),
        (f"{HEALTHY}sys.exit(1)", ["agent: the program ended with exit code 1"]),
        (
            "",
            [
                "email_sent: no mail was sent",
                "response_body_contains: missing phrase 'shipped'",
                "calls: orders.get_order was not called",
                "calls: mail.send_reply was not called",
            ],
        ),
    ],
)
def test_an_agent_that_does_not_fails_with_the_reason(
    folder: ScenarioFolder, program: str, expected: list[str]
) -> None:
    assert failures(folder, program) == expected


@pytest.mark.slow
def test_an_agent_that_hangs_leaves_the_others_alone(folder: ScenarioFolder) -> None:
    write(folder, 2)
    results = judged(
        folder,
        f"if 'orders_2' in task['email']['message_id']: time.sleep(60)\n{HEALTHY}",
        agent_timeout=5.0,
        jobs=2,
    )
    assert [result["passed"] for result in results] == [True, False]
    assert results[1]["failures"][0] == "agent: the time was over (5 s) before the agent was done"


def test_an_agent_that_runs_in_circles_is_stopped(folder: ScenarioFolder) -> None:
    found = failures(folder, "while True: call('mail', 'list_unprocessed')")
    assert found[0] == "agent: the agent made more than 1000 calls"


def test_arguments_of_many_megabytes(folder: ScenarioFolder) -> None:
    found = failures(folder, "send(body='x' * 9_000_000)")
    assert found[0] == "agent: a request to mail was over 8 MB"


def test_what_is_called_after_the_end_reaches_nothing(folder: ScenarioFolder) -> None:
    """The scenario is judged by what was captured while the agent worked, and its servers are gone."""
    program = f"{HEALTHY}\nif os.fork() == 0:\n    time.sleep(0.5)\n    send(message_id='<late@example.com>')\n"
    assert failures(folder, program) == []


def test_the_record_has_what_the_agent_reports_and_the_calls(folder: ScenarioFolder, tmp_path: Path) -> None:
    judged(folder, HEALTHY, records_dir=tmp_path / "records")
    record = json.loads((tmp_path / "records" / "orders_1.json").read_text())
    assert (record["task_result"], record["iterations"], record["status"]) == ("answered", 2, "success")
    looked_up, sent = record["execution_trace"]
    assert looked_up["action"] == {"action_type": "orders.get_order", "id": "A-1"}
    assert looked_up["feedback"] == {"done": False, "message": '{"status": "shipped"}'}
    assert (sent["action"]["action_type"], sent["feedback"]["done"]) == ("mail.send_reply", True)
    assert all(step["duration_ms"] > 0 for step in (looked_up, sent))
    assert json.loads(record["stdout"]) == {"task_result": "answered", "iterations": 2}


@pytest.mark.parametrize(
    ("ending", "failure"),
    [
        ("", None),
        ("os.kill(os.getpid(), 9)", "the program was ended by signal 9: on stderr"),
        ("os.close(0); os.close(1); os.abort()", "the program was ended by signal 6: on stderr"),
        ("call('mail', 'send_reply', to=1)", None),
    ],
)
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_whatever_becomes_of_an_agent_the_evidence_is_there(
    suite: KeptSuite, transport: str, ending: str, failure: str | None
) -> None:
    ending = f"os.write(2, b'on stderr'); print('on stdout', flush=True)\n{ending}"
    program = f"call('orders', 'get_order', id='B')\n{HEALTHY}\n{ending}\n"
    if transport == "stdio":
        program = f"{CALL_OVER_STDIO}\n{program}"
    command = write_program(suite.folder.parent, program)
    html = suite.folder.parent / "report.html"
    suite.run(agent=f"command:{command}", agent_mcp=transport, html_file=html)
    (kept,) = suite.results()
    stream = io.StringIO()
    with RunStore(suite.file) as store:
        trace = store.result(kept.place.id).trace
        run = store.find_run("last")
        print_result(run, store.find_case(run, kept.name), Terminal(stream, color=False, ascii_only=False))
    unknown, known, sent = trace["execution_trace"][:3]
    assert (unknown["feedback"]["refused"], known["feedback"]["message"]) == (True, '{"status": "shipped"}')
    assert sent["feedback"]["done"]
    assert len(kept.step_ms) == len(trace["execution_trace"])
    assert trace["stdout"].endswith("on stdout\n")
    assert trace["stderr"] == "on stderr"
    for text in (stream.getvalue(), html_module.unescape(html.read_text())):
        assert "refused: mock_unknown_call: orders.get_order has no answer for these arguments" in text
        assert "on stdout" in text
        assert "Printed on stderr" in text
    assert ("refused: mail_invalid_argument: send_reply: " in stream.getvalue()) is ("to=1" in ending)
    assert (f"agent: {failure}" in stream.getvalue()) is (failure is not None)


@pytest.mark.slow
def test_over_stdio_an_answer_comes_though_the_request_was_the_last(folder: ScenarioFolder) -> None:
    """As of a machine that is busy: whoever has closed its end still waits for the answer."""
    late = {"when": {"id": "A-1"}, "error": "slow", "answer": {"status": "shipped"}}
    write(folder, 1, input={**SCENARIO["input"], "mock_responses": {"orders": {"get_order": [late]}}})
    assert failures(folder, f"{CALL_OVER_STDIO}\n{HEALTHY}", agent_mcp="stdio") == []


def test_the_status_in_the_record_is_not_the_agents_own(folder: ScenarioFolder, tmp_path: Path) -> None:
    boasting = f'{HEALTHY}\nprint(json.dumps({{"task_result": "done", "status": "success"}}))\nsys.exit(3)\n'
    judged(folder, boasting, records_dir=tmp_path / "records")
    record = json.loads((tmp_path / "records" / "orders_1.json").read_text())
    assert (record["task_result"], record["status"]) == ("done", "failed")


def test_the_scenarios_own_judge_sees_the_record(folder: ScenarioFolder) -> None:
    (folder.folder / "own.py").write_text(
        "def test(result):\n    return {'passed': False, 'feedback': result['task_result']}\n"
    )
    write(folder, 1, test="own.py")
    assert failures(folder, HEALTHY) == ["test: own.py says no: answered"]


def test_instructions_of_ours_are_not_judged(folder: ScenarioFolder) -> None:
    expected = {**SCENARIO["expected_output"], "scenario_instruction_used": "valid-warranty"}
    write(folder, 1, expected_output=expected)
    assert failures(folder, HEALTHY) == []


@pytest.mark.slow
@pytest.mark.parametrize("transport", ["http", "stdio"])
def test_the_official_client_works(folder: ScenarioFolder, transport: str) -> None:
    program = folder.folder.parent / "client.py"
    program.write_text(
        """
import asyncio, json, os
from mcp import Client, StdioServerParameters
from mcp.client.stdio import stdio_client

async def main():
    servers = json.load(open(os.environ["MCP_CONFIG"]))["mcpServers"]
    def client(name):
        server = servers[name]
        return Client(server["url"] if "url" in server else stdio_client(StdioServerParameters(**server)))
    async with client("orders") as orders, client("mail") as mail:
        assert [tool.name for tool in (await orders.list_tools()).tools] == ["get_order"]
        found = (await orders.call_tool("get_order", {"id": "A-1"})).structured_content
        assert (await mail.call_tool("send_reply", {"to": "nobody"})).is_error
        reply = {"to": "customer@example.com", "subject": "Re", "body": found["status"], "message_id": "<1@x.example>"}
        assert not (await mail.call_tool("send_reply", reply)).is_error

asyncio.run(main())
"""
    )
    (result,) = folder.report(agent=f"command:{sys.executable} {program}", agent_mcp=transport)["results"]
    assert result["failures"] == []


@pytest.mark.parametrize(
    ("agent", "problem"),
    [
        ("comand:true", "names no agent – did you mean 'command'? Write command:"),
        ("true", "names no agent. Write command:"),
        ("https://127.0.0.1/", "did you mean 'http'?"),
        ("command:", "--agent command is empty"),
        ("python:x", "names no function"),
        ("http://example.com", "is no URL of this machine"),
    ],
)
def test_what_names_no_agent(agent: str, problem: str) -> None:
    with pytest.raises(ConfigurationError, match=problem.replace("?", r"\?")):
        find_agent(agent)


def test_stdio_is_refused_where_servers_are_reached_over_http(folder: ScenarioFolder) -> None:
    with pytest.raises(ConfigurationError, match="--agent-mcp stdio is for command: and python: agents") as refused:
        folder.evaluate(agent="http://127.0.0.1:1/", agent_mcp="stdio")
    assert refused.value.exit_code == 2
