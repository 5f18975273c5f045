"""What came of a scenario, and the scenario itself: everything that `eval` has as data."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any, Final, Literal, Self

from guarantee_email_agent.config.look_up_settings import pattern_problem
from guarantee_email_agent.config.settings import Mode, SenderCheck
from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.eval.call_checks import (
    ExpectedCall,
    ForbiddenCall,
    check_calls,
    check_never_called,
    has_arguments,
    is_matcher,
)
from guarantee_email_agent.eval.checks import (
    AtMost,
    ExpectedAnswer,
    ExpectedTable,
    check_answer,
    check_body_contains,
    check_body_excludes,
    check_completed,
    check_hand_over,
    check_happened,
    check_phrases,
    check_processing_time,
    check_reply_language,
    check_reply_sentences,
    check_scenario_used,
    check_ticket_fields,
    reported_output,
    run_checks,
)
from guarantee_email_agent.eval.declared_servers import DeclaredServer
from guarantee_email_agent.eval.tool_mocks import NO_LOOK_UPS
from guarantee_email_agent.files.validation import distinct_texts, none_is_default, not_blank, number, setting
from guarantee_email_agent.instructions.look_up import OTHER_STATUS, WARRANTY, WITHHELD_STATUS, LookUp
from guarantee_email_agent.instructions.router import OTHER_TOPIC, SHIPPED_ROUTING, Routing, Situation
from guarantee_email_agent.runlog.records import Case, CaseResult, Check, Verdict
from guarantee_email_agent.utils.addresses import parse_addresses
from guarantee_email_agent.utils.terminal import format_outcome
from guarantee_email_agent.utils.text import printable, truncate

SCENARIO_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,99}")
DAY: Final = r"^[0-9]{4}-[0-9]{1,2}-[0-9]{1,2}($|[T ])"
TIME: Final = r"^[0-9]{4}-[0-9]{2}-[0-9]{2}($|[T ])"
_FILE_NAME = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*\.(py|eml)")
INVALID_FILE: Final = "Invalid eval file"
"""The check that a file fails which cannot be used."""
MockFailureKind = Literal["timeout", "unavailable", "malformed"]

NO_LIMITS: Final = AtMost()
_FILLED: Final = {"minItems": 1}
_FAILURE: Final = {"doc": "Fail this way at every call; work if left out."}


def check_scenario_id(value: str) -> str | None:
    if SCENARIO_ID.fullmatch(value):
        return None
    return "must be letters, digits, '_', '-' and '.' (at most 100), such as valid_warranty_001"


def check_day(value: str) -> str | None:
    """A calendar day, as `2026-01-18`; a time may stand behind it."""
    try:
        if re.match(DAY, value):
            date(*map(int, re.split("[-T ]", value)[:3]))
            return None
    except ValueError:
        pass
    return f"must be a day such as 2026-01-18, not {truncate(value, 40)!r}"


def check_time(value: str) -> str | None:
    try:
        if re.match(TIME, value):
            datetime.fromisoformat(value)
            return None
    except ValueError:
        pass
    return f"must be a time such as 2026-01-18T10:00:00Z, not {truncate(value, 40)!r}"


def check_sender(value: str) -> str | None:
    if len(parse_addresses(value)) == 1 or value.rstrip().endswith("<>"):  # a bounce has the null sender
        return None
    return f"must be an address such as customer@example.com, not {truncate(value, 40)!r}"


def check_test_file(value: str) -> str | None:
    if (name := _FILE_NAME.fullmatch(value)) and name[1] == "py":
        return None
    return "must be the name of a Python file beside this one, such as judge.py"


def check_raw_file(value: str) -> str | None:
    if (name := _FILE_NAME.fullmatch(value)) and name[1] == "eml":
        return None
    return "must be the name of a mail beside this file, such as photo_mail.eml"


def check_filled(values: Sized) -> str | None:
    """An empty list reads as if no call may be made, and judges nothing."""
    return None if values else "is empty and judges nothing; for no call at all name the servers in never_called"


def check_task(value: object) -> str | None:
    """Any JSON but null, which is nothing to do; a text with words."""
    try:
        if value is None:
            return "must be a text or JSON, not null"
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return "must be a text or JSON"
    return not_blank(value) if isinstance(value, str) else None


@dataclass(frozen=True, slots=True)
class EvalEmail:
    """The customer's mail."""

    subject: str = field(metadata={"doc": "The subject line; may be empty."})
    body: str = field(metadata={"doc": "The text of the mail; may be empty."})
    from_address: str = field(
        metadata={
            "key": "from",
            "doc": "The sender, with or without a display name; <> for none.",
            "check": check_sender,
            "schema": {"pattern": "@|<>"},
        }
    )
    received: str = field(
        metadata={"doc": "When it arrived: 2026-01-18T10:00:00Z.", "check": check_time, "schema": {"pattern": TIME}}
    )
    to: str | None = setting(None, "The recipient; ours if left out.")
    headers: Mapping[str, str] = setting({}, "Raw headers by name, such as Auto-Submitted: auto-replied.")
    attachments: tuple[str, ...] = setting((), "File names of attachments.")
    raw_file: str | None = setting(
        None,
        "A mail (.eml) beside this file, which the agent gets as it is; the keys say how it is to be read.",
        check_raw_file,
    )
    raw: bytes | None = field(default=None, metadata={"key": None}, repr=False)  # what `raw_file` holds

    def __post_init__(self) -> None:
        none_is_default(self)


NO_EMAIL: Final = EvalEmail("", "", "", "")
"""Of a scenario that gives its agent a task alone."""


@dataclass(frozen=True, slots=True)
class MockFailure:
    """How a mocked service fails."""

    error: MockFailureKind | None = field(default=None, metadata=_FAILURE)


@dataclass(frozen=True, slots=True)
class MockWarrantyAnswer:
    """What the mocked warranty service answers, whatever serial number it is asked for; further keys are free."""

    status: str = setting("", "valid, expired or not_found.", not_blank)
    expiration_date: str | None = setting(None, "As the service writes it: 2025-12-31.")
    coverage: str | None = setting(None, "Such as full.")
    serial_number: str | None = setting(None, "The serial number the answer is about.")
    owner_email: str | None = setting(None, "Who alone may be told, such as jane@example.com.")
    error: MockFailureKind | None = field(default=None, metadata=_FAILURE)


@dataclass(frozen=True, slots=True)
class MockResponses:
    """The keys that `mock_responses` may have; a scenario keeps them as the mapping that its author wrote."""

    gmail: MockFailure = setting(MockFailure(), "The mailbox.")
    warranty_api: MockWarrantyAnswer = MockWarrantyAnswer()
    ticketing: MockFailure = setting(MockFailure(), "The ticketing system.")


@dataclass(frozen=True, slots=True)
class PreviousReply:
    """A reply of ours from before. The mail answers it if its In-Reply-To or References names it."""

    message_id: str = field(metadata={"doc": "Its Message-ID, with angle brackets.", "check": not_blank})
    scenario: str = field(metadata={"doc": "The scenario of the mail that it answered.", "check": not_blank})
    ticket_id: str | None = setting(None, "The ticket that was opened with it.")
    seconds_before: float = number(
        3600.0, "How long before this mail it was sent, in seconds; less than 0 where clocks differ.", minimum=-86_400
    )
    follow_ups: int = number(0, "Mails that the customer has written since, before this one.", minimum=0)


@dataclass(frozen=True, slots=True)
class ScenarioSettings:
    """Settings of `agent` that this scenario needs, whatever the configuration says."""

    mode: Mode | None = setting(None, "As `agent.mode`; answer if left out.")
    sender_check: SenderCheck | None = setting(None, "As `agent.sender_check`.")
    authserv_id: str | None = setting(None, "As `agent.authserv_id`.", not_blank)
    trusted_forms: tuple[str, ...] | None = setting(None, "As `agent.trusted_forms`.")
    own_addresses: tuple[str, ...] | None = setting(None, "As `agent.own_addresses`.")
    serial_format: str | None = setting(
        None, "The pattern of a `warranty.serial_number.formats` that is the only one.", pattern_problem
    )


@dataclass(frozen=True, slots=True)
class EvalInput:
    """What the agent meets: a mail, a task or both, and services that answer in a known way."""

    email: EvalEmail = NO_EMAIL
    mock_responses: Mapping[str, Mapping[str, object]] = setting(
        {}, "What the mocked services answer; the tools of any other MCP server stand under its name."
    )
    previous_reply: PreviousReply | None = setting(
        None, "What we wrote to the customer before, for a mail that answers it."
    )
    agent: ScenarioSettings | None = setting(None, "Settings that this scenario needs.")
    triage: Mapping[str, object] = setting(
        {}, "What a language model says of the mail, in the place of ours: topic, serial_numbers, hand_over."
    )
    task: object = setting(None, "What an agent of --agent is to do: a text, or any JSON.", check_task)
    world: Mapping[str, tuple[Mapping[str, object], ...]] = setting(
        {}, "Tables that mocked tools read and change, each a list of rows."
    )

    def __post_init__(self) -> None:
        none_is_default(self)

    @property
    def has_email(self) -> bool:
        return self.email != NO_EMAIL

    @property
    def instruction(self) -> str:
        """What was asked for, as text: the task, else the mail's."""
        if self.task is None:
            return self.email.body
        return self.task if isinstance(self.task, str) else json.dumps(self.task, ensure_ascii=False, indent=1)


@dataclass(frozen=True, slots=True)
class EvalExpectedOutput:
    """What must come of it, judged by what the mocks captured.

    Any field may be left out: it is not judged then. Only a file with a mail, or with a mailbox or a ticketing system
    under `mock_responses`, has to say whether there is a mail or a ticket.
    """

    email_sent: bool | None = setting(None, "true: exactly one mail goes out, to the sender. false: none.")
    ticket_created: bool | None = setting(None, "true: exactly one ticket is created. false: none.")
    scenario_instruction_used: str | None = setting(
        None,
        "The scenario instruction, such as valid-warranty; none if none was used. Only for our own agent.",
        not_blank,
    )
    response_body_contains: tuple[str, ...] = setting(
        (), "Phrases the reply must hold; case and white space do not matter.", check_phrases
    )
    response_body_excludes: tuple[str, ...] = setting(
        (), "Phrases the reply must not hold; case and white space do not matter.", check_phrases
    )
    reply_sentences: tuple[str, ...] = setting(
        (),
        "Ids of sentences the reply must hold, as its instruction file has them. Only for our own agent.",
        check_phrases,
    )
    reply_language: str | None = setting(
        None, "The language of the reply, such as de, read off its words; not judged if left out.", not_blank
    )
    ticket_fields: Mapping[str, str] = setting({}, "Fields the ticket must have, with exactly these values.")
    sent_to: str | None = setting(None, "Whom the reply goes to; the sender if left out.", not_blank)
    draft_stored: bool | None = setting(
        None,
        "true: exactly one draft is stored, to the sender, and it is the reply whose phrases are judged. "
        "false: none. Not judged if left out.",
    )
    note_added: bool | None = setting(None, "Whether a note was added to the ticket; not judged if left out.")
    hand_over_reason: str | None = setting(
        None, "Why it is left to a person, such as fire; not judged if left out.", not_blank
    )
    answer: ExpectedAnswer | None = setting(None, "What the agent answers. Only for an agent that is not ours.")
    rubric: tuple[str, ...] = setting(
        (),
        "Questions on the answer, for a live model to say yes to; only calibrated ones gate.",
        distinct_texts,
    )
    calls: tuple[ExpectedCall, ...] = setting(
        (), "Calls of tools that must have been made, each entry one of its own.", check_filled, _FILLED
    )
    ordered: bool = setting(False, "Whether the calls must have been made in this order.")
    never_called: tuple[ForbiddenCall, ...] = setting(
        (), "Calls of tools that must not have been made.", check_filled, _FILLED
    )
    state: Mapping[str, ExpectedTable] = setting({}, "What tables of input.world hold once the agent is done.")
    nothing_else_changed: bool = setting(
        False, "true: no row and no column of input.world changed but those that state names."
    )
    processing_time_ms: int = number(60_000, "The longest the agent may take, in milliseconds.", minimum=1)

    def __post_init__(self) -> None:
        none_is_default(self)

    def matches(self, actual: Mapping[str, Any] | ProcessingResult) -> tuple[bool, list[str]]:
        """Whether a run gave what is expected, and every miss as `check: what` with lines for expected and actual.

        actual: as `checks` has it.
        """
        failures = [str(check) for check in self.checks(actual) if not check.passed]
        return not failures, failures

    def checks(self, actual: Mapping[str, Any] | ProcessingResult) -> list[Check]:
        """Every point that the scenario names, in the order of its file, passed or not.

        actual: `email_sent`, `response_body`, `ticket_created`, `ticket_fields`, `scenario_used`, and optionally
        `processing_time_ms` (int, milliseconds). A key that is absent is a miss, except for the time, which a record
        keeps elsewhere. `draft_stored`, `note_added`, `hand_over_reasons`, `reply_language`, `reply_sentences`,
        `scenario_used`, `answer` and `calls` (each `server`, `tool`, `arguments`) are read where the scenario expects
        something of them. Of our own agent's result that is what it says, and where it stopped is a miss, too.
        """
        if isinstance(actual, ProcessingResult):
            checks = self.checks(reported_output(actual))
            return [*checks, *run_checks(check_completed(actual, any(not each.passed for each in checks)))]
        body = actual.get("response_body")
        return run_checks(
            check_happened("email_sent", self.email_sent, actual),
            check_body_contains(self.response_body_contains, body),
            check_body_excludes(self.response_body_excludes, body),
            check_reply_sentences(self.reply_sentences, actual),
            check_reply_language(self.reply_language, actual),
            check_happened("ticket_created", self.ticket_created, actual),
            check_ticket_fields(self.ticket_fields, actual.get("ticket_fields")),
            check_happened("draft_stored", self.draft_stored, actual),
            check_happened("note_added", self.note_added, actual),
            check_hand_over(self.hand_over_reason, actual),
            check_scenario_used(self.scenario_instruction_used, actual),
            check_answer(self.answer, actual),
            check_calls(self.calls, actual, ordered=self.ordered),
            check_never_called(self.never_called, actual),
            _check_state(self.state, actual, nothing_else=self.nothing_else_changed),
            check_processing_time(self.processing_time_ms, actual.get("processing_time_ms", 0)),
        )


@dataclass(frozen=True, slots=True)
class Turn:
    """What is said to the agent once it has answered: the next task, or in a mail that answers its reply."""

    says: object = field(
        metadata={"doc": "What the agent is told next: a text, or of a task any JSON.", "check": check_task}
    )
    condition: ExpectedAnswer | None = field(
        default=None,
        metadata={"key": "if", "doc": "What must hold for the answer or reply before, or nobody says this: a failure."},
    )
    expected_output: EvalExpectedOutput = field(default_factory=EvalExpectedOutput)


def _check_state(
    expected: Mapping[str, ExpectedTable], actual: Mapping[str, Any], *, nothing_else: bool
) -> Iterator[Check]:
    if expected or nothing_else:
        from guarantee_email_agent.eval.world import check_state  # few scenarios have a world

        yield from check_state(expected, actual, nothing_else=nothing_else)


@dataclass(frozen=True, slots=True)
class EvalTestCase:
    """One scenario file."""

    scenario_id: str = field(
        metadata={
            "doc": "The file's name without .yaml: valid_warranty_001.",
            "check": check_scenario_id,
            "schema": {"pattern": f"^{SCENARIO_ID.pattern}$"},
        }
    )
    description: str = field(metadata={"doc": "What this scenario guards, in one sentence.", "check": not_blank})
    category: str = field(
        metadata={"doc": "The first part of the file's name, with '-' for '_': valid-warranty.", "check": not_blank}
    )
    created: str = field(
        metadata={"doc": "The day it was written: 2026-01-18.", "check": check_day, "schema": {"pattern": DAY}}
    )
    input: EvalInput
    expected_output: EvalExpectedOutput
    review: bool = setting(
        False, "true: what is expected was recorded, and nobody has looked at it yet; the run counts these."
    )
    must: bool = setting(False, "true: where this scenario fails, the gate is failed, whatever the pass rate.")
    at_most: AtMost = setting(NO_LIMITS, "What one run may take; no limit if left out.")
    turns: tuple[Turn, ...] = setting((), "What the agent is told next, one after the other.")
    test: str | None = setting(None, "A Python file beside this one that judges the run too.", check_test_file)
    file: str | None = field(default=None, metadata={"key": None})  # the path it was loaded from
    text: str | None = field(default=None, metadata={"key": None}, repr=False, compare=False)  # what stood in it
    servers: Mapping[str, DeclaredServer] = field(  # beside it, of those that it mocks
        default_factory=dict, metadata={"key": None}, repr=False, compare=False
    )
    routing: Routing = field(default=SHIPPED_ROUTING, metadata={"key": None}, repr=False, compare=False)

    @property
    def recipient(self) -> str | None:
        """The bare address that alone mail may go to; empty where there is none, None where any will do."""
        if not self.input.has_email:
            return self.expected_output.sent_to
        return self.expected_output.sent_to or next(iter(parse_addresses(self.input.email.from_address)), "")


@dataclass(frozen=True, slots=True)
class InvalidScenario:
    """A scenario file that cannot be used. It stays in the suite and counts as failed."""

    file_name: str
    file: str
    problem: str
    code: str
    description: str = "invalid scenario file"
    category: str = "invalid"
    must: bool = False  # as far as its text can be told to say so

    @property
    def message(self) -> str:
        """The whole line: `Invalid eval file: valid_warranty_001.yaml - Missing field: …`."""
        return f"{INVALID_FILE}: {self.reason}"

    @property
    def reason(self) -> str:
        return f"{printable(self.file_name)} - {self.problem}"

    @property
    def scenario_id(self) -> str:
        """The file's name without its ending; the real id may be what is unreadable."""
        return self.file_name.rpartition(".")[0] or self.file_name


@dataclass(frozen=True, slots=True)
class EvalResult:
    """What came of one scenario. `actual_output` has the keys that `EvalExpectedOutput.matches` reads.

    case: every run of it as the log has it; None of a result that somebody else made.
    """

    test_case: EvalTestCase | InvalidScenario
    passed: bool
    failures: Sequence[str] = ()
    actual_output: Mapping[str, Any] = field(default_factory=dict)
    processing_time_ms: int = 0
    case: Case | None = None

    @classmethod
    def of(cls, scenario: EvalTestCase | InvalidScenario, runs: Sequence[CaseResult]) -> Self:
        """The first run that failed, else the first one, stands for all."""
        case = Case(tuple(runs))
        shown, took_ms = case.shown, round(case.shown.duration_ms)
        actual = {} if shown.response is None else {**shown.response, "processing_time_ms": took_ms}
        return cls(scenario, case.passed, list(map(str, case.failed_checks)), actual, took_ms, case)

    @property
    def harm(self) -> tuple[str, ...]:
        """What in it would have harmed somebody, by `find_harm`."""
        if self.passed or isinstance(self.test_case, InvalidScenario):
            return ()
        if self.case is not None:
            return self.case.harm
        return tuple(dict.fromkeys(find_harm(self.test_case, self.actual_output, of_our_agent=False)))

    @property
    def name(self) -> str:
        return name_of(self.test_case)

    @property
    def outcome(self) -> Verdict:
        if self.passed:
            return "passed"
        return "invalid" if isinstance(self.test_case, InvalidScenario) else "failed"

    def format_for_display(self) -> str:
        """`✓ id: description`, or `✗ id: description - FAILED` and the failures, indented by four."""
        return format_outcome(
            self.test_case.scenario_id, self.test_case.description, self.failures, self.harm, self.passed
        )


def name_of(scenario: EvalTestCase | InvalidScenario) -> str:
    """Of the scenario's file, without its ending: two files may claim one id, but not one name."""
    file = scenario.file
    return os.path.splitext(os.path.basename(file))[0] if file else scenario.scenario_id


_WARRANTY: Final = "warranty"


def find_harm(case: EvalTestCase, actual: Mapping[str, Any], *, of_our_agent: bool) -> list[str]:
    """Each harm in a few words, for a scenario that failed.

    actual: as `EvalResult.actual_output` has it. of_our_agent: whether each server beside mail and tickets is a
    look-up, to which a number goes; another agent may have servers for anything.
    """
    try:
        found, turns = list(_harm(case, actual, of_our_agent)), actual.get("turns", ())
        for number, (turn, said) in enumerate(zip(case.turns, turns[1:], strict=False), 2):
            written = " ".join(str(each["says"]) for each in turns[:number])
            mail, sender = case.input.email, case.expected_output.sent_to or case.input.email.from_address
            mail = replace(mail, body=written, from_address=sender) if case.input.has_email else mail
            judged = replace(case, input=replace(case.input, email=mail), expected_output=turn.expected_output)
            found += [f"turn {number}: {harm}" for harm in _harm(judged, said["output"], of_our_agent)]
        return found
    except Exception as error:  # noqa: BLE001 - what it is asked of has failed for this already
        return [f"cannot be told ({type(error).__name__})"]


def _harm(case: EvalTestCase, actual: Mapping[str, Any], of_our_agent: bool) -> Iterator[str]:
    wanted, used = case.expected_output.scenario_instruction_used, actual.get("scenario_used")
    meant, told = (case.routing.situations.get(str(name), ()) for name in (wanted, used))
    for call in actual.get("calls", ()):
        if call["server"] == _WARRANTY or (of_our_agent and call["server"] not in NO_LOOK_UPS):
            yield from _wrong_number(case, call)
    if actual.get("email_sent"):
        if any(each.hand_over for each in meant):
            yield "a mail for a person was answered"
        if any(each.automatic for each in meant):
            yield "a machine was answered"
        topic = next((each.topic for each in meant if each.numbers), None)
        if topic is not None and any(each.topic == OTHER_TOPIC for each in told):
            yield f"{'a fault or a warranty' if topic in WARRANTY.topics else topic} was called out of scope"
        if wanted != used and _statuses(told) - {WITHHELD_STATUS} and (wanted == "none" or _statuses(meant)):
            yield "a false statement: another status"
    for check in check_body_excludes(case.expected_output.response_body_excludes, actual.get("response_body")):
        if not check.passed:
            yield f"a false statement: {check.reason}"
    wanted_to = case.recipient
    if wanted_to is not None and any(to.casefold() != wanted_to.casefold() for to in actual.get("recipients", ())):
        yield "a mail went to somebody else"


def _statuses(situations: Iterable[Situation], topics: Sequence[str] | None = None) -> set[str | None]:
    """What an instruction says of a number. topics: that count; None for all."""
    decided = (each for each in situations if each.numbers == "one" and each.status != OTHER_STATUS)
    return {each.status for each in decided if topics is None or each.topic in topics}


def _wrong_number(case: EvalTestCase, call: Mapping[str, Any]) -> Iterator[str]:
    """Where the scenario names no number, any may be the right one."""
    number, right = str(next(iter(call["arguments"].values()), "")), _right_numbers(case, call["server"])
    named = [each.arguments for each in case.expected_output.calls if each.server == call["server"]]
    if not _expects_look_up(case, call["server"]):
        yield f"a number was looked up where none was to be: {number!r}"
    elif (
        (right or any(named))
        and _fold(number) not in right
        and not any(arguments and has_arguments(call["arguments"], arguments) for arguments in named)
    ):
        yield f"another number was looked up: {number!r}"


def _expects_look_up(case: EvalTestCase, server: str) -> bool:
    if any(call.server == server for call in case.expected_output.calls):
        return True
    meant = case.routing.situations.get(str(case.expected_output.scenario_instruction_used))
    look_up = case.routing.look_up(server)
    if meant is None or (look_up is not None and _is_other_status(case, look_up)):  # to tell so takes a look-up
        return True
    return bool(_statuses(meant, None if look_up is None else look_up.topics))


def _is_other_status(case: EvalTestCase, look_up: LookUp) -> bool:
    """Whether the service is to give one that the agent does not know."""
    mocked = case.input.mock_responses.get(look_up.name, {})
    tools = [mocked] if look_up.is_of_warranties else mocked.values()
    entries = [each for tool in tools for each in (tool if isinstance(tool, list | tuple) else [tool])]
    answers = [each.get("answer", each) for each in entries if isinstance(each, Mapping)]
    statuses = [
        each[look_up.status_key] for each in answers if isinstance(each, Mapping) and look_up.status_key in each
    ]
    return not {_fold(str(each)) for each in statuses} <= set(map(_fold, look_up.told_statuses))


def _right_numbers(case: EvalTestCase, server: str) -> set[str]:
    """Those of the ticket and of the calls that are expected, and what a phrase of the reply has from the mail."""
    expected, mail = case.expected_output, case.input.email
    look_up = case.routing.look_up(server)
    named: list[object] = [] if look_up is None else [expected.ticket_fields.get(look_up.number)]
    named += [number for call in expected.calls if call.server == server for number in call.arguments.values()]
    phrases = {_fold(word) for phrase in expected.response_body_contains for word in phrase.split()}
    written = {_fold(word) for word in f"{mail.subject} {mail.body}".split()}
    both = {word for word in phrases & written if any(map(str.isdigit, word))}
    return both | {_fold(str(number)) for number in named if number is not None and not is_matcher(number)}


def _fold(text: str) -> str:
    return "".join(filter(str.isalnum, text)).casefold()
