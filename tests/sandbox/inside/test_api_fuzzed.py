"""Anything at all as a request: it gets an answer in JSON, and the sandbox goes on."""

from __future__ import annotations

import json

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from running_sandbox import Box

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
