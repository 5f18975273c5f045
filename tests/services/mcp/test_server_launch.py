"""What a server of somebody else is started or asked with, and which secrets it gets."""

from collections.abc import Mapping
from typing import Final

import pytest

from guarantee_email_agent.config.mcp_server import McpServer
from guarantee_email_agent.services.mcp.server_launch import ServerLaunch, configured_launch
from guarantee_email_agent.utils.errors import ConfigurationError

MINIMUM: Final = {"PATH": "/bin", "HOME": "/home/agent", "LANG": "C.UTF-8"}
HIDDEN: Final = {"PYTHONPATH": "/src", "ANTHROPIC_API_KEY": "hidden", "BASH_FUNC_x%%": "() { :; }"}


def launched(server: McpServer, **given: str) -> ServerLaunch:
    return configured_launch("mailbox.server", server, given, MINIMUM | HIDDEN)


def test_a_program_gets_the_variables_that_are_named_and_no_others() -> None:
    launch = launched(McpServer("npx", ("-y", "a b"), env=("GMAIL_TOKEN",)), GMAIL_TOKEN="token", OTHER="hidden")
    assert (launch.setting, launch.command, launch.args) == ("mailbox.server", "npx", ("-y", "a b"))
    assert launch.environment == {**MINIMUM, "GMAIL_TOKEN": "token"}
    assert "token" not in repr(launch)
    assert str(launch) == "npx -y 'a b'"


@pytest.mark.parametrize(
    ("given", "headers"),
    [
        ({}, {}),
        ({"TOKEN": "token"}, {"Authorization": "Bearer token"}),
        ({"TOKEN": " token\n"}, {"Authorization": "Bearer token"}),
        ({"TOKEN": "Basic dTpw"}, {"Authorization": "Basic dTpw"}),
    ],
)
def test_a_url_gets_the_one_variable_as_its_authorization(given: Mapping[str, str], headers: dict[str, str]) -> None:
    url = "https://mcp.example.com/tickets"
    launch = launched(McpServer(url=url, env=tuple(given)), **given)
    assert (launch.url, launch.headers) == (url, headers)
    assert not any(header in repr(launch) for header in headers.values())


@pytest.mark.parametrize(
    ("server", "code", "message"),
    [
        (
            McpServer("x", env=("A", "C")),
            "config_missing_secret",
            "mailbox.server.env names C, which is not set. Set it in the environment or in .env, or remove",
        ),
        (
            McpServer(url="http://localhost", env=("A", "B")),
            "config_invalid_value",
            "mailbox.server.env names 2 variables, but a server with a URL gets one, as its Authorization header. Keep",
        ),
    ],
)
def test_what_is_missing_is_a_configuration_error(server: McpServer, code: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        launched(server, A="1", B="2")
    assert caught.value.code == code
    assert caught.value.message.startswith(message)
