"""What our own agent answers by: its files, its settings and its model, named the same on every machine."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import asdict, replace
from typing import Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.processor_models import AnswerPolicy
from guarantee_email_agent.files.text_file import names, read_start
from guarantee_email_agent.llm.port import OFFLINE_MODEL
from guarantee_email_agent.runlog.program_inputs import incomplete
from guarantee_email_agent.runlog.records import Input

_MAX_KEPT: Final = 1 << 20
_MAX_READ: Final = 1 << 28

InputFiles = Mapping[tuple[str, str], str]
"""Paths by kind and name."""


def instruction_paths(config: Config) -> dict[tuple[str, str], str]:
    main, scenarios = config.instructions.main, config.instructions.scenarios_dir
    named = {("instruction", f"scenarios/{name}"): os.path.join(scenarios, name) for name in names(scenarios, ".md")}
    return {("instruction", main.name): str(main), **named}


def lexicon_paths(config: Config) -> dict[tuple[str, str], str]:
    folder = config.instructions.main.parent / "lexicon"
    return {("lexicon", name): os.path.join(folder, name) for name in names(folder, ".md")}


def file_inputs(files: InputFiles) -> Iterator[Input]:
    """As they are now; one that cannot be read is what is not known."""
    for (kind, name), path in files.items():
        try:
            content = read_start(path, _MAX_READ + 1)
        except OSError as error:  # what that means for the run is told where it matters
            yield incomplete(f"{name} cannot be read ({error.strerror})")
            continue
        if len(content) > _MAX_READ:
            yield incomplete(f"{name} is too large to be looked at")
            continue
        # A program may be large, and so may what a judge compares with.
        yield Input.of(kind, name, content, keep=kind != "agent" and len(content) <= _MAX_KEPT)


def agent_settings(config: Config, llm: str) -> Iterator[Input]:
    """llm: as `--llm` has it."""
    # Scenarios have a mode and a sender check of their own, whatever the configuration says.
    yield setting("setting", "agent", asdict(replace(AnswerPolicy.of(config), mode="answer", sender_check="off")))
    yield setting("setting", "warranty", asdict(config.warranty))
    look_ups = {name: asdict(each) for name, each in config.look_ups.items()}
    for each in look_ups.values():  # mocks answer in their place, and a table's path is another one on each machine
        each |= {"server": each["server"]["tools"], "table": each["table"] is not None}
    yield setting("setting", "look_ups", look_ups)
    model = {
        "llm": "live" if llm == "record" else llm,
        "model": model_name(config, llm),
        **model_parameters(config, llm),
    }
    yield setting("model", "model", model)


def model_name(config: Config, llm: str) -> str:
    return OFFLINE_MODEL if llm == "offline" else config.llm.model


def model_parameters(config: Config, llm: str) -> Mapping[str, Any]:
    return {} if llm == "offline" else {"max_tokens": config.llm.max_tokens}


def setting(kind: str, name: str, value: Any) -> Input:
    return Input.of(kind, name, json.dumps(value, sort_keys=True, indent=1, default=_plain).encode())


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset | set) else str(value)
