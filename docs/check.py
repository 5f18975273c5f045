"""Run every command that the documentation shows, compare what it prints, and follow every link.

    python docs/check.py [FILE…]          check all documents, or these
    python docs/check.py --fix [FILE…]    write the output that commands print now into the documents

A block marked `console` holds `$ command` lines, each followed by what it prints; `…` alone on a line stands for any
number of lines. A block marked `sh` is a script that has to succeed. Other marks are not run. Commands run in a copy of
the project, one copy for each document, in the order in which they stand and as in one terminal: each in the folder in
which the one before it ended.
"""

from __future__ import annotations

import difflib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CI_SCRIPT = ROOT / ".ci" / "run"
TIMEOUT_S = 600
SHELL_MARKS = ("console", "sh")
OTHER_MARKS = ("text", "json", "yaml", "xml", "markdown", "python", "toml", "mermaid")
ANY_LINES = "…"

_FENCE = re.compile(r"^(?P<indent> *)(?P<fence>`{3,}|~{3,})(?P<mark>\S*)")
_LINK = re.compile(r"!?\[[^\]]*\]\((?P<inline>[^()\s]+)\)|(?:src|href)=\"(?P<html>[^\"]+)\"")
_CODE = re.compile(r"`[^`]*`")
_HEADING = re.compile(r"^#{1,6} +(?P<title>.+?) *#*$")
_NOT_IN_ANCHOR = re.compile(r"[^\w\- ]")
# What differs from one run to the next.
_CHANGING = re.compile(
    r"\b\d+(?:\.\d+)? ?m?s\b"  # durations
    r"|\b\d{8}T\d{6}-[0-9a-f]{8}\b|\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"  # a run's id and beginning
    r'|(?<="duration_s": )\d+\.\d+|(?<="processing_time_ms": )\d+'
)


# A run that takes long, as it does on a busy machine, says how far it is.
_PROGRESS = re.compile(r"\d+/\d+ \w+(?:, .*)?")


class Wrong(Exception):  # noqa: N818 - it is a finding, not an accident
    """A document that says what is not so. The message has the file and the line."""


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block. line: of its first line of content, from 1."""

    mark: str
    line: int
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Command:
    """A command with the output shown below it. line, end: the output's lines in the document, from 0, end excluded."""

    script: str
    line: int
    end: int
    shown: tuple[str, ...] | None


def main(arguments: Sequence[str]) -> int:
    fix = "--fix" in arguments
    named = [Path(each).resolve() for each in arguments if each != "--fix"]
    if unknown := [str(each) for each in named if each not in _documents()]:
        print(f"docs/check.py: no document of this project: {', '.join(unknown)}", file=sys.stderr)
        return 2
    problems: list[str] = []
    for document in named or _documents():
        name = document.relative_to(ROOT)
        if not document.is_file():
            problems.append(f"{name}: is missing")
            continue
        problems += [f"{name}:{problem}" for problem in _broken_links(document)]
        with tempfile.TemporaryDirectory(prefix="docs-") as place:
            try:
                ran = _run_commands(document, Path(place) / "project", fix)
            except Wrong as wrong:
                problems.append(f"{name}:{wrong}")
                print(f"{name}: failed")
            else:
                print(f"{name}: {ran} command{'' if ran == 1 else 's'}")
    for problem in problems:
        print(problem, file=sys.stderr)
    return 1 if problems else 0


def _documents() -> list[Path]:
    return [
        *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "CHANGELOG.md", "evals/scenarios/README.md")),
        *sorted((ROOT / "docs").glob("*.md")),
    ]


def _copy_project(copy: Path) -> None:
    """The project as git would hand it over, everything that is not ignored; and its bytecode, to compile it once."""
    listed = subprocess.run(
        ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"),
        cwd=ROOT,
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    for name in filter(None, listed.stdout.split("\0")):
        if (ROOT / name).is_file():  # a file may be deleted and not yet committed
            (copy / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, copy / name)
    for folder in (ROOT / "src").rglob("__pycache__"):
        shutil.copytree(folder, copy / folder.relative_to(ROOT))


def _environment(copy: Path) -> dict[str, str]:
    """`guarantee-email-agent` is on the path, as the README sets it up, and runs the code of the copy."""
    left_out = ("VIRTUAL_ENV", "CONFIG_PATH", "CI", "GITHUB_ACTIONS", "GITLAB_CI")
    kept = {name: value for name, value in os.environ.items() if name not in left_out}
    return kept | {
        "PATH": f"{Path(sys.prefix) / 'bin'}{os.pathsep}{os.environ.get('PATH', '')}",
        "PYTHONPATH": str(copy / "src"),
        "LC_ALL": "C.UTF-8",
        "NO_COLOR": "1",
        "COLUMNS": "100",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }


def _run_commands(document: Path, copy: Path, fix: bool) -> int:
    """How many commands the document holds; all of them ran. Raises Wrong at the first that fails."""
    lines = document.read_text(encoding="utf-8").split("\n")
    commands = [command for block in _blocks(lines) for command in _commands(block)]
    environment, changes = _environment(copy), list[tuple[Command, list[str]]]()
    if commands:
        _copy_project(copy)
    folder = copy
    for command in commands:
        if command.shown is None and _ci_runs(command.script):
            continue
        output, folder = _run(command, folder, environment)
        printed = [line.replace(f"{copy}{os.sep}", "") for line in output]
        printed = [line for line in printed if not _PROGRESS.fullmatch(line)]
        if command.shown is None or _same(command.shown, printed):
            continue
        if not fix:
            difference = _difference(command.shown, _shortened(command.shown, printed))
            raise Wrong(
                f"{command.line}: prints something else than what is shown. If it is right, run: "
                f"scripts/check --fix\n{difference}"
            )
        changes.append((command, _shortened(command.shown, printed)))
    for command, printed in reversed(changes):
        lines[command.line : command.end] = printed
    if changes:
        document.write_text("\n".join(lines), encoding="utf-8")
    return len(commands)


def _blocks(lines: Sequence[str]) -> Iterator[Block]:
    start, mark, fence = 0, "", ""
    for number, line in enumerate(lines, 1):
        match = _FENCE.match(line)
        if fence:
            if match and match["fence"].startswith(fence) and not match["mark"]:
                yield Block(mark, start, tuple(lines[start - 1 : number - 1]))
                fence = ""
        elif match:
            start, mark, fence = number + 1, match["mark"], match["fence"]
            if mark not in (*SHELL_MARKS, *OTHER_MARKS):
                known = ", ".join((*SHELL_MARKS, *OTHER_MARKS))
                raise Wrong(f"{number}: a block marked '{mark}'. Mark it as one of: {known}")
            if match["indent"] and mark == "console":
                raise Wrong(f"{number}: an indented console block. Move it to the left margin")
    if fence:
        raise Wrong(f"{start - 1}: a block that is never closed")


def _commands(block: Block) -> Iterator[Command]:
    if block.mark == "sh":
        yield Command("\n".join(block.lines), block.line, block.line, None)
    if block.mark != "console":
        return
    script: list[str] = []
    first = 0  # the output's first line within the block
    for index, line in enumerate((*block.lines, "$ ")):
        if line.startswith("$ "):
            if script:
                shown = block.lines[first:index]
                yield Command("\n".join(script), block.line + first - 1, block.line + index - 1, shown)
            elif index:
                raise Wrong(f"{block.line}: a console block has to begin with '$ ' and a command")
            script, first = [line[2:]], index + 1
        elif line.startswith("> ") and first == index:
            script.append(line[2:])
            first = index + 1


def _ci_runs(script: str) -> bool:
    """Whether CI has a step for this very command, so that the tests are not run twice."""
    return script in CI_SCRIPT.read_text(encoding="utf-8")


def _run(command: Command, folder: Path, environment: Mapping[str, str]) -> tuple[list[str], Path]:
    """What the command prints, stdout and stderr as they come, and the folder in which it ends.

    Raises Wrong where it fails or hangs.
    """
    with tempfile.NamedTemporaryFile("r", encoding="utf-8") as ended_in:
        script = f"trap 'pwd >{ended_in.name}' EXIT\n{command.script}"
        try:
            done = subprocess.run(
                ("bash", "-euo", "pipefail", "-c", script),
                cwd=folder,
                env=dict(environment),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                encoding="utf-8",
                errors="replace",
                timeout=TIMEOUT_S,
                check=False,
            )
        except subprocess.TimeoutExpired:
            raise Wrong(f"{command.line}: took over {TIMEOUT_S} s: {command.script}") from None
        if done.returncode != 0:
            raise Wrong(f"{command.line}: ended with exit code {done.returncode}: {command.script}\n{done.stdout}")
        printed = done.stdout.rstrip("\n").split("\n") if done.stdout.strip() else []
        return printed, Path(ended_in.read().strip() or folder)  # a script may set a trap of its own


def _same(shown: Sequence[str], printed: Sequence[str]) -> bool:
    pattern = "\n".join(re.escape(_normal(line)) for line in shown)
    pattern = re.sub(rf"(?m)^{re.escape(ANY_LINES)}\n?", "(?:.*\n)*?", pattern)
    return re.fullmatch(pattern.rstrip("\n") + "\n*", "\n".join(map(_normal, printed)) + "\n") is not None


def _normal(line: str) -> str:
    return _CHANGING.sub("<changing>", line.rstrip())


def _shortened(shown: Sequence[str], printed: list[str]) -> list[str]:
    """`printed`, with what is left out now left out; every shown line that is still printed stays."""
    lines: list[str] = []
    before, after = [[_normal(line) for line in each] for each in (shown, printed)]
    for kind, a, b, c, d in difflib.SequenceMatcher(None, before, after, autojunk=False).get_opcodes():
        gaps = [index for index in range(a, b) if shown[index] == ANY_LINES and kind != "equal"]
        if gaps:
            head = min(c + gaps[0] - a, d)
            lines += [*printed[c:head], ANY_LINES, *printed[max(head, d - (b - gaps[-1] - 1)) : d]]
        else:
            lines += printed[c:d]
    return lines


def _difference(shown: Sequence[str], printed: Sequence[str]) -> str:
    before, after = [_normal(line) for line in shown], [_normal(line) for line in printed]
    return "\n".join(difflib.unified_diff(before, after, "shown", "printed", lineterm=""))


def _broken_links(document: Path) -> Iterator[str]:
    fenced = False
    for number, line in enumerate(document.read_text(encoding="utf-8").split("\n"), 1):
        fenced ^= line.lstrip().startswith(("```", "~~~"))
        if fenced:
            continue
        for match in _LINK.finditer(_CODE.sub("", line)):
            target = match["inline"] or match["html"]
            if re.match(r"[a-z]+:", target):
                continue
            path, _, anchor = target.partition("#")
            file = document.parent / path if path else document
            if not file.exists():
                yield f"{number}: links to {target}, which does not exist"
            elif anchor and file.suffix == ".md" and anchor not in _anchors(file):
                yield f"{number}: links to {target}, but {file.name} has no such heading"


def _anchors(document: Path) -> set[str]:
    titles = (
        match["title"] for line in document.read_text(encoding="utf-8").split("\n") if (match := _HEADING.match(line))
    )
    return {_NOT_IN_ANCHOR.sub("", title.lower()).replace(" ", "-") for title in titles}


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
