"""What an agent loaded, as digests by name and never by value, so that `check` can tell what changed since."""

from __future__ import annotations

import asyncio
import hmac
import logging
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.agent.identity_key import key_of_mailbox
from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.lexicon import FOLDER
from guarantee_email_agent.utils.errors import AgentError

logger = logging.getLogger(__name__)

_FILE: Final = ".md"
_OF_OTHER_COMMANDS: Final = ("eval.", "store.", "tasks.")


async def note_loaded(worker: MailWorker, loaded: Config) -> None:
    """Write down what is in use now. loaded: as it stands in the file, since `check` knows no other command line."""
    key = worker.processor.identity_key
    found = await asyncio.to_thread(digests, loaded, key)
    try:
        await asyncio.to_thread(worker.ledger.save_loaded_settings, key_of_mailbox(worker.mailbox_name, key), found)
    except AgentError as error:  # it is for `check` alone
        logger.warning("`check` cannot tell later what has changed: %s", error.code)


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
    """Each setting as text, by its dotted name as it stands in the documentation; secrets are none."""
    return dict(_flat(config, ""))


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
