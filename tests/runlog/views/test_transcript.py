from typing import Any

import sample_reports

from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.runlog.views.transcript import Call, Section, cut, sections


def titles(**changes: Any) -> list[str]:
    return [part.title for part in sections(sample_reports.result(**changes))]


def section(title: str, **changes: Any) -> Section:
    return next(part for part in sections(sample_reports.result(**changes)) if part.title == title)


def test_what_did_not_happen_is_said() -> None:
    response = {"email_sent": False, "ticket_created": False, "note_added": True}
    assert section("Reply", response=response).text == "No mail was sent."
    assert section("Ticket", response=response).text == "No ticket was created. A note was added to the conversation's."


def test_of_a_task_alone_its_answer_is_told_and_no_mail() -> None:
    response = {"email_sent": False, "ticket_created": False, "answer": {"id": 1}}
    assert titles(request="Look", response=response, trace={"task_result": '{"id": 1}'}) == [
        *("Task", "Answer of the agent")
    ]
    assert "Reply" in titles(request="Look", response={**response, "email_sent": True, "response_body": "Hello"})


def test_each_turn_is_told_and_odd_ones_are_left_out() -> None:
    mails = [{"says": "A", "answer": "B"}, 7, {"says": "C", "answer": "D", "output": {"response_body": "D"}}]
    shown = list(sections(sample_reports.result(request={"body": "A"}, response={"turns": mails})))
    assert [(each.title, each.text) for each in shown[1:3]] == [("Turn 2", "C"), ("Reply", "D")]
    tasks = [{"says": "A", "answer": {"b": 1}}, {"says": "C", "answer": None}]
    shown = list(sections(sample_reports.result(request="A", response={"turns": tasks})))
    said = [("Answer in turn 1", '{\n "b": 1\n}'), ("Turn 2", "C"), ("Answer in turn 2", "(no answer)")]
    assert [(each.title, each.text) for each in shown[1:4]] == said


def test_a_draft_is_no_reply() -> None:
    assert section("Draft", response={"response_body": "Hello", "draft_stored": True}).text == "Hello"


def test_messages_and_steps_read_as_they_were_said() -> None:
    call = {"id": "1", "type": "function", "function": {"name": "shell", "arguments": '{"command": "ls"}'}}
    conversation = [
        {"role": "user", "content": "Count\nthem."},
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "name": "shell", "content": "a b\x1b[2J"},
    ]
    steps = [{"action": {"action_type": "shell", "command": "ls"}, "feedback": {"done": False, "message": "a b"}}]
    trace = {"conversation": conversation, "execution_trace": steps}
    assert section("Conversation with the model (3)", trace=trace).text == (
        'user: Count\nthem.\n\nassistant:\n  → shell({"command": "ls"})\n\ntool (shell): a b\\x1b[2J'
    )
    assert section("Calls (1)", trace=trace, response="42").calls == (Call("shell", (("command", "ls"),), "a b"),)


def test_messages_and_steps_of_odd_forms_are_shown_as_they_are() -> None:
    odd = [
        None,
        "text",
        7,
        {},
        {"content": [1]},
        {"role": "a", "tool_calls": 3},
        {"tool_calls": [None, {"function": 1}]},
    ]
    steps = [None, "ls", {}, {"action": None, "feedback": None}, {"action": {}, "feedback": {}}]
    assert section("Conversation with the model (7)", trace={"conversation": odd}).text
    assert len(section("Calls (5)", trace={"execution_trace": steps}, response="42").calls) == 5


def test_of_many_messages_the_first_are_shown() -> None:
    trace = {"conversation": [{"role": "user", "content": str(number)} for number in range(300)]}
    text = section("Conversation with the model (300)", trace=trace).text or ""
    assert text.endswith("user: 99\n\n… and 200 more")


def test_a_task_and_an_answer_are_plain_text_beside_the_place_of_their_record() -> None:
    assert section("Task", request="Count them.", response="42").text == "Count them."
    assert section("Answer", request="Count them.", response="42").text == "42"
    record = {"record": {"file": "/results/records.jsonl", "number": 3}}
    assert section("Record", trace=record).text == "/results/records.jsonl, 3"
    odd = {"read": None, "conversation": 3}
    assert titles(request=["?"], response="text", trace=odd) == ["Task", "Answer"]


def test_a_case_without_a_transcript_has_no_sections() -> None:
    assert titles(request=None, response=None) == []


def test_what_a_program_prints_is_cut_at_its_beginning() -> None:
    assert cut("abcdef", 2, from_end=True) == ("ef", "4 characters more, left out here")


def test_many_calls_are_cut() -> None:
    calls = [{"server": "mail", "tool": "list", "arguments": {}}] * 1_000
    cut_off = section("Calls (1000)", response={"calls": calls})
    assert (len(cut_off.calls), cut_off.note) == (100, "900 more, left out here")


def test_an_endless_check_is_cut() -> None:
    check = Check("a", "z", "x" * 1_000_000, "y" * 1_000_000)
    (told,) = [each for each in sections(sample_reports.result(checks=(check,))) if each.role == "checks"]
    assert len(told.checks[0].expected or "") + len(told.checks[0].actual or "") < 5_000
