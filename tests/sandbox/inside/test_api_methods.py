"""Every method of the client library works or is refused with a sentence; anything at all gets an answer in JSON."""

import inspect
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest
from agent_sandbox import Sandbox
from agent_sandbox.core.api_error import ApiError
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
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


PATHS = (
    *(f"/v1/shell/{name}" for name in ("exec", "view", "wait", "write", "kill", "sessions/%ED%A0%80")),
    *(f"/v1/file/{name}" for name in ("read", "write", "replace", "str_replace_editor", "list", "find", "search")),
    *("/v1/file/upload", "/v1/file/download", "/v1/file/watch/x/poll", "/v1/code/execute", "/v1/sandbox"),
    *("/v1/nothing", "/", "//", "/v1/../v1/sandbox"),
)
NAMES = st.sampled_from(
    (
        *("command", "id", "exec_dir", "async_mode", "strict", "truncate", "input", "press_enter", "file", "path"),
        *("content", "encoding", "append", "start_line", "end_line", "old_str", "new_str", "file_text", "insert_line"),
        *("view_range", "replace_mode", "glob", "regex", "max_depth", "recursive", "sort_by", "file_types"),
        *("language", "code", "stateful", "session_id", "cwd", "no_change_timeout"),
    )
)
TEXTS = st.one_of(
    st.sampled_from(
        ("", "view", "create", "python", "javascript", "ALL", "size", "/tmp/x", "..", "/proc/self/mem", "1")
    ),
    st.sampled_from(("\0", "\ud800", "\udcff", "a\nb", "x" * 5_000, "/" * 5_000, "(", "[", "**/**/**", "/dev/zero")),
    st.text(max_size=20),
)
NUMBERS = st.one_of(st.integers(), st.floats(), st.sampled_from((0, -1, 10**300, 2**63, -(2**63))))
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, TEXTS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(TEXTS, inner, max_size=3)),
    max_leaves=5,
)
# A wait may take as long as a client asks for; here nobody asks for long.
LIMITS = {"timeout": 1, "hard_timeout": 1, "seconds": 1, "max_wait_seconds": 1}
METHODS = st.sampled_from(("GET", "POST", "POST", "POST", "DELETE", "PUT", "PATCH", "OPTIONS"))


def _check(box: Box, answer: httpx.Response) -> None:
    assert answer.status_code < 600
    if answer.headers["Content-Type"] == "application/json":
        assert answer.json()["success"] is (answer.status_code == 200)
    # Not one of the failures that a handler did not foresee.
    assert "could not deal with" not in answer.text[:1_000], answer.text[:1_000]


@pytest.mark.slow
@settings(max_examples=200, derandomize=True, deadline=None, database=None, suppress_health_check=list(HealthCheck))
@given(METHODS, st.sampled_from(PATHS), st.dictionaries(NAMES, VALUES, max_size=6))
def test_any_arguments(box: Box, method: str, path: str, arguments: dict[str, object]) -> None:

    body = json.dumps(arguments | LIMITS).encode()
    _check(box, httpx.request(method, f"{box.sandbox.base_url}{path}", content=body, timeout=30))


def test_the_sandbox_is_still_there(box: Box) -> None:
    assert box.output("echo alive") == "alive"
