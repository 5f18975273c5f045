"""What a scenario file may say beyond its types: keys that contradict each other, and names that nothing bears.

A scenario that says such a thing would guard less than its author thinks, or nothing at all.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final

from guarantee_email_agent.eval.call_checks import ExpectedCall, ForbiddenCall, find_argument_problems
from guarantee_email_agent.eval.checks import ExpectedAnswer
from guarantee_email_agent.eval.declared_servers import find_unknown_arguments
from guarantee_email_agent.eval.models import NO_LIMITS, EvalExpectedOutput, EvalTestCase
from guarantee_email_agent.eval.tool_mocks import OWN_SERVICES, OWN_TOOLS
from guarantee_email_agent.files.problems import KeyPath, Problem, listed, suggestion
from guarantee_email_agent.instructions.hand_over_lexicon import REASONS_OF_CODE
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.look_up import OTHER_STATUS, LookUp
from guarantee_email_agent.instructions.router import SHIPPED_ROUTING, Routing, Situation
from guarantee_email_agent.services.look_up_answer import is_date
from guarantee_email_agent.utils.addresses import parse_address
from guarantee_email_agent.utils.text import truncate, word_key

_NO_INSTRUCTION: Final = "none"
_PROVED: Final = "proved"  # what the ledger has where an agent was stopped while it sent
_MOCKS: Final = ("input", "mock_responses")
_EXPECTED: Final = ("expected_output",)
_USED: Final = "scenario_instruction_used"


@dataclass(frozen=True, slots=True)
class KnownNames:
    """The names that scenario files may use, as the instruction set in use has them.

    sentences: the ids of those in the replies of each instruction. undecided: of each look-up the instructions for a
    status that the agent does not know.
    """

    instructions: tuple[str, ...]
    hand_over_reasons: tuple[str, ...]
    undecided: Mapping[LookUp, Sequence[str]]
    sentences: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    routing: Routing = SHIPPED_ROUTING

    @classmethod
    def of(cls, instructions: Instructions) -> KnownNames:
        undecided = {
            each: [instructions.route(Situation(False, topic, "one", OTHER_STATUS)).name for topic in each.topics]
            for each in instructions.look_ups
        }
        return cls(
            tuple(scenario.name for scenario in instructions.scenarios),
            (*(reason.name for reason in instructions.hand_over.reasons), *REASONS_OF_CODE),
            undecided,
            {scenario.name: scenario.sentence_ids for scenario in instructions.scenarios},
            Routing(instructions.situations(), instructions.look_ups),
        )


def find_name_problems(data: object, known: KnownNames) -> Iterator[Problem]:
    """Names in a file's data that no instruction file knows. What has not the right type is not judged here."""
    no_such_file, names = "no instruction file is called so", (*known.instructions, _NO_INSTRUCTION)
    met, turns = _section(data, "input"), _section(data, "turns")
    used = _text(_section(data, *_EXPECTED), _USED)
    further = enumerate(turns if isinstance(turns, list) else ())
    for place, turn in ((_EXPECTED, data), *((("turns", number, *_EXPECTED), turn) for number, turn in further)):
        expected = _section(turn, *_EXPECTED)
        yield from _unknown_name(expected, (*place, _USED), no_such_file, names)
        if place == _EXPECTED and used not in (None, _NO_INSTRUCTION):  # where it stops, the category may say of what
            yield from _unknown_name(data, ("category",), no_such_file, known.instructions)
        yield from _unknown_sentences(expected, place, known)
        reason = (*place, "hand_over_reason")
        yield from _unknown_name(expected, reason, "no instruction file has this reason", known.hand_over_reasons)
    previous = ("input", "previous_reply", "scenario")
    yield from _unknown_name(_section(met, "previous_reply"), previous, no_such_file, (*known.instructions, _PROVED))
    for look_up, others in known.undecided.items() if used else ():
        mocked = _section(met, *_MOCKS[1:], look_up.name) if used not in others else None
        tools = {"": mocked} if look_up.is_of_warranties else mocked if isinstance(mocked, dict) else {}
        for tool, answer in tools.items():
            status = _text(answer, look_up.status_key)
            told = look_up.told_statuses if status else ()
            if status and status not in told and word_key(status) not in map(word_key, told):
                path = (*_MOCKS, look_up.name, *filter(None, [tool]), look_up.status_key)
                wrong = f"must be {', '.join(told[:-1])} or {told[-1]}, not {_shown(status)}; any other word ends in"
                ends = f"{' or '.join(map(repr, others))}, not in {used!r}{suggestion(status, told)}"
                yield Problem(path, "value", f"{wrong} {ends}")


def _unknown_sentences(expected: object, place: KeyPath, known: KnownNames) -> Iterator[Problem]:
    used, named = _text(expected, _USED) or "", _section(expected, "reply_sentences")
    ids = known.sentences.get(used, ())
    for index, name in enumerate(named if isinstance(named, list) and used in (*known.instructions, "none") else ()):
        if isinstance(name, str) and name not in ids:
            known_ids = f"{suggestion(name, ids) or '.'} Known are: {', '.join(ids) or 'none'}"
            wrong = f"is {_shown(name)}, but no sentence in the replies of {used} has this id{known_ids}"
            yield Problem((*place, "reply_sentences", index), "value", wrong)


def find_contradictions(case: EvalTestCase) -> Iterator[Problem]:
    """Keys that say nothing beside the others."""
    expected, previous, agent = case.expected_output, case.input.previous_reply, case.input.agent
    is_raw = case.input.email.raw_file is not None  # which is read when the scenario runs
    headers = case.input.email.headers.items()
    answered = " ".join(value for name, value in headers if name.lower() in ("in-reply-to", "references")).split()
    if previous is not None and not is_raw and previous.message_id not in answered:
        wrong = "must stand in the mail's In-Reply-To or References header, or the mail does not answer that reply"
        yield Problem(("input", "previous_reply", "message_id"), "value", wrong)
    if agent is not None and agent.sender_check in ("neutral", "hold") and agent.authserv_id is None:
        wrong = "needs authserv_id beside it, or no sender is ever verified"
        yield Problem(("input", "agent", "sender_check"), "value", wrong)
    if case.turns and case.input.triage:
        wrong = "is what a model says of one mail, and turns have others; remove one of them"
        yield Problem(("input", "triage"), "value", wrong)
    yield from _find_keys_beside_raw_file(case)
    yield from _find_expected_problems(case, expected, _EXPECTED)
    if case.at_most is not NO_LIMITS and not case.at_most.limits():
        yield Problem(("at_most",), "value", "sets no limit; name calls, seconds, tokens or usd, or remove it")
    is_guarding = case.input.has_email or case.at_most.limits() or case.turns or case.test is not None
    if not is_guarding and replace(expected, processing_time_ms=1) == EvalExpectedOutput(processing_time_ms=1):
        yield Problem(
            ("expected_output",), "value", "expects nothing, so it guards nothing; add answer, calls or others"
        )
    answer = case.input.mock_responses.get("warranty_api")
    date = answer.get("expiration_date") if isinstance(answer, Mapping) else None
    if isinstance(date, str) and date and not is_date(date) and expected.scenario_instruction_used != _NO_INSTRUCTION:
        wrong = f"must be a date such as 2025-12-31, not {_shown(date)}; the agent stops at any other answer"
        yield Problem((*_MOCKS, "warranty_api", "expiration_date"), "value", wrong)
    for index, turn in enumerate(case.turns):
        yield from _find_answer_problems(turn.condition, ("turns", index, "if"))
        if case.input.task is None and not isinstance(turn.says, str):
            yield Problem(("turns", index, "says"), "value", "must be the text of a mail")
        if turn.expected_output.rubric:
            wrong = "asks of the first answer alone; ask there, under expected_output, or remove it"
            yield Problem(("turns", index, *_EXPECTED, "rubric"), "value", wrong)
        yield from _find_expected_problems(case, turn.expected_output, ("turns", index, *_EXPECTED))


def _find_expected_problems(case: EvalTestCase, expected: EvalExpectedOutput, place: KeyPath) -> Iterator[Problem]:
    """What is wrong with what is expected of a turn, the first or a later one."""
    yield from _find_contradicted_mode(case, expected, place)
    if expected.sent_to is not None:
        path = (*place, "sent_to")
        if parse_address(expected.sent_to) != expected.sent_to:
            yield Problem(path, "value", "must be a bare address, such as customer@example.com")
        elif expected.email_sent is False and not expected.draft_stored:
            yield Problem(path, "value", "says whom the reply goes to, but email_sent is false; remove one")
    if expected.reply_sentences and expected.email_sent is False and not expected.draft_stored:
        wrong = "says what the reply holds, but email_sent is false; remove one"
        yield Problem((*place, "reply_sentences"), "value", wrong)
    if expected.hand_over_reason is not None and expected.email_sent:
        wrong = "says why no reply goes out, but email_sent is true; remove one"
        yield Problem((*place, "hand_over_reason"), "value", wrong)
    yield from _find_answer_problems(expected.answer, (*place, "answer"))
    yield from _find_unknown_calls(case, expected, place)


def _find_contradicted_mode(case: EvalTestCase, expected: EvalExpectedOutput, place: KeyPath) -> Iterator[Problem]:
    """What the scenario's own mode rules out. In mode `drafts` nobody may forget to say whether there is one."""
    mode = case.input.agent and case.input.agent.mode
    path = (*place, "draft_stored")
    if expected.draft_stored and expected.email_sent:
        yield Problem(path, "value", "says that the reply waits for a person, but email_sent is true; remove one")
    if mode in (None, "answer"):
        return
    if mode == "drafts" and expected.draft_stored is None:
        wrong = "needs expected_output.draft_stored beside it, true or false"
        yield Problem(("input", "agent", "mode"), "value", wrong)
    if mode == "observe" and expected.draft_stored:
        yield Problem(path, "value", "is true, but in mode observe nothing is written; correct one")
    for name in ("email_sent", "ticket_created", "note_added"):
        if getattr(expected, name):
            wrong = f"is true, but in mode {mode} nothing of the kind is done; correct one"
            yield Problem((*place, name), "value", wrong)


def _find_keys_beside_raw_file(case: EvalTestCase) -> Iterator[Problem]:
    """Keys that a raw mail has in itself, so that nobody would read them here."""
    email = case.input.email
    if email.raw_file is None:
        return
    for name in ("to", "headers"):
        if getattr(email, name):
            yield Problem(("input", "email", name), "value", f"stands in {email.raw_file} itself; remove it here")


def _find_answer_problems(expected: ExpectedAnswer | None, path: KeyPath) -> Iterator[Problem]:
    if expected == ExpectedAnswer():
        wrong = "expects nothing; name contains, excludes, equals, json or matches, or remove it"
        yield Problem(path, "value", wrong)
    elif expected is not None:
        yield from find_argument_problems({"equals": expected.equals}, path)
        yield from find_argument_problems(expected.json, (*path, "json"))


def _find_unknown_calls(case: EvalTestCase, expected: EvalExpectedOutput, place: KeyPath) -> Iterator[Problem]:
    """Calls of tools that this scenario does not have: nobody could make them, so they would guard nothing."""
    if expected.ordered and len(expected.calls) < 2:
        yield Problem((*place, "ordered"), "value", "needs two calls or more; add them, or remove it")
    if not (expected.calls or expected.never_called):
        return
    mocks = case.input.mock_responses
    known = {**OWN_TOOLS, **{name: dict.fromkeys(mocks[name]) for name in mocks if name not in OWN_SERVICES}}
    for name, server in case.servers.items():
        known[name] = {tool.name: tool.arguments for tool in server.tools}
    for key in ("calls", "never_called"):
        for index, call in enumerate(getattr(expected, key)):
            path = (*place, key, index)
            yield from _find_unknown_call(call, known, path)
            if call.server in case.servers and (tool := case.servers[call.server].by_name.get(call.tool or "")):
                yield from tool.find_value_problems(call.arguments, (*path, "arguments"))


def _find_unknown_call(
    call: ExpectedCall | ForbiddenCall, known: Mapping[str, Mapping[str, Sequence[str] | None]], path: KeyPath
) -> Iterator[Problem]:
    yield from find_argument_problems(call.arguments, (*path, "arguments"))
    if call.server not in known:
        wrong = f"{call.server!r} is no server of this scenario{listed(call.server, known)}"
        yield Problem((*path, "server"), "value", wrong)
        return
    tools = known[call.server]
    if call.tool is not None and call.tool not in tools:
        wrong = f"{call.tool!r} is no tool of {call.server}{listed(call.tool, tools)}"
        yield Problem((*path, "tool"), "value", wrong)
        return
    taken = [names for tool, names in tools.items() if call.tool in (None, tool)]
    names = None if None in taken else tuple({name: None for each in taken for name in each or ()})
    yield from find_unknown_arguments(call.arguments, names, f"{call.server}.{call.tool or '*'}", (*path, "arguments"))


def find_file_problems(data: object, path: str) -> Iterator[tuple[str, str]]:
    """What is wrong with the file as such, its name and what must stand beside it: (problem, error code)."""
    if (test := _text(data, "test")) and not os.path.isfile(os.path.join(os.path.dirname(path), test)):
        yield f"Test not found: {test} is not beside this file", "eval_test_not_found"
    mail = _text(_section(data, "input", "email"), "raw_file")
    if mail and not os.path.isfile(os.path.join(os.path.dirname(path), mail)):
        yield f"Mail not found: {mail} is not beside this file", "eval_mail_not_found"
    category, scenario_id = _text(data, "category"), _text(data, "scenario_id")
    if category is None or scenario_id is None:
        return
    stem, _, ending = os.path.basename(path).rpartition(".")
    prefix, _, number = stem.rpartition("_")
    if not (prefix == category.replace("-", "_") and number.isascii() and number.isdigit() and ending == "yaml"):
        wanted = f"{category.replace('-', '_')}_<number>.yaml"
        problem = f"File name: category {category!r} wants {wanted}; rename the file, or correct the category"
        yield problem, "eval_file_name"
    elif scenario_id != stem:
        # By the id reports refer to the scenario, and --only finds its file.
        namesake = f"{scenario_id}.yaml"
        if os.path.lexists(os.path.join(os.path.dirname(path), namesake)):
            problem = f"Duplicate scenario_id: {scenario_id} is already that of {namesake}"
            yield f"{problem}; write scenario_id: {stem}", "eval_duplicate_id"
        else:
            problem = f"scenario_id {_shown(scenario_id)} is not the file's name"
            yield f"Wrong id: {problem}; write scenario_id: {stem}, or rename the file", "eval_wrong_id"


def _unknown_name(section: object, path: KeyPath, problem: str, known: tuple[str, ...]) -> Iterator[Problem]:
    name = _text(section, str(path[-1]))
    if name is not None and name not in known:
        meant = suggestion(name, known) or f"; known are {', '.join(known)}"
        yield Problem(path, "value", f"is {_shown(name)}, but {problem}{meant}")


def _section(data: object, *keys: str) -> object:
    for key in keys:
        data = data.get(key) if isinstance(data, dict) else None
    return data


def _text(section: object, key: str) -> str | None:
    value = section.get(key) if isinstance(section, dict) else None
    return value if isinstance(value, str) and value.strip() else None


def _shown(text: str) -> str:
    return repr(truncate(text, 40))
