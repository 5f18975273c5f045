"""The whole of `rehearse`: what the agent would have made of past mail, beside what people sent, to be labelled."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.people_answers import (
    MOST_SENT_BYTES,
    answers_by_mail,
    goes_to,
    likeness,
    read_sent,
    words_of,
    written_text,
)
from guarantee_email_agent.email.processor_models import AnswerPolicy
from guarantee_email_agent.eval.answer_command import DryServices, dry_runs
from guarantee_email_agent.eval.capture.capture_command import NOT_FOUND
from guarantee_email_agent.eval.capture.scenario_file import anonymizer_for, anonymous_mail
from guarantee_email_agent.eval.dry_run import DryRun, reply_of_thread
from guarantee_email_agent.eval.look_up_source import LookUpSource
from guarantee_email_agent.eval.past_mails import (
    FoundMails,
    Inbox,
    PastMails,
    Period,
    find_mails,
    past_mails,
    read_mail,
)
from guarantee_email_agent.eval.sealing.mail_labels import label_error, read_item
from guarantee_email_agent.eval.sealing.sample_and_seal import make_new_folder, write_into
from guarantee_email_agent.files.report_files import write_whole
from guarantee_email_agent.files.yaml import dump
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.runlog.labelling import LabelField, LabelItem
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.services.ports import Thread
from guarantee_email_agent.utils.errors import EXIT_SUCCESS
from guarantee_email_agent.utils.terminal import Terminal, TextStream, pluralize
from guarantee_email_agent.utils.text import printable

PAIRS: Final = "pair_*.yaml"
_NO_TEXT: Final = "Not known: their answer has no text that can be read, as one that is encrypted"
_LABELS: Final = (
    ("as good", "as good as what was sent, or better"),
    ("edited", "good once a person has edited it"),
    ("wrong", "wrong"),
    ("should have been handed over", "should have been handed over to a person"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RehearseOptions:
    """to: the new folder. folder, sent: with `.eml` files; the inbox and the Sent folder if None."""

    to: Path
    period: Period
    today: str
    folder: Path | None = None
    sent: Path | None = None
    live: bool = False


def rehearse(
    options: RehearseOptions, config: Config, stream: TextStream, find_thread: Callable[[Email], Thread | None]
) -> int:
    """Write a file for each mail, and print what would have become of them; the exit code.

    Raises as `sample_mails` does for one mail, and MCPConnectionError for a look-up's service that cannot be reached.
    """
    instructions = instruction_files(config).load()
    counts: Counter[str] = Counter()
    found, unknown = asyncio.run(_rehearse(options, config, instructions, find_thread, counts))
    mails, answered, both = counts.total() - counts["both"], counts["answered"], counts["both"]
    terminal = Terminal(stream)
    terminal.outcome(
        f"✓ of {pluralize(mails, 'mail')} the agent would have answered {answered}, left {counts['handed_over']} to a "
        f"person and {counts['not_answered']} unanswered, and stopped at {counts['failed']}"
    )
    least = "at least " if unknown else ""
    terminal.line(f"Of those that it would have answered, people answered {least}{both}. Nothing was sent.")
    for line in (*([unknown] if unknown else []), *found.left_out(), NOT_FOUND):
        terminal.line(line)
    terminal.line(f"Label each with 'view --label {printable(str(options.to))}'.")
    terminal.flush()
    return EXIT_SUCCESS


async def _rehearse(
    options: RehearseOptions,
    config: Config,
    instructions: Instructions,
    find_thread: Callable[[Email], Thread | None],
    counts: Counter[str],
) -> tuple[FoundMails, str]:
    """What was found, with what became unreadable since, and why nobody knows all that people sent."""
    policy = replace(AnswerPolicy.of(config), mode="answer")
    services = DryServices(LookUpSource(ask=True), instructions.look_ups, live=options.live)
    async with past_mails(config, options.folder) as mails, dry_runs(config, policy, services) as run:
        found = await find_mails(mails, options.period, 1)
        sent, unknown = await _sent_mails(options, config, mails)
        answers = answers_by_mail(sent)
        make_new_folder(options.to)
        for number, mail_id in enumerate(found.ids, 1):
            if (read := await read_mail(mails, mail_id)) is None:
                found = replace(found, unread=found.unread + 1)
                continue
            raw, email = read
            done = await run(email, reply_of_thread(find_thread(email), instructions.scenarios))
            to = email.sender if done.reply is None else str(done.reply["to"])
            people = next((mail for mail in answers.get(email.message_id, ()) if goes_to(mail, to)), None)
            counts[done.outcome] += 1
            counts["both"] += done.reply is not None and people is not None
            pair = _pair(done, people, raw, policy.own_addresses, instructions, options.today)
            pair |= {"people": {"not_known": unknown}} if unknown and people is None else {}
            write_into(options.to, f"pair_{number:04d}.yaml", dump(pair))
    return found, unknown


async def _sent_mails(options: RehearseOptions, config: Config, mails: PastMails) -> tuple[list[Email], str]:
    """Those in the folder, or where the inbox is; and why what people answered is not all known, or nothing."""
    if options.sent is not None:
        async with past_mails(config, options.sent) as folder:
            found = [(await read_mail(folder, mail_id) or (b"", None))[1] for mail_id in await folder.ids()]
    else:
        since = 0.0 if options.period.since is None else options.period.since.timestamp()
        found = await mails.client.list_sent(since, MOST_SENT_BYTES, read_sent) if isinstance(mails, Inbox) else []
        if not found:  # a folder without any may be one that nobody uses
            return [], "Not known: what people sent. Name a folder of it with --sent"
    sent = [mail for mail in found if mail is not None]
    unread = pluralize(len(found) - len(sent), "mail")
    return sent, f"Not known: what stands in {unread} that people sent" if len(sent) < len(found) else ""


def _pair(
    done: DryRun,
    people: Email | None,
    raw: bytes,
    own_addresses: frozenset[str],
    instructions: Instructions,
    today: str,
) -> dict[str, Any]:
    """What stands in the file, without anybody's data."""
    reply = "" if done.reply is None else str(done.reply["body"])
    written = "" if people is None else written_text(people)
    others = () if people is None else (people,)
    anonymizer = anonymizer_for(done.email, raw, own_addresses, instructions.look_ups, (reply, written), others)
    agent = {"outcome": done.outcome.replace("_", " "), "scenario": done.report.scenario_used or "none"}
    if done.report.hand_over_reasons:
        agent["reasons"] = ", ".join(done.report.hand_over_reasons)
    pair: dict[str, Any] = {
        "mail": anonymous_mail(done.email, anonymizer, f"{today}T00:00:00Z"),
        "agent": agent | ({"reply": anonymizer.replace(reply)} if reply else {}),
    }
    if people is not None:
        pair["people"] = {"reply": anonymizer.replace(written)} if written.strip() else {"not_known": _NO_TEXT}
        percent = likeness(words_of(reply), words_of(written)) if reply else None
        pair |= {} if percent is None else {"alike_percent": percent}
    return pair


class PairLabels:
    """The `LabelSheet` of a folder that `rehearse` made."""

    def __init__(self, folder: Path) -> None:
        self.title = f"Rehearsal {printable(folder.name)}"
        self._folder = folder

    def items(self) -> list[LabelItem]:
        return [self._item(path) for path in sorted(self._folder.glob(PAIRS))]

    def save(self, item: str, values: Mapping[str, str]) -> None:
        path = next((path for path in self._folder.glob(PAIRS) if path.stem == item), None)
        if path is None or values.get("label") not in dict(_LABELS):
            raise label_error("Choose what you think of the agent's answer")
        with read_item(path, "rehearse") as pair:
            labelled = {**pair, "label": values["label"]}
        try:
            write_whole(path, dump(labelled).encode())
        except OSError as error:
            raise label_error(f"{path} cannot be written ({error.strerror}). Check its folder") from None

    def _item(self, path: Path) -> LabelItem:
        with read_item(path, "rehearse") as pair:
            mail, agent, people = pair["mail"], pair["agent"], pair.get("people") or {}
            told = "\n".join(f"{name}: {agent[name]}" for name in ("outcome", "scenario", "reasons") if name in agent)
            texts = (
                ("Mail", f"{mail['subject']}\n\n{mail['body']}"),
                ("The agent", f"{told}\n\n{agent.get('reply', '')}".strip()),
                (
                    "People",
                    people.get("reply", people.get("not_known", "No answer by a person is in the Sent folder.")),
                ),
            )
            label = str(pair.get("label", ""))
        return LabelItem(path.stem, texts, (LabelField("label", "What the agent does is", _LABELS, label),), label)
