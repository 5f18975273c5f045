"""Exchanges on disk: what is kept, to which requests it is given back, and what is said where it is not."""

import asyncio
import copy
import resource
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from messages_server import MessagesServer, Reply, anthropic_config
from messages_server import answer as reply_with
from model_requests import choice, triage
from scripted_model import ScriptedModel
from shipped_instructions import shipped_interpreter
from small_disks import limited

from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.llm.anthropic_client import AnthropicModel
from guarantee_email_agent.llm.port import Message, TextBlock, TokenUsage, ToolUseBlock, tool_input
from guarantee_email_agent.llm.recording import Exchange, RecordingClient, Recordings, ReplayClient, recording_diff
from guarantee_email_agent.utils.errors import LLMError

SAID = Message("msg", "model-1", (TextBlock("So be it."),), "end_turn")
REMEDY = "Record it anew: eval --llm record"


class Book:
    """The recordings of one scenario, and the two requests that the agent makes of a mail."""

    def __init__(self, folder: Path, instructions: Instructions) -> None:
        self.folder = folder
        self._instructions = instructions
        self.triage = self.asked_about("My dryer leaks.")
        self.choice = choice(instructions, "My dryer leaks.")

    def asked_about(self, body: str) -> dict[str, Any]:
        return triage(self._instructions, body)

    def recordings(self) -> Recordings:
        return Recordings(self.folder, "leak_001", remedy=REMEDY)

    def record(self, *runs: list[dict[str, Any]], model: Any = None) -> None:
        recorded = []
        for run in runs:
            recorder = RecordingClient(model or shipped_interpreter())
            for request in run:
                asyncio.run(recorder.create(**request))
            recorded.append(recorder.exchanges)
        if (problem := self.recordings().write(recorded)) is not None:
            raise LLMError(problem, "not_recorded")

    def play(self, *requests: dict[str, Any], run: int = 1) -> list[Message]:
        client = ReplayClient(self.recordings(), run)
        return [asyncio.run(client.create(**request)) for request in requests]

    def miss(self, *requests: dict[str, Any], run: int = 1) -> LLMError:
        with pytest.raises(LLMError) as caught:
            self.play(*requests, run=run)
        return caught.value

    @property
    def files(self) -> list[str]:
        return sorted(path.name for path in self.folder.iterdir())

    def file(self, part: str) -> Path:
        (path,) = (path for path in self.folder.iterdir() if part in path.name)
        return path


@pytest.fixture
def book(tmp_path: Path, instructions: Instructions) -> Book:
    return Book(tmp_path / "recordings" / "leak_001", instructions)


def input_of(message: Message) -> Any:
    (block,) = message.content
    return block.input


def test_a_file_holds_request_and_answer_for_people_to_read(book: Book, instructions: Instructions) -> None:
    book.record([book.triage])

    text = book.file("triage").read_text(encoding="utf-8")
    (content,) = load_documents(text)

    assert (content["scenario"], content["run"], content["call"]) == ("leak_001", 1, 1)
    sent = {**book.triage, "tool_choice": {"type": "tool", "name": "record_triage"}}
    assert content["request"] == sent
    assert content["answer"]["content"][0]["input"] == {"topic": "warranty", "serial_numbers": []}
    for line in instructions.main_body.splitlines():
        assert f"      {line}\n" in text or not line


def test_tokens_texts_thinking_and_odd_inputs_come_back(book: Book) -> None:
    thinking = SimpleNamespace(type="thinking", model_dump=lambda **_: {"type": "thinking", "thinking": "Hm.\nWell."})
    said = [thinking, TextBlock("So:\n1."), ToolUseBlock("toolu_1", "other", {"a": None, "b": [1, 2.5, True]})]
    answer = SimpleNamespace(
        model="model-1",
        content=said,
        stop_reason="refusal",
        usage=TokenUsage(1, 2, 3, 4),
        stop_details=SimpleNamespace(model_dump=lambda **_: {"type": "refusal", "category": "cyber"}),
        service_tier="priority",
    )
    book.record([book.triage], model=ScriptedModel(answer))

    (message,) = book.play(book.triage)

    assert [block.type for block in message.content] == ["thinking", "text", "tool_use"]
    assert list(message.content[1:]) == said[1:]
    assert (message.model, message.stop_reason, message.usage) == ("model-1", "refusal", TokenUsage(1, 2, 3, 4))
    assert (vars(message.stop_details), message.service_tier) == ({"type": "refusal", "category": "cyber"}, "dearer")


ODD_REPLIES: dict[str, Reply] = {
    "a call without anything": reply_with({"type": "tool_use"}),
    "a call without an input": reply_with({"type": "tool_use", "id": "toolu_1", "name": "record_triage"}),
    "a call with text as input": reply_with(
        {"type": "tool_use", "id": "toolu_1", "name": "record_triage", "input": "{}"}
    ),
    "a block of a kind to come": reply_with({"type": "yet_unknown", "data": [1, {"a": None}]}),
    **{
        f"a refusal with {details}": reply_with(stop_reason="refusal", stop_details=details)
        for details in ({"type": "refusal", "category": "cyber"}, {"type": "refusal"}, "cyber", None)
    },
}


@pytest.mark.parametrize("name", ODD_REPLIES)
def test_a_replay_gives_what_the_api_gave_however_odd(book: Book, server: MessagesServer, name: str) -> None:
    server.replies = [ODD_REPLIES[name]]
    live, exchange = ask_api(server, book.triage)
    assert book.recordings().write([[exchange]]) is None
    (replayed,) = book.play(book.triage)

    parts = ("id", "name", "input", "text")
    for said, again in zip(live.content, replayed.content, strict=True):
        assert said.type == again.type
        assert [getattr(said, part, None) for part in parts] == [getattr(again, part, None) for part in parts]
    assert outcome_of(replayed) == outcome_of(live)
    assert ("(cyber)" in outcome_of(replayed)) is ("category" in name)


def outcome_of(answer: Any) -> str:
    """What the agent makes of an answer."""
    try:
        return str(tool_input(answer, "record_triage", lambda value: isinstance(value, dict)))
    except LLMError as error:
        return f"{error.code}: {error.message}"


def ask_api(server: MessagesServer, request: dict[str, Any]) -> tuple[Any, Exchange]:
    config = anthropic_config(server.url)

    async def ask() -> tuple[Any, Exchange]:
        async with aclosing(AnthropicModel.of(config)) as model:
            recorder = RecordingClient(model)
            answer = await recorder.create(**request)
            return answer, recorder.exchanges[0]

    return asyncio.run(ask())


def test_an_answer_that_is_nested_too_deeply_is_told_and_remembered(book: Book, server: MessagesServer) -> None:
    deep: Any = 1
    for _ in range(400):
        deep = {"a": deep}
    server.replies = [reply_with({"type": "tool_use", "id": "t", "name": "record_triage", "input": deep})]

    with pytest.raises(LLMError) as caught:
        ask_api(server, book.triage)
    assert caught.value.code == "llm_recording_impossible"


@pytest.mark.parametrize(
    "error", [LLMError("Overloaded", "llm_overloaded"), RuntimeError("a bug"), asyncio.CancelledError()], ids=repr
)
def test_a_call_without_an_answer_is_not_kept_but_remembered(book: Book, error: BaseException) -> None:
    recorder = RecordingClient(ScriptedModel(error))
    with pytest.raises(type(error)):
        asyncio.run(recorder.create(**book.triage))
    assert (recorder.exchanges, recorder.failed) == ([], True)


def test_recording_takes_the_place_of_what_was_recorded_and_of_nothing_else(book: Book) -> None:
    book.record([book.triage, book.choice], [book.triage])
    (other := book.folder / f"old-{book.file('choice').name}").write_text("mine")
    book.record([book.asked_about("It burns.")])

    assert len(book.files) == 2
    assert other.read_text() == "mine"
    assert book.miss(book.triage).code == "llm_recording_missing"


def test_what_no_file_can_hold_is_told_and_changes_nothing(book: Book) -> None:
    book.record([book.triage])
    half = Message("msg", "model-1", (ToolUseBlock("t", "record_triage", {"topic": "\ud800"}),), "tool_use")

    with pytest.raises(LLMError, match="holds what no recording can hold"):
        book.record([book.triage], model=ScriptedModel(half))

    assert input_of(book.play(book.triage)[0])["topic"] == "warranty"


def test_a_disk_that_fills_up_leaves_the_old_recording_as_a_whole(book: Book) -> None:
    book.record([book.triage, book.choice])
    before = {path.name: path.read_bytes() for path in book.folder.iterdir()}
    smaller, larger = (changed(book.triage, "system", [{"type": "text", "text": "x" * size}]) for size in (1, 50_000))

    with limited(resource.RLIMIT_FSIZE, 40_000), pytest.raises(LLMError, match="cannot be written"):
        book.record([book.triage, smaller, larger], model=ScriptedModel(*[SAID] * 3))

    assert {path.name: path.read_bytes() for path in book.folder.iterdir()} == before


def test_each_run_has_answers_of_its_own(book: Book) -> None:
    answers = [ToolUseBlock("t", "record_triage", {"topic": topic, "serial_numbers": []}) for topic in "abc"]
    model = ScriptedModel(*(Message("msg", "model-1", (block,), "tool_use") for block in answers))
    book.record([book.triage], [book.triage], [book.triage], model=model)
    assert [input_of(book.play(book.triage, run=run)[0])["topic"] for run in (3, 1, 2)] == ["c", "a", "b"]


def test_a_request_that_is_asked_twice_gets_its_answers_in_order(book: Book) -> None:
    answers = [ToolUseBlock("t", "record_triage", {"topic": topic}) for topic in "ab"]
    model = ScriptedModel(*(Message("msg", "model-1", (block,), "tool_use") for block in answers))
    book.record([book.triage, book.triage], model=model)
    assert [input_of(message)["topic"] for message in book.play(book.triage, book.triage)] == ["a", "b"]
    assert "is not recorded that often: it is asked 3 times, and was 2" in book.miss(*[book.triage] * 3).message


def changed(request: dict[str, Any], part: str, value: Any) -> dict[str, Any]:
    return {**copy.deepcopy(request), part: value}


@pytest.mark.parametrize(
    ("part", "value"),
    [
        ("model", "model-2"),
        ("max_tokens", 101),
        ("temperature", 0.1),
        ("temperature", 0),  # another number to a server, perhaps
        ("system", []),
        ("tools", [{"name": "record_triage"}]),
        ("tool_choice", {"type": "any"}),
        ("messages", [{"role": "user", "content": "Hello"}]),
    ],
)
def test_another_request_is_a_miss_whatever_differs(book: Book, part: str, value: Any) -> None:
    book.record([book.triage, book.choice])
    assert book.miss(changed(book.triage, part, value)).code == "llm_recording_missing"


def test_a_miss_names_scenario_request_part_and_remedy(book: Book) -> None:
    book.record([book.triage, book.choice])
    request = copy.deepcopy(book.choice)
    request["system"][1]["text"] += "\nBe brief."

    error = book.miss(book.triage, request)

    name = f"leak_001/{book.file('choice').name}"
    then = repr(book.choice["system"][1]["text"][-20:])[1:-1]
    assert error.message == (
        "The choice request of leak_001, run 1, is not recorded: the scenario's instruction (now "
        f"'… {then}\\nBe brief.', recorded '… {then}') differs from {name}. {REMEDY}"
    )


def test_a_miss_is_compared_with_the_nearest_recording(book: Book) -> None:
    far = changed(book.asked_about("It burns."), "model", "model-2")
    book.record([far, book.triage])
    error = book.miss(changed(book.triage, "max_tokens", 7))
    assert "llm.max_tokens (now 7, recorded 100) differs from leak_001/run01-02-triage-" in error.message


def test_a_run_or_a_kind_that_is_not_recorded_is_told(book: Book) -> None:
    assert "run 1, is not recorded, nor is any other of this kind. " in book.miss(book.triage).message
    book.record([book.triage])
    assert f"run 2, is not recorded, nor is any other of this kind. {REMEDY}" in book.miss(book.triage, run=2).message
    assert "The choice request of leak_001, run 1, is not recorded, nor " in book.miss(book.triage, book.choice).message


@pytest.mark.parametrize(
    ("name", "run"),
    [
        ("leak_001/run01-01-triage-000000000000.yaml", 1),
        ("leak_001/run01-01-choice-{short}.yaml", 1),
        ("leak_001/run01-02-triage-{short}.yaml", 1),
        ("leak_001/run02-01-triage-{short}.yaml", 2),
        ("leak_002/run01-01-triage-{short}.yaml", 1),
    ],
)
def test_a_recording_under_another_name_is_refused_and_named(book: Book, name: str, run: int) -> None:
    book.record([book.triage])
    file = book.file("triage")
    renamed = name.format(short=file.stem[-12:])
    book.folder = book.folder.with_name(renamed.partition("/")[0])
    book.folder.mkdir(exist_ok=True)
    file.rename(book.folder.parent / renamed)

    error = book.miss(book.triage, run=run)

    assert error.code == "llm_recording_invalid"
    assert error.message == (
        f"The recording {renamed} cannot be used: it was renamed or copied, and was recorded as "
        f"leak_001/{file.name}. Record anew"
    )


CUT_OFF, CHANGED = "it was cut off, or is no recording", "changed or cut off after it was recorded"
DAMAGES: dict[str, tuple[Callable[[str], str], str]] = {
    "empty": (lambda text: "", CUT_OFF),
    "cut early": (lambda text: text[: text.index("answer_sha256")], CUT_OFF),
    "without request": (lambda text: text[: text.index("request:")], CUT_OFF),
    "cut late": (lambda text: text[:-2], CHANGED),
    "answer": (lambda text: text.replace("topic: warranty", "topic: other", 1), CHANGED),
    "request": (lambda text: text.replace("You work in", "You rule", 1), CHANGED),
    "format": (lambda text: text.replace("format: 1", "format: 2"), "it has format 2, and this version reads 1"),
    "no YAML": (lambda text: text.replace("answer:", "answer: [", 1), "YAML does not parse"),
    "list": (lambda text: "- a list", CUT_OFF),
    "binary": (lambda text: "\x00\x01", "YAML does not parse"),
}


@pytest.mark.parametrize(("damage", "says"), DAMAGES.values(), ids=DAMAGES)
def test_a_damaged_recording_is_one_error_that_names_the_file(book: Book, damage: Any, says: str) -> None:
    book.record([book.triage])
    file = book.file("triage")
    file.write_text(damage(file.read_text(encoding="utf-8")), encoding="utf-8")

    error = book.miss(book.triage)

    assert error.code == "llm_recording_invalid"
    assert error.message.startswith(f"The recording leak_001/{file.name} cannot be used: ")
    assert says in error.message
    assert error.message.endswith("Record anew")


BODY = "It leaks."


@pytest.fixture
def request_(instructions: Instructions) -> dict[str, Any]:
    return choice(instructions, BODY)


@pytest.mark.parametrize(
    ("change", "named"),
    [
        ({}, []),
        ({"model": "model-2"}, ["llm.model (now 'model-2', recorded 'model-1')"]),
        ({"max_tokens": 200}, ["llm.max_tokens (now 200, recorded 100)"]),
        ({"temperature": None}, ["the temperature (now nothing, recorded 0.0)"]),
        ({"tool_choice": {"type": "auto"}}, ["tool_choice.type (now 'auto', recorded 'tool')"]),
        ({"system": [{"type": "text", "text": "x"}]}, ["the main instruction (now"]),
        ({"system": []}, ["system[0] (now nothing, recorded {'type': 'text', 'text': 'x')"]),
        ({"model": 1, "max_tokens": 2}, ["llm.model", "llm.max_tokens"]),
    ],
)
def test_what_differs_is_named_as_the_user_knows_it(
    request_: dict[str, Any], change: dict[str, Any], named: list[str]
) -> None:
    differences = recording_diff({**request_, **change}, request_)
    assert len(differences) == len(named)
    assert all(each.startswith(name[:24]) for each, name in zip(differences, named, strict=True))


@pytest.mark.parametrize(
    "recorded", [{}, {"system": "text", "messages": []}, {"system": [7], "messages": [7]}], ids=str
)
def test_a_recording_of_another_shape_is_compared_all_the_same(
    request_: dict[str, Any], recorded: dict[str, Any]
) -> None:
    assert recording_diff(request_, recorded)
