"""What an agent of `--agent` is made of, as far as its command line and its source show it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import sys
from collections.abc import Sequence
from typing import Final

from guarantee_email_agent.files.python_code import NOTHING, FollowedCode, follow_code, follow_text
from guarantee_email_agent.files.text_file import read_start

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
