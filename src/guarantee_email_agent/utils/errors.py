"""The one family of errors that a user may see, and the exit codes they end in."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

EXIT_SUCCESS = 0
EXIT_FAILURE = 1
EXIT_CONFIGURATION = 2
EXIT_MCP_CONNECTION = 3
EXIT_EVALUATION = 4
EXIT_INTERRUPTED = 130


class AgentError(Exception):
    """A problem whose message is written for the person who reads it: what, where, and what to do.

    `code` has the form `{component}_{error_type}`; `details` holds data for logs and never customer text.
    """

    exit_code: ClassVar[int] = EXIT_FAILURE

    def __init__(self, message: str, code: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.details: dict[str, Any] = dict(details or {})

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[type[AgentError], tuple[str, str, dict[str, Any]]]:
        # Exception's own pickling replays args alone, which would lose code and details between processes.
        return type(self), (self.message, self.code, self.details)


class ConfigurationError(AgentError):
    """Bad configuration, a missing secret, or bad usage."""

    exit_code = EXIT_CONFIGURATION


class InstructionError(ConfigurationError):
    """An instruction file that cannot be used; the message names file, line and remedy."""


class IntegrationError(AgentError):
    """A mail, warranty or ticketing service failed. `details["retryable"]`: whether another try can heal it."""

    @property
    def retryable(self) -> bool:
        return bool(self.details.get("retryable", False))


class MCPConnectionError(IntegrationError):
    """An MCP server could not be reached at start-up."""

    exit_code = EXIT_MCP_CONNECTION


class LLMError(AgentError):
    """The language model failed or answered in a shape we did not ask for."""


class ProcessingError(AgentError):
    """One mail could not be processed."""


class EvalError(AgentError):
    """A scenario or suite that cannot be used as it stands.

    `details` always hold `file_path`, and as `field` the first key that is wrong; None where it is about no such thing.
    """

    exit_code = EXIT_CONFIGURATION

    def __init__(self, message: str, code: str, details: Mapping[str, Any] | None = None) -> None:
        super().__init__(message, code, {"file_path": None, "field": None, **(details or {})})


class TaskError(AgentError):
    """A task directory, or a record of a run, that cannot be used as it stands."""

    exit_code = EXIT_CONFIGURATION
