"""Asks a running agent for its health: in a moment, since a container does so every half minute."""

from __future__ import annotations

from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Final, Literal

from guarantee_email_agent.config.operation_settings import MetricsSettings
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable, truncate

TIMEOUT_S: Final = 5.0
MAX_ANSWER_BYTES: Final = 65_536
MAX_SHOWN_CHARS: Final = 500
_THIS_MACHINE: Final = {"0.0.0.0": "127.0.0.1", "::": "::1"}  # noqa: S104 - where to ask what listens on all addresses


@dataclass(frozen=True, slots=True)
class HealthAnswer:
    """text: one line, `ok` or what is wrong."""

    is_good: bool
    text: str


def ask_health(
    settings: MetricsSettings, page: Literal["/healthz", "/readyz"], timeout_s: float = TIMEOUT_S
) -> HealthAnswer:
    """timeout_s: seconds without a byte. Raises ConfigurationError where the settings name nobody to ask."""
    if (place := settings.place) is None:
        raise ConfigurationError(
            "metrics.listen is not set, so that nobody can be asked. Set it", "metrics_not_configured"
        )
    address, port = place
    connection = HTTPConnection(_THIS_MACHINE.get(address, address), port, timeout=timeout_s)
    try:
        connection.request("GET", page)
        answer = connection.getresponse()
        body = answer.read(MAX_ANSWER_BYTES).decode("utf-8", "replace")
    except TimeoutError:
        return HealthAnswer(False, f"no answer within {timeout_s:g} s")
    except HTTPException:
        return HealthAnswer(False, "what answers there is no agent")
    except OSError as error:
        return HealthAnswer(False, f"no agent answers at {address} port {port}: {error.strerror or error}")
    finally:
        connection.close()
    if (answer.getheader("Content-Type") or "").lower().startswith("text/html"):
        return HealthAnswer(False, "what answers there is no agent")
    lines = printable("; ".join(body.split("\n")).strip("; "))
    shown = truncate(lines, MAX_SHOWN_CHARS) or f"HTTP {answer.status} {printable(answer.reason)}".strip()
    return HealthAnswer(answer.status == 200, shown)
