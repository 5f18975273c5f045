from __future__ import annotations

import json
import math
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_program import CallError, McpProgram, RawServer
from pydantic import Field, ValidationError

from guarantee_email_agent.mcp_servers.dispatcher import MAX_THREADS, ToolArguments, format_problems
from guarantee_email_agent.services.call_errors import ERROR_META_KEY

SAMPLE = """
import asyncio, os, sys, time
from guarantee_email_agent.mcp_servers.dispatcher import ServerTool, ToolArguments, ToolOutput, in_thread, serve
from guarantee_email_agent.services.tool_error import ToolError

class Text(ToolArguments):
    text: str
    times: int = 2

class Echo(ToolOutput):
    text: str
    times: int = 0

class File(ToolArguments):
    file: str

class Done(ToolOutput):
    done: bool = True

class Limits(ToolOutput):
    core: int
    stdin: str

async def echo(arguments: Text) -> Echo:
    \'\'\'Says it
    again.\'\'\'
    print("a stray print", flush=True)
    return Echo(text=arguments.text, times=arguments.times)

async def fail(_: ToolArguments) -> ToolOutput:
    raise ToolError("sample_full", "no room\\nat all", retryable=True, uncertain=True)

async def bug(_: ToolArguments) -> ToolOutput:
    raise KeyError("what a customer wrote")

async def work(arguments: File) -> Done:
    await asyncio.sleep(0.3)
    with open(arguments.file, "a") as file:
        file.write("done")
    return Done(done=True)

async def late_bug(_: ToolArguments) -> ToolOutput:
    await asyncio.sleep(0.3)
    raise KeyError("what a customer wrote")

async def wait(_: ToolArguments) -> ToolOutput:
    await asyncio.sleep(3600)
    return ToolOutput()

async def large(_: ToolArguments) -> Echo:
    return Echo(text="x" * 100_000)

async def half(_: ToolArguments) -> Echo:
    return Echo(text="half a character: \\udcff")

def block(file):
    while not os.path.exists(file):
        time.sleep(0.01)

async def hold(arguments: File) -> ToolOutput:
    await in_thread(block, arguments.file)
    return ToolOutput()

async def write(arguments: File) -> ToolOutput:
    await in_thread(lambda: open(arguments.file, "w").close())
    return ToolOutput()

async def limits(_: ToolArguments) -> Limits:
    import resource
    return Limits(core=resource.getrlimit(resource.RLIMIT_CORE)[0], stdin=sys.stdin.read())

rest = [ServerTool(handler) for handler in (fail, bug, work, large, limits, half, hold, write, late_bug)]
tools = [ServerTool(echo, read_only=True), ServerTool(wait, interruptible=True), *rest]
sys.exit(serve("sample", tools, "How to use it."))
"""


class SampleArguments(ToolArguments):
    name: str = Field(min_length=2, max_length=5)
    kind: Literal["a", "b"] = "a"
    count: int = Field(3, ge=1, le=9)
    seconds: float = 0
    wanted: bool = False
    headers: dict[str, Annotated[str, Field(max_length=3)]] = Field({})


def problems(arguments: dict[str, Any]) -> str:
    with pytest.raises(ValidationError) as caught:
        SampleArguments.model_validate(arguments)
    return format_problems(caught.value, SampleArguments)


def test_arguments_that_fit_pass_and_defaults_are_filled_in() -> None:
    given = {"name": "ab", "kind": "b", "count": 9, "seconds": 2, "wanted": True, "headers": {"X-A": "1"}}
    assert SampleArguments.model_validate(given).model_dump() == given
    assert SampleArguments.model_validate({"name": "abc"}).count == 3


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        ({"name": 1}, "'name': Input should be a valid string"),
        ({"name": None}, "'name': Input should be a valid string"),
        ({"name": "a"}, "'name': String should have at least 2 characters"),
        ({"name": "abcdef"}, "'name': String should have at most 5 characters"),
        ({"kind": "c"}, "'kind': Input should be 'a' or 'b'"),
        ({"count": True}, "'count': Input should be a valid integer"),
        ({"count": 2.0}, "'count': Input should be a valid integer"),
        ({"count": "2"}, "'count': Input should be a valid integer"),
        ({"count": 0}, "'count': Input should be greater than or equal to 1"),
        ({"count": 10}, "'count': Input should be less than or equal to 9"),
        ({"seconds": math.nan}, "'seconds': Input should be a finite number"),
        ({"wanted": 1}, "'wanted': Input should be a valid boolean"),
        ({"headers": []}, "'headers': Input should be a valid dictionary"),
        ({"headers": {"X-A": 1}}, "'headers'['X-A']: Input should be a valid string"),
        ({"headers": {"X-A": "long"}}, "'headers'['X-A']: String should have at most 3 characters"),
        ({"nmae": "x"}, "unknown argument 'nmae'; its arguments are name, kind, count, seconds, wanted, headers"),
    ],
)
def test_a_wrong_argument_is_one_line(arguments: dict[str, Any], told: str) -> None:
    assert problems({"name": "ab", **arguments}) == told


def test_half_a_character_is_no_string() -> None:
    assert problems({"name": "ab\ud800"}).startswith("'name': Input should be a valid string")


def test_several_wrong_arguments_are_all_named() -> None:
    assert problems({"kind": "c"}) == "the argument 'name' is missing; 'kind': Input should be 'a' or 'b'"


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(st.dictionaries(st.sampled_from([*SampleArguments.model_fields, "other"]) | st.text(), JSON))
def test_whatever_comes_is_valid_or_refused_without_its_values(arguments: dict[str, Any]) -> None:
    arguments["name"] = "a customer's own words"
    told = problems(arguments)
    assert told.isprintable()
    assert "customer" not in told


@pytest.fixture(scope="module")
def script(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sample") / "sample_server.py"
    path.write_text(SAMPLE)
    return path


@pytest.fixture(scope="module")
def program(script: Path) -> Iterator[McpProgram]:
    environment = {"PYTHONPATH": str(script.parent)}
    with McpProgram(script.stem, env=environment, stderr=script.with_suffix(".stderr")) as program:
        yield program


@pytest.fixture
def raw(script: Path) -> Iterator[RawServer]:
    with RawServer(script) as server:
        yield server


def test_tools_are_declared_with_their_schemas(program: McpProgram) -> None:
    echo = program.tools()["echo"]
    assert echo.description == "Says it again."
    assert echo.input_schema["additionalProperties"] is False
    assert echo.output_schema["required"] == ["text"]
    assert echo.annotations.read_only_hint is True


def test_a_result_is_structured_and_text(program: McpProgram) -> None:
    assert program.call("echo", text="Grüße") == {"text": "Grüße", "times": 2}
    result = program.start_call("echo", text="Grüße").result()
    assert result.content[0].text == '{"text":"Grüße","times":2}'


def test_the_text_of_a_large_result_is_a_pointer(program: McpProgram) -> None:
    result = program.start_call("large").result()
    assert len(result.structured_content["text"]) == 100_000
    assert result.content[0].text == "over 65536 characters of JSON: see the structured content"


def test_a_tool_error_is_a_typed_result(program: McpProgram) -> None:
    with pytest.raises(CallError) as caught:
        program.call("fail")
    error = caught.value
    assert (error.code, error.retryable, error.uncertain) == ("sample_full", True, True)
    assert error.text == "sample_full: no room\\nat all"


@pytest.mark.parametrize(
    ("tool", "arguments", "told"),
    [
        ("echo", {}, "sample_invalid_argument: echo: the argument 'text' is missing"),
        ("echo", {"text": 1}, "sample_invalid_argument: echo: 'text': Input should be a valid string"),
        ("fail", {"a": 1}, "sample_invalid_argument: fail: unknown argument 'a'; its arguments are none"),
        (
            "ehco",
            {},
            (
                "sample_unknown_tool: there is no tool 'ehco'; there are echo, wait, fail, bug, work, large, limits, "
                "half, hold, write, late_bug"
            ),
        ),
    ],
)
def test_a_bad_call_is_told_in_one_line(program: McpProgram, tool: str, arguments: dict[str, Any], told: str) -> None:
    with pytest.raises(CallError) as caught:
        program.call(tool, **arguments)
    assert caught.value.text == told
    assert not caught.value.retryable


def test_an_error_of_the_server_itself_tells_the_place_and_not_the_text(program: McpProgram, script: Path) -> None:
    with pytest.raises(CallError) as caught:
        program.call("bug")
    assert caught.value.code == "sample_internal"
    assert caught.value.uncertain
    assert "KeyError at sample_server.py:" in caught.value.message
    told = script.with_suffix(".stderr").read_text()
    assert "sample: bug: unexpected KeyError at sample_server.py:" in told
    assert "customer" not in told + caught.value.message


def test_stray_prints_do_not_disturb_the_protocol(program: McpProgram, script: Path) -> None:
    program.call("echo", text="a")
    assert "a stray print" in script.with_suffix(".stderr").read_text()


def test_the_process_makes_no_core_file_and_has_no_stdin(program: McpProgram) -> None:
    assert program.call("limits") == {"core": 0, "stdin": ""}


def test_a_wait_does_not_keep_other_calls(program: McpProgram) -> None:
    waiting = program.start_call("wait")
    assert program.call("echo", text="a")["text"] == "a"
    assert not waiting.done()
    waiting.cancel()


def test_at_the_end_of_input_calls_in_work_are_finished(raw: RawServer, tmp_path: Path) -> None:
    raw.call(1, "work", file=str(tmp_path / "done"))
    raw.call(2, "wait")
    code, results, _ = raw.end()
    assert code == 0
    assert results[1]["structuredContent"] == {"done": True}
    assert results[2]["_meta"][ERROR_META_KEY]["code"] == "sample_stopping"
    assert (tmp_path / "done").read_text() == "done"


def test_sigterm_finishes_calls_in_work(raw: RawServer, tmp_path: Path) -> None:
    begin(raw, "work", file=str(tmp_path / "done"))
    code, results, told = raw.end(by=signal.SIGTERM)
    assert (code, told) == (0, "a stray print\n")
    assert results[1]["structuredContent"] == {"done": True}


def test_sigint_ends_at_once_and_quietly(raw: RawServer) -> None:
    begin(raw, "wait")
    assert raw.end(by=signal.SIGINT) == (130, {}, "a stray print\n")


def begin(raw: RawServer, tool: str, **arguments: object) -> None:
    """Call 1; the server is at it when this returns."""
    raw.call(1, tool, **arguments)
    raw.call(2, "echo", text="begun")
    raw.await_line()


def test_a_call_that_the_client_cancels_is_finished_all_the_same(raw: RawServer, tmp_path: Path) -> None:
    begin(raw, "work", file=str(tmp_path / "done"))
    raw.cancel(1)
    code, results, _ = raw.end()
    assert (code, results) == (0, {})
    assert (tmp_path / "done").read_text() == "done"


def test_an_error_of_the_server_in_a_call_given_up_is_told_without_its_text(raw: RawServer) -> None:
    begin(raw, "late_bug")
    raw.cancel(1)
    _, _, told = raw.end()
    assert "sample: late_bug: unexpected KeyError at sample_server.py:" in told
    assert "customer" not in told


@pytest.mark.parametrize(
    ("line", "identity"),
    [
        (b"rubbish", None),
        (b'{"id": 7, "text": "\\ud800"}', 7),
        (b'{"id": "a", "text": "\\ud800"}', "a"),
        (b'{"id": true}', None),
        (b'{"id": 1.5}', None),
        (b'{"id": "\\ud800"}', None),
        (b'{"jsonrpc": "2.0", "id": "\\ud800", "method": "ping"}', None),
    ],
)
def test_a_line_that_is_no_message_is_answered_and_the_server_goes_on(
    raw: RawServer, line: bytes, identity: int | str | None
) -> None:
    raw.write(b"\n" + line + b"\n")
    answer = raw.await_line()
    assert (answer["id"], answer["error"]["code"]) == (identity, -32700)
    raw.call(1, "echo", text="on")
    assert raw.await_line()["id"] == 1


def test_an_answer_that_is_no_json_is_an_error_of_that_call_alone(raw: RawServer) -> None:
    raw.call(1, "half")
    answer = raw.await_line()
    assert (answer["id"], answer["error"]["code"]) == (1, -32603)
    raw.call(2, "echo", text="on")
    assert raw.await_line()["id"] == 2


def test_calls_that_wait_for_something_keep_no_answer_back(raw: RawServer, tmp_path: Path) -> None:
    for number in range(MAX_THREADS):
        raw.call(number, "hold", file=str(tmp_path / "go on"))
    raw.call(100, "echo", text="on")
    assert raw.await_line()["id"] == 100
    (tmp_path / "go on").touch()
    assert raw.end()[0] == 0


def test_a_call_given_up_before_a_thread_was_free_is_not_begun(raw: RawServer, tmp_path: Path) -> None:
    for number in range(MAX_THREADS):
        raw.call(number, "hold", file=str(tmp_path / "go on"))
    for number in (100, 101):
        raw.call(number, "write", file=str(tmp_path / str(number)))
    raw.cancel(100)
    raw.call(102, "echo", text="the server has seen all that")
    raw.await_line()
    (tmp_path / "go on").touch()
    code, _, told = raw.end()
    assert (code, told) == (0, "a stray print\n")
    assert [path.name for path in tmp_path.iterdir() if path.name != "go on"] == ["101"]


def test_answers_keep_their_order_however_long_they_are(raw: RawServer) -> None:
    for number in range(1, 21):  # nobody reads meanwhile, and a pipe holds one of the long ones at most
        raw.call(number, "large" if number % 2 else "echo", **({} if number % 2 else {"text": "short"}))
    assert [raw.await_line()["id"] for _ in range(20)] == list(range(1, 21))


def test_calls_may_stand_in_a_file(script: Path, tmp_path: Path) -> None:
    calls = tmp_path / "calls"
    calls.write_text("".join(json.dumps({"jsonrpc": "2.0", "id": n, "method": "ping"}) + "\n" for n in range(3)))
    with calls.open() as stdin:
        done = subprocess.run([sys.executable, script], stdin=stdin, capture_output=True, timeout=60)
    assert [json.loads(line)["id"] for line in done.stdout.splitlines()] == [0, 1, 2]


def test_a_message_may_be_longer_than_any_buffer(raw: RawServer) -> None:
    raw.call(1, "echo", text="x" * 1_000_000)
    assert len(raw.await_line()["result"]["structuredContent"]["text"]) == 1_000_000


def test_a_client_that_is_gone_ends_the_server(raw: RawServer) -> None:
    raw._stdout.close()
    raw.call(1, "echo", text="nobody reads this")
    assert raw.process.stdin is not None
    raw.process.stdin.close()
    assert raw.process.wait(30) == 0
    assert raw.process.stderr is not None
    raw.process.stderr.close()


def test_without_any_input_the_server_ends(script: Path) -> None:
    done = subprocess.run([sys.executable, script], stdin=subprocess.DEVNULL, capture_output=True, timeout=60)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_cursor_that_was_never_given_out_is_refused(raw: RawServer) -> None:
    raw.request(7, "tools/list", {"cursor": "bogus"})
    answer = raw.await_line()
    assert (answer["id"], answer["error"]["code"]) == (7, -32602)
