"""Which settings a running agent takes over on SIGHUP, and digests of all that it works with, for `check`."""

from __future__ import annotations

import hmac
import os
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.differences import flat_settings
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.lexicon_files import FOLDER

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


def differences(before: Mapping[str, str], now: Mapping[str, str]) -> tuple[str, ...]:
    """Names whose digests differ, those of settings and files alike."""
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
