"""What is installed of this package: its version, and the extras with what only some commands need."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from guarantee_email_agent.utils.errors import ConfigurationError

__version__: Final = "0.1.0"


def require_extra(extra: str, what: str, *modules: str) -> None:
    """Raises ConfigurationError where the extra is not installed. what: needs its modules; the message begins so."""
    from importlib.util import find_spec

    if missing := next((module for module in modules if find_spec(module) is None), None):
        raise ConfigurationError(
            f"{what} needs the package {missing}. Run: {install_command(extra)}", "config_missing_package"
        )


def install_command(extra: str) -> str:
    """In a clone with the versions that it pins, and beside the extras that are there."""
    if (Path(__file__).resolve().parents[3] / "pyproject.toml").is_file():
        return f"uv sync --inexact --extra {extra} (in the clone)"
    return f"pip install 'guarantee-email-agent[{extra}]'"
