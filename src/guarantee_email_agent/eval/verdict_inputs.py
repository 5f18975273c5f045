"""What the verdicts of a suite depend on beside its scenarios: instruction and lexicon files, settings, model, judges.

Names are the same on every machine, so that two runs can be compared name by name.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.processor_models import AnswerPolicy
from guarantee_email_agent.files.python_code import NOTHING, FollowedCode
from guarantee_email_agent.files.text_file import FileSignature, file_signature, read_start
from guarantee_email_agent.llm.port import OFFLINE_MODEL
from guarantee_email_agent.runlog.program_inputs import code_inputs, digest_of_folder, incomplete, program_inputs
from guarantee_email_agent.runlog.records import Input, InputSet

AGENT_OPTIONS: Final = ("agent_mcp", "agent_timeout")
_MAX_KEPT: Final = 1 << 20
_MAX_READ: Final = 1 << 28


class VerdictInputs:
    """The files and settings, read once; `unchanged` tells whether the files are still the same."""

    def __init__(
        self, config: Config, suite: Path, llm: str, agent: str | None, agent_options: Mapping[str, Any] | None = None
    ) -> None:
        """agent: as `--agent` has it; None for our own in this process. agent_options: how it is started."""
        self._config, self._suite, self._agent = config, suite, agent
        self._agent_options = {name: (agent_options or {}).get(name) for name in AGENT_OPTIONS}
        self._is_own = _is_own(agent)
        self._files = dict(input_files(config, suite, agent))
        self._signature = self._read_signature()
        self.model = OFFLINE_MODEL if llm == "offline" else config.llm.model
        self.parameters = self._model_parameters() if llm != "offline" else {}
        self.set = InputSet([*self._file_inputs(), *self._setting_inputs(llm)])

    def unchanged(self) -> bool:
        """Whether no file was added, removed or written since."""
        return (
            dict(input_files(self._config, self._suite, self._agent)) == self._files
            and self._read_signature() == self._signature
        )

    def _read_signature(self) -> tuple[FileSignature, ...]:
        return tuple(map(file_signature, self._files.values()))

    def _file_inputs(self) -> Iterator[Input]:
        for (kind, name), path in self._files.items():
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

    def _setting_inputs(self, llm: str) -> Iterator[Input]:
        if self._is_own:
            yield _setting("setting", "agent", asdict(AnswerPolicy.of(self._config)))
            look_ups = {name: asdict(each) | {"server": None} for name, each in self._config.look_ups.items()}
            yield _setting("setting", "look_ups", look_ups)
            model = {"llm": "live" if llm == "record" else llm, "model": self.model, **self.parameters}
            yield _setting("model", "model", model)
        else:
            yield Input.of("agent", "agent", without_password(self._agent or "").encode())
        if self._agent is not None:
            yield _setting("setting", "agent_options", self._agent_options)
        yield from program_inputs()
        for code in followed_code(self._suite, self._agent):
            yield from code_inputs(code)
        if llm in ("live", "record"):
            yield incomplete("a live model can answer otherwise")
        elif llm == "replay":
            yield _recordings(self._suite)

    def _model_parameters(self) -> Mapping[str, Any]:
        llm = self._config.llm
        return {"max_tokens": llm.max_tokens, "temperature": llm.temperature, "force_tool": llm.force_tool}


def input_files(config: Config, suite: Path, agent: str | None) -> Iterator[tuple[tuple[str, str], str]]:
    """Kind and name, and the path, of each file that verdicts depend on beside the scenarios."""
    main, scenarios = config.instructions.main, config.instructions.scenarios_dir
    if _is_own(agent):
        yield ("instruction", main.name), str(main)
        for name in _names(scenarios, ".md"):
            yield ("instruction", f"scenarios/{name}"), os.path.join(scenarios, name)
    for name in _names(main.parent / "lexicon", ".md"):
        yield ("lexicon", name), os.path.join(main.parent, "lexicon", name)
    for name in _names(suite / "servers", ".yaml"):
        yield ("server", f"servers/{name}"), os.path.join(suite, "servers", name)
    judges, program = followed_code(suite, agent)
    yield from _named("judge", judges, os.path.abspath(suite))
    yield from _named("agent", program, os.getcwd())


def followed_code(suite: Path, agent: str | None) -> tuple[FollowedCode, FollowedCode]:
    """Of the judges of a suite, and of an agent that is not ours."""
    judges = [os.path.abspath(suite / name) for name in _names(suite, ".py", hidden=".")]
    if not judges and _is_own(agent):
        return NOTHING, NOTHING
    from guarantee_email_agent.eval.agent_code import follow_agent  # for those who judge another agent, or by a judge
    from guarantee_email_agent.judging.judge_dependencies import follow_judges

    return follow_judges(judges), follow_agent(agent)


def _named(kind: str, code: FollowedCode, folder: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Each file by its path from the folder, or by its name where it lies elsewhere."""
    used: dict[str, int] = {}
    for path in code.files:
        inside = path.startswith(f"{folder}{os.sep}")
        name = Path(path[len(folder) + 1 :]).as_posix() if inside else os.path.basename(path)
        used[name] = used.get(name, 0) + 1
        yield (kind, name if used[name] == 1 else f"{name} ({used[name]})"), path


def changed_inputs(before: Iterable[Input], after: Iterable[Input]) -> Iterator[tuple[str, str, str]]:
    """What is not the same in two sets of inputs: `added`, `removed` or `changed`, kind and name."""
    old, new = ({(each.kind, each.name): each.digest for each in inputs} for inputs in (before, after))
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key), new.get(key)
        if was != now:
            yield "added" if was is None else "removed" if now is None else "changed", *key


def _is_own(agent: str | None) -> bool:
    return agent is None or agent.partition(":")[0] == "own"


def _recordings(suite: Path) -> Input:
    from guarantee_email_agent.eval.scenario_model import recordings_folder

    try:
        return Input("recording", "all", digest_of_folder(recordings_folder(suite)))
    except OSError as error:
        return incomplete(f"the recordings cannot be read ({error.strerror})")


def without_password(text: str) -> str:
    """A command line or URL without the user and password of URLs in it."""
    return re.sub(r"://[^/\s@]*@", "://…@", text)


def _setting(kind: str, name: str, value: Any) -> Input:
    return Input.of(kind, name, json.dumps(value, sort_keys=True, indent=1, default=_plain).encode())


def _plain(value: Any) -> Any:
    return sorted(value) if isinstance(value, frozenset | set) else str(value)


def _names(folder: Path, ending: str, hidden: str = "._") -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(ending) and name[0] not in hidden)
    except OSError:
        return []
