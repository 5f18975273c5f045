"""How a server is reached: by a command or by a URL."""

from pathlib import Path

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.utils.errors import ConfigurationError


def test_without_either_it_is_the_built_in_one() -> None:
    assert McpServer().built_in
    assert not McpServer(command="x").built_in
    assert not McpServer(url="https://x.example/").built_in


WARRANTY = """
mcp:
  warranty_api:
    command: database-server
    tools:
      check_warranty:
        tool: find_device
        arguments: {serial_number: filter.serial}
        constants: {filter.limit: 2}
        result:
          status: {from: "rows[only].state", values: {active: valid}}
          expiration_date: rows[only].ends
        not_found: {empty: rows}
"""
TICKETING = """
mcp:
  ticketing_system:
    command: task-server
    tools:
      create_ticket:
        tool: create_task
        arguments:
          serial_number: [name, text]
          warranty_status: text
          customer_email: text
          priority: {to: urgency, values: {normal: 3}}
          category: null
          idempotency_key: text
        result: {ticket_id: id}
"""
FIND = """
      find_ticket:
        tool: search
        arguments: {idempotency_key: query}
        result: {tickets: {from: ., each: {ticket_id: id, idempotency_key: text}}}
"""


def load(folder: Path, text: str) -> Config:
    (folder / "config.yaml").write_text(text)
    return load_config(environ={}, cwd=folder)


def refusal(folder: Path, text: str) -> str:
    with pytest.raises(ConfigurationError) as caught:
        load(folder, text)
    return caught.value.message


def test_everything_wrong_is_told_at_once_with_its_line(tmp_path: Path) -> None:
    message = refusal(
        tmp_path,
        """\
mcp:
  warranty_api:
    command: database-server
    tools:
      check_warranty:
        tool: find_device
        arguments:
          serial: serial
        constants: {api_key: abc}
        result:
          status: {from: "data..x"}
          coverag: cover
        sample: {serial_number: SN-1, limit: "2"}
      chek_warranty: {tool: x}
""",
    )
    told = [line.partition("; ")[0].removeprefix("config.yaml:") for line in message.splitlines()]
    check = "mcp.warranty_api.tools.check_warranty"
    assert told == [
        f"7: {check}.arguments.serial_number: is missing",
        f"8: {check}.arguments.serial: unknown key 'serial' – did you mean 'serial_number'?",
        f"9: {check}.constants.api_key: looks like a secret, which comes from the environment",
        f"11: {check}.result.status.from: must be a path such as data.rows[0].state, not 'data..x'",
        f"12: {check}.result.coverag: unknown key 'coverag' – did you mean 'coverage'?",
        f"13: {check}.sample.limit: is no argument",
        "14: mcp.warranty_api.tools.chek_warranty: unknown key 'chek_warranty' – did you mean 'check_warranty'?",
    ]


@pytest.mark.parametrize(
    ("old", "new", "problem"),
    [
        ("{empty: rows}", "{text: none}", "may stand in other answers, too"),
        ("{empty: rows}", "{}", "says nothing"),
        ("{filter.limit: 2}", "{filter: 2}", "goes to filter, which"),
        ("{filter.limit: 2}", "{filter.limit: null}", "is empty; write a value"),
        ("{serial_number: filter.serial}", "{serial_number: null}", "cannot be left out"),
        ("{serial_number: filter.serial}", "{serial_number: []}", "goes nowhere"),
        ("        not_found: {empty: rows}", "        may_duplicate: true", "has no meaning for this tool"),
        ("command: database-server", "env: []", "has tools but no command or url"),
        ("check_warranty:", "look_up:", "check_warranty: is missing"),
    ],
)
def test_what_makes_no_sense_is_refused(tmp_path: Path, old: str, new: str, problem: str) -> None:
    assert old in WARRANTY
    assert problem in refusal(tmp_path, WARRANTY.replace(old, new))


def test_status_that_is_none_of_ours_is_refused_with_a_suggestion(tmp_path: Path) -> None:
    place = "mcp.warranty_api.tools.check_warranty.result.status.values.active"
    told = f"{place}: 'valud' is no status that the agent knows – did you mean 'valid'?"
    assert told in refusal(tmp_path, WARRANTY.replace("{active: valid}", "{active: valud}"))


class TestRepeatedCalls:
    def test_ticket_that_nothing_keeps_from_being_opened_twice_is_refused(self, tmp_path: Path) -> None:
        assert "keeps a call whose answer was lost from being made twice" in refusal(tmp_path, TICKETING)

    @pytest.mark.parametrize(
        "text",
        [
            TICKETING + FIND,
            TICKETING.replace("tool: create_task", "tool: create_task\n        may_duplicate: true"),
            TICKETING.replace("idempotency_key: text", "idempotency_key: request_id"),
        ],
    )
    def test_any_of_three_decisions_is_enough(self, tmp_path: Path, text: str) -> None:
        assert "create_ticket" in load(tmp_path, text).mcp.ticketing_system.tools

    def test_ticket_that_is_searched_for_by_its_key_has_to_hold_it(self, tmp_path: Path) -> None:
        text = TICKETING.replace("idempotency_key: text", "idempotency_key: null") + FIND
        assert "put it into a text of the ticket" in refusal(tmp_path, text)

    def test_note_needs_a_decision_too(self, tmp_path: Path) -> None:
        arguments = "{ticket_id: id, note: text, idempotency_key: null}"
        note = f"\n      add_note: {{tool: comment, arguments: {arguments}}}\n"
        assert "add_note: has nothing" in refusal(tmp_path, TICKETING + FIND + note)


def test_mailbox_cannot_be_mapped(tmp_path: Path) -> None:
    tools = "{send_reply: {tool: send_email, arguments: {to: to}}}"
    message = refusal(tmp_path, f"mailbox: {{server: {{command: mail, tools: {tools}}}}}")
    assert "no mailbox can be mapped; take a server with the tools of `mcp-server mail`" in message


class TestLookUps:
    TEXT = """
look_ups:
  orders:
    topics: [order-status]
    number: order_number
    pattern: "[A-Z]{2}[0-9]{5}"
    labels: [order]
    statuses: [shipped]
    facts: {total: amount}
    server:
      command: shop
      tools:
        look_up:
          tool: get_order
          arguments: {order_number: id}
          result: {status: order.state, total: order.sum}
"""

    def test_statuses_are_those_of_the_look_up(self, tmp_path: Path) -> None:
        values = "{{from: order.state, values: {{SENT: {}, GONE: not_found}}}}"
        assert load(tmp_path, self.TEXT.replace("order.state", values.format("Shipped")))
        told = refusal(tmp_path, self.TEXT.replace("order.state", values.format("shiped")))
        assert "'shiped' is no status that the agent knows – did you mean 'shipped'?" in told

    @pytest.mark.parametrize(
        ("old", "new", "problem"),
        [
            ("total: order.sum", "totl: order.sum", "look_ups.orders.server.tools.look_up.result.totl: unknown key"),
            ("status: order.state, ", "", "look_ups.orders.server.tools.look_up.result.status: is missing"),
            ("    server:", "    tool: get_order\n    server:", "remove tool, argument, status_key and owner_key"),
            ("look_up:", "find:", "look_ups.orders.server.tools.look_up: is missing"),
        ],
    )
    def test_what_does_not_fit_the_look_up_is_refused(self, tmp_path: Path, old: str, new: str, problem: str) -> None:
        assert problem in refusal(tmp_path, self.TEXT.replace(old, new))
