"""The whole of `capture`: read a mail, replace what is personal in it, record what happens, write a scenario file."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import repeat
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor_models import AnswerPolicy
from guarantee_email_agent.eval.answer_command import DryServices, run_dry
from guarantee_email_agent.eval.capture.anonymizer import Anonymizer, what_was_replaced
from guarantee_email_agent.eval.capture.scenario_file import (
    anonymizer_for,
    anonymous_mail,
    expected_output,
    file_text,
    next_id,
)
from guarantee_email_agent.eval.dry_run import DryRun, dry_run, reply_of_thread, with_previous_reply
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.look_up_source import LookUpSource, answer_keys, mock_response
from guarantee_email_agent.eval.mocks import build_raw_email
from guarantee_email_agent.eval.models import PreviousReply
from guarantee_email_agent.eval.past_mails import opened_inbox, read_mail
from guarantee_email_agent.eval.runner import run_without_event_loop
from guarantee_email_agent.files.problems import listed
from guarantee_email_agent.files.text_file import write_new_file
from guarantee_email_agent.instructions.look_up import LookUp
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.services.ports import Thread
from guarantee_email_agent.utils.errors import EXIT_FAILURE, EXIT_SUCCESS, ConfigurationError, ProcessingError
from guarantee_email_agent.utils.terminal import Terminal, TextStream, pluralize
from guarantee_email_agent.utils.text import end_sentence, printable

NOT_FOUND: Final = (
    "Not found by any program: names in running text, companies, places without a postal code, and what a story tells "
    "of somebody. Read the file before it leaves your hands."
)
MESSAGE_ID: Final = re.compile(r"<[^<>\s\"]{1,450}@[^<>\s\"]{1,450}>")


@dataclass(frozen=True, slots=True, kw_only=True)
class CaptureOptions:
    """What the command line decides. directory: of the scenarios. today: when the file is written, ISO 8601.

    scenario_id: None for the category's next free one. previous_reply: as `AnswerOptions` has it. origin: of the mail,
    as the description has it.
    """

    directory: Path
    look_up: LookUpSource
    today: str
    scenario_id: str | None = None
    previous_reply: str | None = None
    origin: str = "A captured mail"


def capture_mail(
    options: CaptureOptions,
    config: Config,
    stream: TextStream,
    read: Callable[[], tuple[bytes, Email]],
    find_thread: Callable[[Email], Thread | None] = lambda _: None,
    known: Collection[tuple[str, str]] = (),
) -> int:
    """Write one new scenario file, whole or not at all, and print what was replaced; the exit code.

    read: the mail. find_thread: the conversation with us that it goes on with, where the options name none. known:
    subjects and texts of mails that have a scenario already, of which none is written again.

    Raises EvalError for a scenario folder that cannot be read, ProcessingError for what is no mail or comes to no
    outcome, ConfigurationError for a file that is there or cannot be written, and what `answer` raises.
    """
    instructions = instruction_files(config).load()
    options.look_up.check_asked(instructions.look_ups)
    if options.scenario_id is not None:
        _check_category(options.scenario_id, [scenario.name for scenario in instructions.scenarios])
    raw, email = read()
    previous, email = with_previous_reply(options.previous_reply, email, instructions.scenarios)
    previous = previous or reply_of_thread(find_thread(email), instructions.scenarios)
    # As `eval` judges it: no mail server has vouched for the sender of a file.
    policy = replace(AnswerPolicy.of(config), mode="answer", sender_check="off")
    original = run_dry(email, config, policy, DryServices(options.look_up, instructions.look_ups), previous)
    if not original.report.success:
        report = original.report
        stopped = end_sentence(f"The agent stopped in step {report.failed_step}: {report.error_message}")
        raise ProcessingError(f"{stopped} Capture the mail once that works", "capture_no_outcome")
    look_up = next((each for each in instructions.look_ups if each.name == original.report.look_up), None)
    recorded = [value for value in _answer_of(original).values() if isinstance(value, str)]
    recorded += [previous.ticket_id] if previous is not None and previous.ticket_id else []
    anonymizer = anonymizer_for(email, raw, policy.own_addresses, instructions.look_ups, recorded)
    category = original.report.scenario_used or "none"
    scenario_id = options.scenario_id or next_id(options.directory, category)
    path = options.directory / f"{scenario_id}.yaml"
    category = _category(scenario_id)
    data: dict[str, Any] = {
        "scenario_id": scenario_id,
        "description": f"{options.origin}: {original.outcome.replace('_', ' ')}, {category}. Say here what it guards",
        "category": category,
        "created": options.today,
        "review": True,
        "input": {"email": anonymous_mail(email, anonymizer, f"{options.today}T00:00:00Z")},
        "expected_output": {"email_sent": False, "ticket_created": False, "scenario_instruction_used": category},
    }
    if (data["input"]["email"]["subject"], data["input"]["email"]["body"]) in known:
        return EXIT_SUCCESS
    answer = _recorded_answer(original, anonymizer, look_up) if look_up else {}
    if look_up and answer:
        data["input"]["mock_responses"] = {look_up.name: mock_response(look_up.name, answer, config)}
    if previous is not None:
        data["input"]["previous_reply"] = anonymous_reply(previous, anonymizer)
    captured = _run_scenario(data, path, config, policy)
    data["expected_output"] = expected_output(captured, _facts(captured, answer, look_up))
    change = _difference(original, captured, anonymizer)
    note = f"Replacing personal data changed what happens with this mail: {change}.\nCorrect the mail by hand."
    _write(path, file_text(data, None if change is None else note))
    _print_outcome(Terminal(stream), path, anonymizer, captured, change, email.problems)
    return EXIT_SUCCESS


def capture_wrong(
    options: CaptureOptions, config: Config, stream: TextStream, find_thread: Callable[[Email], Thread | None]
) -> int:
    """A scenario of each mail of the mailbox that a person gave the keyword `wrong`, and that has none; the exit code.

    Raises as `capture_mail` does, but for a mail of which no scenario can be made: that is said, and the others follow.
    """
    options = replace(options, origin="A mail that a person flagged wrong")
    cases = EvalLoader().discover_test_cases(options.directory)
    known = {(case.input.email.subject, case.input.email.body) for case in cases}
    terminal, failed = Terminal(stream), 0
    mails = asyncio.run(_wrong_mails(config))
    for mail in mails:
        try:
            if mail is None:
                raise ProcessingError("It cannot be read. Save it as a file, and capture that", "capture_unreadable")
            capture_mail(options, config, stream, repeat(mail).__next__, find_thread, known)
        except ProcessingError as error:
            failed += 1
            terminal.outcome(f"✗ A mail that is flagged wrong: {printable(error.message)}")
    terminal.line(f"{pluralize(len(mails), 'mail')} flagged wrong. What has a scenario already gets no other.")
    terminal.flush()
    return EXIT_FAILURE if failed else EXIT_SUCCESS


async def _wrong_mails(config: Config) -> list[tuple[bytes, Email] | None]:
    """None for one that cannot be read."""
    async with opened_inbox(config) as mails:
        found = await mails.client.list_mails()
        if any(mail.is_wrong is None for mail in found):
            raise ConfigurationError(
                "This mailbox keeps no keywords, so no mail can be flagged wrong. Save the mail as a file, and capture "
                "that",
                "capture_no_keywords",
            )
        return [await read_mail(mails, mail_id) for mail_id in sorted(mail.id for mail in found if mail.is_wrong)]


def _category(scenario_id: str) -> str:
    return scenario_id.rpartition("_")[0].replace("_", "-")


def _check_category(scenario_id: str, known: Sequence[str]) -> None:
    """Raises ConfigurationError for an id under which `eval` would refuse the file."""
    if (category := _category(scenario_id)) not in known:
        problem = f"--id {scenario_id}: no instruction file is called {category!r}{listed(category, known)}"
        raise ConfigurationError(problem, "cli_bad_usage")


def _answer_of(run: DryRun) -> dict[str, Any]:
    """What the look-up's service said; empty where none was asked."""
    answer: dict[str, Any] = json.loads(str(run.look_ups[-1].answer)) if run.look_ups else {}  # those before failed
    return answer


def anonymous_reply(previous: PreviousReply, anonymizer: Anonymizer) -> dict[str, str | int]:
    """`input.previous_reply` of a scenario."""
    message_id = anonymizer.replace_message_ids(previous.message_id)
    ticket = {"ticket_id": anonymizer.replace(previous.ticket_id)} if previous.ticket_id else {}
    follow_ups = {"follow_ups": previous.follow_ups} if previous.follow_ups else {}
    return {"message_id": message_id, "scenario": previous.scenario, **ticket, **follow_ups}


def _recorded_answer(run: DryRun, anonymizer: Anonymizer, look_up: LookUp) -> dict[str, Any]:
    """What the service said, as far as anybody reads it, without anybody's data; empty where it was not asked.

    Dates, amounts and words of a list stay.
    """
    plain = {look_up.status_key, *(fact.name for fact in look_up.facts if fact.form != "name")}
    return {
        name: anonymizer.replace(value) if isinstance(value, str) and name not in plain else value
        for name, value in _answer_of(run).items()
        if name in (*answer_keys(look_up), look_up.number)
    }


def _run_scenario(data: Mapping[str, Any], path: Path, config: Config, policy: AnswerPolicy) -> DryRun:
    """What comes of the mail as it stands in the file."""
    case = EvalLoader().validate_test_case(data, path)
    email = parse_email(build_raw_email(case))
    mocks, previous = case.input.mock_responses, case.input.previous_reply
    return run_without_event_loop(dry_run(email, config, mocks, policy=policy, previous=previous))


def _facts(run: DryRun, answer: Mapping[str, Any], look_up: LookUp | None) -> list[str]:
    """What a reply should tell, where it tells it: the number that was looked up, and what came back."""
    names = (fact.name for fact in look_up.facts if fact.name != "coverage") if look_up else ()
    return [str(fact) for fact in (run.report.number, *map(answer.get, names)) if fact]


def _difference(before: DryRun, after: DryRun, anonymizer: Anonymizer) -> str | None:
    """What the replacement changed about the outcome, in words without customer text; None where nothing."""
    number = before.report.number
    pairs = (
        ("the scenario", before.report.scenario_used, after.report.scenario_used),
        ("the outcome", before.outcome, after.outcome),
        ("the reason", before.report.skip_reason, after.report.skip_reason),
        ("the reasons", before.report.hand_over_reasons, after.report.hand_over_reasons),
        ("the status", before.report.status, after.report.status),
    )
    for what, first, second in pairs:
        if first != second:
            return f"{what} was {_words(first)} and is {_words(second)}"
    if (None if number is None else anonymizer.replace(number)) != after.report.number:
        return "another number is looked up"
    return None


def _words(value: object) -> str:
    return ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)


def _write(path: Path, text: str) -> None:
    try:
        if write_new_file(path, text.encode()):
            return
    except OSError as error:
        raise ConfigurationError(
            f"{printable(str(path))} cannot be written ({error.strerror}). Name another folder with --eval-dir",
            "capture_unwritable",
        ) from None
    raise ConfigurationError(
        f"{printable(str(path))} is there already, and stays. Name another number with --id", "capture_file_exists"
    )


def _print_outcome(
    terminal: Terminal,
    path: Path,
    anonymizer: Anonymizer,
    run: DryRun,
    change: str | None,
    problems: Sequence[str],
) -> None:
    """problems: what was wrong with the mail's form, and how it was read."""
    terminal.outcome(f"✓ wrote {printable(str(path))}")
    terminal.line(what_was_replaced(anonymizer.counts))
    terminal.line(NOT_FOUND)
    for problem in problems:
        terminal.line(f"Note: {problem}")
    if run.previous is not None:
        terminal.line(f"Answers our reply: {run.previous.scenario}")
    terminal.line(f"Outcome: {run.outcome.replace('_', ' ')} ({run.report.scenario_used})")
    if change is not None:
        terminal.outcome(f"✗ the replacement changed what happens: {change}. Correct the mail by hand")
    terminal.line("Look at what the file expects and say what it guards, then remove 'review: true'.")
    terminal.flush()


def read_mailbox_mail(message_id: str, config: Config) -> tuple[bytes, Email]:
    """The mail as it came, and parsed. message_id: with its angle brackets.

    Raises ProcessingError where no mail has it, ConfigurationError for what is missing to reach the mailbox,
    MCPConnectionError where it cannot be reached, and IntegrationError for a mail that cannot be read.
    """

    async def read() -> bytes:
        async with opened_inbox(config) as mails:
            mail_id = await mails.client.find_mail(message_id)
            if mail_id is None:
                raise ProcessingError(
                    f"No mail of the mailbox has the Message-ID {message_id}. Copy it from the mail's header, or save "
                    "the mail as a file",
                    "capture_mail_not_found",
                )
            return await mails.read(mail_id)

    raw = asyncio.run(read())
    return raw, parse_email(raw)
