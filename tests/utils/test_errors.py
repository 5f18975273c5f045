import copy
import pickle

import pytest

from guarantee_email_agent.utils.errors import (
    AgentError,
    ConfigurationError,
    EvalError,
    InstructionError,
    IntegrationError,
    LLMError,
    MCPConnectionError,
    ProcessingError,
)

EXIT_CODES = {
    AgentError: 1,
    ProcessingError: 1,
    LLMError: 1,
    IntegrationError: 1,
    ConfigurationError: 2,
    InstructionError: 2,
    EvalError: 2,
    MCPConnectionError: 3,
}


@pytest.mark.parametrize(("error", "code"), EXIT_CODES.items())
def test_an_error_knows_the_exit_code_it_ends_in(error: type[AgentError], code: int) -> None:
    assert error("message", "some_code").exit_code == code


@pytest.mark.parametrize("error", EXIT_CODES)
@pytest.mark.parametrize("again", [lambda each: pickle.loads(pickle.dumps(each)), copy.copy], ids=["pickle", "copy"])
def test_an_error_keeps_code_and_details_between_processes(error: type[AgentError], again: object) -> None:
    assert callable(again)
    first = error("message", "some_code", {"line": 3})
    same = again(first)
    assert type(same) is error
    assert (same.message, same.code, same.details) == ("message", "some_code", first.details)
    assert same.details["line"] == 3
