"""The one family of errors that a user may see, and the exit codes they end in."""

from __future__ import annotations

import copyreg
from collections.abc import Mapping
from typing import Any, ClassVar, Self

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

    def __reduce__(self) -> tuple[Any, ...]:
        # Exception's own pickling calls the class with args alone, which would lose the rest between processes.
        return copyreg.__newobj__, (type(self), self.message), vars(self)  # type: ignore[attr-defined]


class ConfigurationError(AgentError):
    """Bad configuration, a missing secret, or bad usage."""

    exit_code = EXIT_CONFIGURATION


class InstructionError(ConfigurationError):
    """An instruction file that cannot be used; the message names file, line and remedy."""


class ServiceError(AgentError):
    """Something failed that the agent needs.

    retryable: another try can heal it. uncertain: what was asked for may have happened all the same. outage: it fails
    whatever it is asked for, so that no mail is to blame. cause: the code of what opened a circuit.
    """

    cause = ""

    def __init__(
        self,
        message: str,
        code: str,
        details: Mapping[str, Any] | None = None,
        *,
        retryable: bool = False,
        uncertain: bool = False,
        outage: bool = False,
    ) -> None:
        super().__init__(message, code, details)
        self.retryable, self.uncertain, self.outage = retryable, uncertain, outage

    @classmethod
    def of(cls, error: ServiceError, message: str | None = None) -> Self:
        """The same failure as an error of this class."""
        same = cls(error.message if message is None else message, error.code, error.details)
        same.retryable, same.uncertain, same.outage = error.retryable, error.uncertain, error.outage
        same.cause = error.cause
        return same


class IntegrationError(ServiceError):
    """A mail, warranty or ticketing service failed. sending: mail, which another server may do than has the inbox.

    said: what the server answered in place of a result, in its own words, which may quote a customer.
    """

    sending, said = False, ""


class MCPConnectionError(IntegrationError):
    """An MCP server could not be reached at start-up."""

    exit_code = EXIT_MCP_CONNECTION


class LLMError(ServiceError):
    """The language model failed or answered in a shape we did not ask for. retry_after_s: what it asks to wait."""

    retry_after_s: float | None = None


class ProcessingError(AgentError):
    """One mail could not be processed."""


class WorkersLostError(AgentError):
    """No worker can go on. What came until then is good, and a run may go on from there."""


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
