"""A program as people name it."""

from __future__ import annotations

import pytest

from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.process import parse_program


def test_command_is_split_as_a_shell_does_it() -> None:
    assert parse_program("sh 'b c' {instruction}", "--command") == ("sh", "b c", "{instruction}")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty"),
        ("  ", "is empty"),
        ("a 'b", "Close the quotes"),
        ("nonesuch-program {instruction}", "there is no program 'nonesuch-program'"),
        ("/etc", "there is no program"),
    ],
)
def test_unusable_command_is_a_usage_error(text: str, message: str) -> None:
    with pytest.raises(ConfigurationError, match=f"--command.*{message}"):
        parse_program(text, "--command")
