"""Every method of the client library works or is refused with a sentence, as the tables in the documents say."""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from agent_sandbox import Sandbox
from agent_sandbox.core.api_error import ApiError
from running_sandbox import Box

PAGE = (Path(__file__).parents[3] / "docs" / "solve.md").read_text(encoding="utf-8")
ARGUMENTS: dict[str, Any] = {
    "content": "x",
    "file": "/tmp/some-file",
    "glob": "*",
    "input": "x",
    "language": "python",
    "path": "/tmp",
    "press_enter": True,
    "request": {},
}
SPECIAL: dict[str, dict[str, Any]] = {
    "file.str_replace_editor": {"command": "view"},
    "file.upload_file": {"file": ("name", b"content")},
    "skills.register_skills": {"file": ("name", b"content")},
}


def _methods() -> Iterator[tuple[str, str]]:
    client = Sandbox(base_url="http://localhost:1")
    for name, section in inspect.getmembers(client, lambda member: hasattr(member, "with_raw_response")):
        yield from ((name, method) for method, _ in inspect.getmembers(section, inspect.ismethod) if method[0] != "_")


def _works(section: str) -> set[str]:
    """By the documents."""
    row = re.search(rf"^\| `{section}` \|([^|]*)\|", PAGE, re.MULTILINE)
    return set(re.findall(r"`(\w+)`", row[1])) if row else set()


def test_every_method_works_or_is_refused_with_a_sentence(box: Box) -> None:
    for section, method in _methods():
        works = method in _works(section)
        if section.startswith("browser") and works:
            continue  # the browser's own tests try them
        box.write("/tmp/some-file", "x")
        special = SPECIAL.get(f"{section}.{method}", {})
        call, refusal = getattr(getattr(box.real, section), method), None
        try:
            result = call(
                **{
                    name: special.get(name, ARGUMENTS.get(name, "x"))
                    for name, parameter in inspect.signature(call).parameters.items()
                    if parameter.default is inspect.Parameter.empty
                }
            )
            if inspect.isgenerator(result):
                b"".join(result)
        except ApiError as error:
            refusal = error
        assert refusal is None or (refusal.body["success"], bool(refusal.body["message"])) == (False, True), (
            section,
            method,
        )
        assert works == (refusal is None or "does not offer" not in refusal.body["message"]), (section, method)


def test_the_tables_name_methods_that_the_client_has() -> None:
    sections = {section for section, _ in _methods()}
    named = {(section, method) for section in sections for method in _works(section)}
    assert named <= set(_methods())
    assert len(named) > 30
