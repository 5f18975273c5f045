from __future__ import annotations

import pickle

from guarantee_email_agent.services.tool_error import ToolError


def test_an_error_keeps_what_it_says_between_processes() -> None:
    error = pickle.loads(pickle.dumps(ToolError("tickets_locked", "it is locked", retryable=True)))
    assert (error.code, error.message, error.retryable) == ("tickets_locked", "it is locked", True)
