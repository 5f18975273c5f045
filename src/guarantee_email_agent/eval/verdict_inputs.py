"""What the verdicts of a suite depend on beside its scenarios: instruction and lexicon files, settings, model, judges.

Names are the same on every machine, so that two runs can be compared name by name.
"""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Iterator, Mapping, Sequence
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
from guarantee_email_agent.files.python_code import NOTHING, FollowedCode, follow_code, follow_text
from guarantee_email_agent.files.text_file import FileCache, FileSignature, file_signature, read_start
from guarantee_email_agent.runlog.program_inputs import code_inputs, digest_of_folder, incomplete, program_inputs
from guarantee_email_agent.runlog.records import Input, InputSet
from guarantee_email_agent.runlog.suite_manifest import (
    CALIBRATION_FILE,
    folders_above,
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
        self.suite = os.fspath(suite)
        self._agent_options = {name: (agent_options or {}).get(name) for name in AGENT_OPTIONS}
        self._listing = FileCache[Mapping[tuple[str, str], str]]()
        self._files = self._list_files()
        self._signature = self._read_signature()
        self.model, self.parameters = model_name(config, llm), model_parameters(config, llm)
        if agent is not None:
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
        places += (Path(folder) / "servers" for folder in folders_above(suite))
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


_PYTHON: Final = re.compile(r"(?:python|pypy)[\d.]*(?:\.exe)?")
_SHELLS: Final = frozenset({"sh", "bash", "dash", "zsh", "ksh", "fish"})
_ASSIGNMENT: Final = re.compile(r"[A-Za-z_]\w*=.*", re.DOTALL)
_WITH_VALUE: Final = frozenset({"-u", "--unset", "-C", "--chdir", "-S", "--split-string"})
_WORD: Final = re.compile(r"[^\s'\"`;|&<>(){}=]+")
_MAX_SCRIPT_BYTES: Final = 1_000_000
_DEEPEST: Final = 5


def follow_agent(agent: str | None) -> FollowedCode:
    """agent: as `--agent` has it. Nothing of our own agent, which `program_inputs` has."""
    if agent is None:
        return NOTHING
    kind, _, place = agent.partition(":")
    if kind == "python":
        return _of_module(place.partition(":")[0], (os.getcwd(), *_python_path()))
    if kind != "command":
        return FollowedCode(unknown=("what answers at the agent's URL cannot be told",))
    try:
        words = shlex.split(place)
    except ValueError:
        return NOTHING  # such an agent is refused
    return _without_given(_of_command(words, 0), words)


def _without_given(code: FollowedCode, words: Sequence[str]) -> FollowedCode:
    """Without the variables that the command line itself sets, or we do."""
    given = {word.partition("=")[0] for word in words if _ASSIGNMENT.fullmatch(word)} | {"MCP_CONFIG", "PWD"}
    return code._replace(variables=code.variables - given)


def _of_command(words: Sequence[str], depth: int) -> FollowedCode:
    """The program with all of its arguments that are files."""
    if not words or depth > _DEEPEST:
        return NOTHING
    program, *arguments = words
    name = os.path.basename(program)
    if name == "env":
        return _of_command(_after_env(arguments), depth + 1)
    if (name == "uv" and arguments[:1] == ["run"]) or name == "uvx":
        inner = _after_options(arguments[name == "uv" :])
        ours = [file for file in ("pyproject.toml", "uv.lock") if os.path.isfile(file)]
        code = FollowedCode(tuple(map(os.path.abspath, ours)), unknown=("uv chooses Python and packages when it runs",))
        is_script = bool(inner) and inner[0].endswith(".py")
        return code + _of_command([*(["python"] if is_script else []), *inner], depth + 1)
    found = shutil.which(program)
    path = os.path.abspath(found or program)
    code = _of_files(arguments, depth, follows=not _PYTHON.fullmatch(name))
    if _PYTHON.fullmatch(name):
        is_ours = _is_ours(path)
        return (NOTHING if is_ours else _of_interpreter(path)) + code + _of_python(arguments, is_ours=is_ours)
    if name in _SHELLS:
        return code + _of_shell_text(arguments if "-c" in arguments else (), depth)
    return _of_file(path, depth) + code


def _is_ours(python: str) -> bool:
    return os.path.dirname(python) == os.path.dirname(sys.executable)


def _of_interpreter(path: str) -> FollowedCode:
    try:
        is_script = read_start(path, 2) == b"#!"
    except OSError:
        is_script = True
    return FollowedCode((path,), unknown=(f"which Python {path} starts is not known",) if is_script else ())


def _of_python(arguments: list[str], *, is_ours: bool) -> FollowedCode:
    places = _python_path()
    for at, word in enumerate(arguments):
        value = arguments[at + 1] if at + 1 < len(arguments) else ""
        if word == "-m":
            # Started in an empty folder, it finds what is installed, and what PYTHONPATH names.
            code = _of_module(value, places, is_ours=is_ours)
            return code if not code.unknown and not code.modules else code + _of_module(value, (os.getcwd(),))
        if word == "-c":
            return _known_modules(follow_text(value, places), is_ours=is_ours)
        if not word.startswith("-") and os.path.isfile(word):
            return _known_modules(follow_code([os.path.abspath(word)], places), is_ours=is_ours)
    return NOTHING


def _python_path() -> tuple[str, ...]:
    return tuple(os.path.abspath(place) for place in os.environ.get("PYTHONPATH", "").split(os.pathsep) if place)


def _of_module(module: str, places: Sequence[str], *, is_ours: bool = True) -> FollowedCode:
    return _known_modules(follow_text(f"import {module}\nimport {module}.__main__\n", places), is_ours=is_ours)


def _known_modules(code: FollowedCode, *, is_ours: bool) -> FollowedCode:
    """What another Python has installed is not looked at."""
    if is_ours or not code.modules:
        return code
    unknown = tuple(f"which {module} the agent's Python has is not known" for module in sorted(code.modules))
    return code._replace(modules=frozenset(), unknown=code.unknown + unknown)


def _of_files(words: Sequence[str], depth: int, *, follows: bool) -> FollowedCode:
    """The arguments that name files, also in the form `--name=FILE`. follows: whether their imports, too."""
    code = NOTHING
    for word in words:
        for text in dict.fromkeys((word, word.partition("=")[2])):
            if os.path.isfile(text) and follows and text.endswith(".py"):
                code += _known_modules(follow_code([os.path.abspath(text)], _python_path()), is_ours=False)
            elif os.path.isfile(text):
                code += _of_file(os.path.abspath(text), depth)
            elif text and os.path.isdir(text):
                code += FollowedCode(
                    unknown=(f"the files in {os.path.basename(os.path.abspath(text))} are not followed",)
                )
    return code


def _of_file(path: str, depth: int) -> FollowedCode:
    """A file and, where it is a program, what its first line starts."""
    code = FollowedCode((path,))
    if path.endswith(".py") or depth > _DEEPEST:
        return code
    try:
        content = read_start(path, _MAX_SCRIPT_BYTES)
    except OSError:
        return code
    first, _, rest = content.partition(b"\n")
    if first.startswith(b"#!"):
        interpreter = first[2:].decode(errors="replace").split()
        name = os.path.basename(interpreter[-1]) if interpreter else ""
        if _PYTHON.fullmatch(name):
            python = interpreter[0] if len(interpreter) == 1 else shutil.which(name) or name
            is_ours = _is_ours(python)
            inner = _known_modules(follow_code([path], _python_path()), is_ours=is_ours)
            return code + inner + (NOTHING if is_ours else _of_interpreter(python))
        if name in _SHELLS:
            return code + _of_shell_text([rest.decode(errors="replace")], depth, os.path.dirname(path))
        return code + FollowedCode(unknown=(f"what {os.path.basename(path)} starts is not followed",))
    if path.endswith((".sh", ".bash")):
        return code + _of_shell_text([content.decode(errors="replace")], depth, os.path.dirname(path))
    if content.startswith((b"\x7fELF", b"MZ")) or (os.access(path, os.X_OK) and b"\0" in content[:1024]):
        return code + FollowedCode(unknown=(f"the libraries of {os.path.basename(path)} are not followed",))
    return code


def _of_shell_text(texts: Sequence[str], depth: int, folder: str = "") -> FollowedCode:
    """Every word that names a file from here or from the script's folder; a shell may do anything beside."""
    code = FollowedCode(unknown=("what a shell starts is not followed",))
    for word in dict.fromkeys(word for text in texts for word in _WORD.findall(text)):
        relative = re.sub(r"^\$\w+/", "", word)
        for path in sorted({os.path.abspath(word), os.path.abspath(os.path.join(folder, relative))}):
            if not path.startswith(("/dev/", "/proc/")) and os.path.isfile(path):
                is_python = path.endswith(".py")
                inner = _known_modules(follow_code([path]), is_ours=False) if is_python else _of_file(path, depth + 1)
                code += inner
    return code


def _after_env(words: list[str]) -> list[str]:
    at = 0
    while at < len(words) and (words[at].startswith("-") or _ASSIGNMENT.fullmatch(words[at])):
        at += 2 if words[at] in _WITH_VALUE else 1
    return words[at:]


def _after_options(words: list[str]) -> list[str]:
    """Of `uv run`: the first word that is a program or a file, since an option's value is mostly neither."""
    for at, word in enumerate(words):
        if not word.startswith("-") and (os.path.isfile(word) or shutil.which(word)):
            return words[at:]
    return []
