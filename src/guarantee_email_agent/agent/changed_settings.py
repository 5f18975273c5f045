"""Which settings changed, by name and never by value: what SIGHUP takes over, and digests for `check`."""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.config.settings import Config, Secrets
from guarantee_email_agent.instructions.lexicon import FOLDER

_TAKEN_OVER: Final = ("agent.", "instructions.", "llm.", "logging.")
_NEEDS_RESTART: Final = ("agent.ledger", "agent.max_mail_bytes", "agent.mode")
"""Of the sections that are taken over: the servers of the agent were started by them."""

_FILE: Final = ".md"
_OF_OTHER_COMMANDS: Final = ("eval.", "store.", "tasks.")


def merged(old: Config, new: Config) -> Config:
    """`old` with all of `new` that a running agent can take over."""
    agent = replace(new.agent, ledger=old.agent.ledger, max_mail_bytes=old.agent.max_mail_bytes, mode=old.agent.mode)
    return replace(old, agent=agent, instructions=new.instructions, llm=new.llm, logging=new.logging)


def needs_restart(setting: str) -> bool:
    """setting: a dotted name."""
    return setting in _NEEDS_RESTART or not setting.startswith(_TAKEN_OVER)


def is_setting(name: str) -> bool:
    """Whether a name among `digests` is that of a setting, and not of a file."""
    return not name.endswith(_FILE)


def is_of_run(setting: str, config: Config) -> bool:
    """Whether `run` reads it at all: LEDGER_URL counts before `agent.ledger`."""
    replaced = setting == "agent.ledger" and bool(config.secrets.ledger_url)
    return not replaced and not setting.startswith(_OF_OTHER_COMMANDS)


def digests(config: Config, key: bytes) -> dict[str, str]:
    """Keyed hashes of all settings of `run` and of each instruction file, by name. A file without any is not there.

    key: of the ledger; without it nobody can try values until their hash fits.
    """
    settings = {name: value.encode() for name, value in flat_settings(config).items() if is_of_run(name, config)}
    return {name: hmac.digest(key, value, "sha256").hex()[:12] for name, value in (settings | _files(config)).items()}


def differences(before: Mapping[str, str | None], now: Mapping[str, str | None]) -> tuple[str, ...]:
    """Names whose values or digests differ."""
    return tuple(name for name in sorted({*before, *now}) if before.get(name) != now.get(name))


def _files(config: Config) -> dict[str, bytes]:
    main = config.instructions.main
    found = [main, *_markdown(config.instructions.scenarios_dir), *_markdown(main.parent / FOLDER)]
    contents = {}
    for path in found:
        try:
            contents[os.path.relpath(path, main.parent.parent)] = path.read_bytes()
        except OSError:  # said by whoever loads it
            continue
    return contents


def _markdown(folder: Path) -> Iterable[Path]:
    return sorted(folder.glob("*.md"))


def flat_settings(config: Config) -> dict[str, str]:
    """Each setting as text, by its dotted name; secrets are none."""
    return dict(_flat(config, ""))


def changed_settings(old: Config, new: Config) -> tuple[str, ...]:
    """Dotted names of the settings that differ, as they stand in the documentation."""
    return differences(flat_settings(old), flat_settings(new))


def changed_secrets(old: Secrets, new: Secrets) -> tuple[str, ...]:
    """The names of environment variables that differ."""
    return differences(_variables(old), _variables(new))


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
