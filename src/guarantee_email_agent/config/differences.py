"""What two configurations do not have in common, by the names of settings and never by their values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass
from typing import Any

from guarantee_email_agent.config.settings import Config, Secrets


def flat_settings(config: Config) -> dict[str, str]:
    """Each setting as text, by its dotted name; secrets are none."""
    return dict(_flat(config, ""))


def changed_settings(old: Config, new: Config) -> tuple[str, ...]:
    """Dotted names of the settings that differ, as they stand in the documentation."""
    before, after = flat_settings(old), flat_settings(new)
    return tuple(name for name in sorted({*before, *after}) if before.get(name) != after.get(name))


def changed_secrets(old: Secrets, new: Secrets) -> tuple[str, ...]:
    """The names of environment variables that differ."""
    before, after = _variables(old), _variables(new)
    return tuple(name for name in sorted({*before, *after}) if before.get(name) != after.get(name))


def _flat(section: Any, prefix: str) -> Iterator[tuple[str, str]]:
    for each in fields(section):
        if each.metadata.get("key", each.name) is None:
            continue
        yield from _flat_value(getattr(section, each.name), f"{prefix}{each.name}")


def _flat_value(value: Any, name: str) -> Iterator[tuple[str, str]]:
    if is_dataclass(value):
        yield from _flat(value, f"{name}.")
    elif isinstance(value, Mapping) and any(map(is_dataclass, value.values())):
        for key, item in value.items():
            yield from _flat_value(item, f"{name}.{key}")
    else:
        yield name, str(dict(value)) if isinstance(value, Mapping) else str(value)


def _variables(secrets: Secrets) -> dict[str, str | None]:
    named = {
        each.name.upper(): getattr(secrets, each.name) for each in fields(secrets) if each.name != "mcp_environment"
    }
    return {**named, **secrets.mcp_environment}
