"""What the verdicts of a suite depend on beside its scenarios: instruction and lexicon files, settings, model, judges.

Names are the same on every machine, so that two runs can be compared name by name.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.agent_inputs import (
    agent_settings,
    file_inputs,
    instruction_paths,
    lexicon_paths,
    model_name,
    model_parameters,
    setting,
)
from guarantee_email_agent.files.python_code import NOTHING, FollowedCode
from guarantee_email_agent.files.text_file import FileCache, FileSignature, file_signature
from guarantee_email_agent.runlog.program_inputs import code_inputs, digest_of_folder, incomplete, program_inputs
from guarantee_email_agent.runlog.records import Input, InputSet
from guarantee_email_agent.runlog.suite_manifest import (
    CALIBRATION_FILE,
    judge_files,
    named_files,
    suite_files,
    suite_folders,
)

AGENT_OPTIONS: Final = ("agent_mcp", "agent_timeout")


class VerdictInputs:
    """The files and settings, read once; `unchanged` tells whether the files are still the same."""

    def __init__(
        self, config: Config, suite: Path, llm: str, agent: str | None, agent_options: Mapping[str, Any] | None = None
    ) -> None:
        """agent: as `--agent` has it; None for our own in this process. agent_options: how it is started."""
        self._config, self._suite, self._agent = config, suite, agent
        self._agent_options = {name: (agent_options or {}).get(name) for name in AGENT_OPTIONS}
        self._listing = FileCache[Mapping[tuple[str, str], str]]()
        self._files = self._list_files()
        self._signature = self._read_signature()
        self.model, self.parameters = model_name(config, llm), model_parameters(config, llm)
        if agent not in (None, "own"):
            self.model, self.parameters = "the agent's own", {}
        self.set = InputSet([*file_inputs(self._files), *self._setting_inputs(llm)])

    def unchanged(self) -> bool:
        """Whether no file was added, removed or written since."""
        return self._list_files() == self._files and self._read_signature() == self._signature

    def _list_files(self) -> Mapping[tuple[str, str], str]:
        """Those that there are. A file more or less changes the time of its folder, but code may come from anywhere."""
        if (known := self._listing.begin()) is not None:
            return known
        files = dict(input_files(self._config, self._suite, self._agent))
        if self._agent is not None or any(kind == "judge" for kind, _ in files):
            return files
        main, suite = self._config.instructions.main.parent, self._suite
        places = [main, main / "lexicon", self._config.instructions.scenarios_dir]
        places += (place / CALIBRATION_FILE for place in suite.absolute().parents)
        places += (place for folder in suite_folders(suite) for place in (folder, folder / "servers"))
        return self._listing.keep(files, map(os.fspath, places))

    def _read_signature(self) -> tuple[FileSignature, ...]:
        return tuple(map(file_signature, self._files.values()))

    def _setting_inputs(self, llm: str) -> Iterator[Input]:
        if self._agent is None:
            yield from agent_settings(self._config, llm)
        else:
            yield Input.of("agent", "agent", without_password(self._agent).encode())
            yield setting("setting", "agent_options", self._agent_options)
        yield from program_inputs()
        for code in followed_code(self._suite, self._agent):
            yield from code_inputs(code)
        if llm in ("live", "record"):
            yield incomplete("a live model can answer otherwise")
        elif llm == "replay":
            yield _recordings(self._suite, self._agent)


def input_files(config: Config, suite: Path, agent: str | None) -> Iterator[tuple[tuple[str, str], str]]:
    """Kind and name, and the path, of each file that verdicts depend on beside the scenarios."""
    if agent is None:
        yield from instruction_paths(config).items()
    yield from lexicon_paths(config).items()
    judges, program = followed_code(suite, agent)
    yield from suite_files(suite, judges)
    yield from named_files("agent", program, os.getcwd())


def followed_code(suite: Path, agent: str | None) -> tuple[FollowedCode, FollowedCode]:
    """Of the judges of a suite, and of an agent that is not ours."""
    judges = judge_files(suite)
    if not judges and agent is None:
        return NOTHING, NOTHING
    from guarantee_email_agent.eval.agent_code import follow_agent  # for those who judge another agent, or by a judge
    from guarantee_email_agent.judging.judge_dependencies import follow_judges

    return follow_judges(judges), follow_agent(agent)


def _recordings(suite: Path, agent: str | None) -> Input:
    from guarantee_email_agent.eval.scenario_model import recordings_folder

    try:
        return Input("recording", "all", digest_of_folder(recordings_folder(suite, is_foreign=agent is not None)))
    except OSError as error:
        return incomplete(f"the recordings cannot be read ({error.strerror})")


def without_password(text: str) -> str:
    """A command line or URL without the user and password of URLs in it."""
    return re.sub(r"://[^/\s@]*@", "://…@", text)
