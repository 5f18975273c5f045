"""Packages that only some commands need, so that they come with an extra of ours."""

from __future__ import annotations

from guarantee_email_agent.utils.errors import ConfigurationError


def require_extra(extra: str, what: str, *modules: str) -> None:
    """Raises ConfigurationError where the extra is not installed. what: needs its modules; the message begins so."""
    from importlib.util import find_spec

    if missing := next((module for module in modules if find_spec(module) is None), None):
        raise ConfigurationError(
            f"{what} needs the package {missing}. Run: pip install 'guarantee-email-agent[{extra}]'",
            "config_missing_package",
        )
