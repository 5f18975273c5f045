"""Every method of the client library works or is refused with a sentence, as the table in the documents says."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

from agent_sandbox import Sandbox
from agent_sandbox.core.api_error import ApiError
from running_sandbox import Box

PAGE = Path(__file__).parents[3] / "docs" / "solve.md"
ARGUMENTS: dict[str, Any] = {
    "code": "1",
    "command": "true",
    "content": "x",
    "file": "/tmp/some-file",
    "glob": "*",
    "input": "x",
    "language": "python",
    "path": "/tmp",
    "pattern": "x",
    "press_enter": True,
    "regex": "x",
    "request": {},
}
SPECIAL: dict[str, dict[str, Any]] = {
    "file.str_replace_editor": {"command": "view"},
    "file.upload_file": {"file": ("name", b"content")},
    "skills.register_skills": {"file": ("name", b"content")},
}


@cache
def _sections() -> dict[str, list[str]]:
    """The client's methods by section, but for those of the browser."""
    client = Sandbox(base_url="http://localhost:1")
    sections = {}
    for name, section in inspect.getmembers(client, lambda member: hasattr(member, "with_raw_response")):
        methods = [method for method, _ in inspect.getmembers(section, inspect.ismethod) if method[0] != "_"]
        if not name.startswith("browser"):
            sections[name] = methods
    return sections


@cache
def _table() -> dict[str, tuple[set[str], set[str]]]:
    """Section → methods that work, and methods that are refused, from the documents."""
    lines = PAGE.read_text(encoding="utf-8").partition("| section | works |")[2].partition("\n\n")[0].splitlines()
    told = {line.split("|")[1].strip(" `"): line.split("|")[2] for line in lines[2:]}
    table = {}
    for section, methods in _sections().items():
        cell = told.pop(section, "")
        named = {method for method in methods if any(map(method.startswith, _names(cell)))}
        works = set(methods) - named if cell.strip().startswith("all") else named
        table[section] = works, set(methods) - works
    assert not told, "sections that the client does not have"
    return table


def _names(cell: str) -> set[str]:
    return set(re.findall(r"`(\w+)…?`", cell))


def _refusal(method: Callable[..., Any], special: dict[str, Any]) -> ApiError | None:
    given = {}
    for name, parameter in inspect.signature(method).parameters.items():
        if parameter.default is inspect.Parameter.empty:
            given[name] = special.get(name, ARGUMENTS.get(name, "x"))
    try:
        result = method(**given)
        if inspect.isgenerator(result):
            b"".join(result)
    except ApiError as error:
        return error
    return None


def test_every_method_works_or_is_refused_with_a_sentence(box: Box) -> None:
    offered = {section: set[str]() for section in _sections()}
    for section, method in ((section, method) for section, methods in _sections().items() for method in methods):
        box.write("/tmp/some-file", "x")
        refusal = _refusal(getattr(getattr(box.real, section), method), SPECIAL.get(f"{section}.{method}", {}))
        if refusal is not None:
            assert isinstance(refusal.body, dict)
            assert (refusal.body["success"], bool(refusal.body["message"])) == (False, True), (section, method)
        if refusal is None or (refusal.status_code != 501 and "does not offer" not in refusal.body["message"]):
            offered[section].add(method)
    assert offered == {section: works for section, (works, _) in _table().items()}


def test_the_table_names_every_method_once() -> None:
    table = {section: (works | refused, works & refused) for section, (works, refused) in _table().items()}
    assert table == {section: (set(methods), set()) for section, methods in _sections().items()}
