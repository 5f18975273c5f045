"""How a server is reached: by a command or by a URL."""

from __future__ import annotations

import pytest

from guarantee_email_agent.config.mcp_server import McpServer


def test_without_either_it_is_the_built_in_one() -> None:
    assert McpServer().built_in
    assert not McpServer(command="x").built_in
    assert not McpServer(url="https://x.example/").built_in


def test_both_at_once_are_an_error() -> None:
    with pytest.raises(ValueError, match="has both command and url"):
        McpServer(command="x", url="https://x.example/")


def test_arguments_need_a_command() -> None:
    with pytest.raises(ValueError, match="has args but no command"):
        McpServer(args=("x",))
