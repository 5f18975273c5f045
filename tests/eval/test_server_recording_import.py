import io
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_sessions import PROGRAMS, Script, tool

from guarantee_email_agent.eval.declared_servers import load_declared_server
from guarantee_email_agent.eval.server_recording import check_server, import_server, server_launch
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError, MCPConnectionError
from guarantee_email_agent.utils.terminal import Terminal

GET = tool("get_order", "id", description="One order.", outputSchema={"type": "object"})


class Shop:
    """A server with the tools that a test gives it, and a suite."""

    def __init__(self, folder: Path) -> None:
        self.suite, self.script = folder, Script(folder / "script.json")
        program = [sys.executable, str(PROGRAMS / "scripted_tools.py"), str(self.script.file)]
        self.launch = server_launch(program, [], {})

    def run(self, work: Any, *tools: dict[str, Any], name: str = "shop") -> tuple[int, str]:
        self.script.write(*tools)
        stream = io.StringIO()
        return work(self.suite, name, self.launch, Terminal(stream)), stream.getvalue()


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    return Shop(tmp_path)


def test_what_is_imported_is_as_the_server(shop: Shop) -> None:
    path = shop.suite / "servers" / "shop.yaml"
    assert shop.run(import_server, GET) == (0, f"Wrote {path}: 1 tool (get_order)\n")
    (declared,) = load_declared_server(str(path)).tools
    assert (declared.description, declared.arguments, declared.output_schema) == (
        "One order.",
        ("id",),
        {"type": "object"},
    )
    assert shop.run(check_server, GET) == (0, f"{path} is as the server: 1 tool\n")
    with pytest.raises(ConfigurationError, match="is there already"):
        shop.run(import_server, tool("other"))
    assert shop.script.calls == []


@pytest.mark.parametrize(
    ("tools", "changes"),
    [
        ([], None),
        ([GET, tool("cancel")], ['cancel is new: {"input_schema"']),
        ([tool("get", "id")], ["get is new", "get_order is gone"]),
        ([GET | {"description": "An order."}], ['get_order.description is "An order.", here "One order."']),
        (
            [GET | {"inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]}}],
            ['get_order.input_schema.properties.id.type is new: "string"', "get_order.input_schema.required is new"],
        ),
    ],
)
def test_a_server_that_has_moved_on(shop: Shop, tools: list[dict[str, Any]], changes: list[str] | None) -> None:
    shop.run(import_server, GET)
    if changes is None:
        with pytest.raises(MCPConnectionError, match="offers no tool"):
            shop.run(check_server, *tools)
        return
    code, printed = shop.run(check_server, *tools)
    lines = printed.splitlines()[1:]
    assert code == 4
    assert [line.strip()[: len(change)] for line, change in zip(lines, changes, strict=True)] == changes


def test_the_order_of_plain_values_is_no_change(shop: Shop) -> None:
    def ordered(*names: str) -> dict[str, Any]:
        return {"name": "a", "inputSchema": {"type": "object", "properties": {"b": {"enum": list(names)}}}}

    shop.run(import_server, ordered("x", "y"))
    assert shop.run(check_server, ordered("y", "x"))[0] == 0
    assert shop.run(check_server, ordered("y", "z"))[0] == 4


@pytest.mark.parametrize(
    ("name", "tools", "says"),
    [
        (
            "shop",
            [tool("a") | {"inputSchema": {"type": "object", "properties": {"b": {"type": "no"}}}}],
            "a: input_schema is no JSON schema",
        ),
        (
            "shop",
            [tool("a") | {"inputSchema": {"type": "strin"}}],
            r"its ListToolsResult is not what MCP has: tools\.0\.inputSchema\.type: Input should be 'object'\)\. Cor",
        ),
        ("shop", [GET, tool("get_order")], "it offers two different tools called get_order"),
        ("shop", [tool("a b")], "a b: name is no name of a tool"),
        ("shop", [tool("endless")], "its list of tools has more than 100 pages"),
        ("mail", [GET], "mail is a server of ours"),
        ("../shop", [GET], "is no name of a server"),
    ],
)
def test_what_cannot_be_mocked_is_not_written(shop: Shop, name: str, tools: list[dict[str, Any]], says: str) -> None:
    with pytest.raises(AgentError, match=says):
        shop.run(import_server, *tools, name=name)
    assert not (shop.suite / "servers").exists()
    with pytest.raises(ConfigurationError, match="'mock import other …' writes it"):
        shop.run(check_server, *tools, name="other")


@pytest.mark.parametrize(
    ("target", "variables", "says"),
    [
        (["run"], ["NOT_SET"], "--env NOT_SET is not set"),
        (["https://user:word@example.com/"], [], "url holds a user name or password"),
        (["http://"], [], "url must be a URL"),
        ([" "], [], "command must not be blank"),
    ],
)
def test_servers_that_cannot_be_reached(target: list[str], variables: list[str], says: str) -> None:
    with pytest.raises(ConfigurationError, match=says):
        server_launch(target, variables, {})


def test_what_a_server_gets_of_the_environment() -> None:
    environ = {"PATH": "/bin", "KEY": "k1", "OTHER": "o1"}
    assert server_launch(["run", "-x"], ["KEY"], environ).environment == {"PATH": "/bin", "KEY": "k1"}
    assert server_launch(["https://example.com/mcp"], ["KEY"], environ).headers == {"Authorization": "Bearer k1"}
