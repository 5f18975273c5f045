"""`run --demo`: the agent, offline, on a Maildir of sample mails; then its replies and tickets."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.agent.mail_outcome import WorkResult
from guarantee_email_agent.agent.startup import open_daemon
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.services.ports import InboxEntry
from guarantee_email_agent.services.ticket_store import TicketStore
from guarantee_email_agent.utils.errors import EXIT_FAILURE, EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.logging import configure_logging
from guarantee_email_agent.utils.terminal import Terminal, TextStream
from guarantee_email_agent.utils.text import printable

_SAMPLES: Final = Path(__file__).parent / "samples"
_SHOWN_TICKETS: Final = 50
_ADDRESS: Final = "support@example.com"


# One mail at a time, so that each ticket has the same number in every run.
_CONFIG: Final = f"""\
# Written by `run --demo`: look around, change something, and run again with --config config.yaml
mailbox: {{from_address: {_ADDRESS}, maildir: mailbox}}
agent: {{concurrency: 1, answer_since: all, max_delay_days: null, require_eval: false}}
"""


def demonstrate(folder: Path | None, out: TextStream) -> int:
    """Run the demo; the exit code. folder: a new one to keep everything in; by default a temporary one.

    Raises ConfigurationError where the folder holds something already.
    """
    configure_logging("WARNING", "WARNING", None, as_json=False)
    kept = nullcontext(folder) if folder else tempfile.TemporaryDirectory(prefix="guarantee-email-agent-")
    with kept as place:
        return _demonstrate(_create_folder(Path(place).absolute()), Terminal(out))


def _demonstrate(config: Config, terminal: Terminal) -> int:
    mails = {file.name: parse_email(file.read_bytes()) for file in (config.mailbox.maildir / "new").iterdir()}
    terminal.line(f"Demo: {len(mails)} sample mails to {_ADDRESS}, answered offline")
    dispositions, tickets, complete = asyncio.run(_answer(config))
    replies = _replies(config)
    for name, mail in sorted(mails.items()):
        _print_mail(terminal, mail, dispositions.get(name, "left unprocessed"), replies.get(mail.message_id))
    terminal.line(f"Tickets: {len(tickets)}")
    for ticket in reversed(tickets):
        terminal.line(f"    {ticket['ticket_id']}  {ticket['serial_number']}  {ticket['customer_email']}")
    return EXIT_SUCCESS if complete else EXIT_FAILURE


def _create_folder(folder: Path) -> Config:
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if any(folder.iterdir()):
            raise ConfigurationError(f"{folder} is not empty. Name a new folder for the demo", "demo_folder_not_empty")
        maildir = folder / "mailbox"
        for part in ("cur", "new", "tmp"):
            (maildir / part).mkdir(parents=True)
        for file in (_SAMPLES / "mails").iterdir():
            shutil.copyfile(file, maildir / "new" / file.stem)
        shutil.copyfile(_SAMPLES / "warranties.csv", folder / "warranties.csv")
        (folder / "config.yaml").write_text(_CONFIG, encoding="utf-8")
    except OSError as error:
        raise ConfigurationError(
            f"The demo cannot be set up in {folder} ({error.strerror}). Name a folder that can be written",
            "demo_folder_unwritable",
        ) from None
    return load_config(folder / "config.yaml", {}, folder)


async def _answer(config: Config) -> tuple[dict[str, str], list[dict[str, Any]], bool]:
    """The disposition of each mail by its file name, the tickets, and whether every mail came to an outcome."""
    dispositions: dict[str, str] = {}

    def keep(entry: InboxEntry, result: WorkResult) -> None:
        dispositions[entry.id] = f"{result.disposition.replace('_', ' ')} ({result.reason})"

    async with open_daemon(config, asyncio.Event()) as (daemon, _):
        daemon.standing.listeners.append(keep)
        complete = await daemon.drain()
    with closing(TicketStore(config.tickets.database)) as tickets:
        return dispositions, tickets.latest(_SHOWN_TICKETS)[0], complete


def _replies(config: Config) -> dict[str, Email]:
    """Every reply, by the Message-ID of the mail that it answers."""
    replies = [parse_email(file.read_bytes()) for file in sorted(config.mailbox.maildir.glob(".Sent/*/*"))]
    return {"".join(reply.headers.get("in-reply-to", ())): reply for reply in replies}


def _print_mail(terminal: Terminal, mail: Email, disposition: str, reply: Email | None) -> None:
    """The mail, its disposition, and the reply's first two paragraphs after the greeting."""
    sign = "✓" if disposition.startswith(("answered", "not answered", "handed over")) else "✗"
    terminal.outcome(f"{sign} {printable(mail.subject)} from {mail.sender}: {disposition}")
    for paragraph in reply.new_text.split("\n\n")[1:3] if reply else ():
        for line in paragraph.splitlines():
            terminal.line(f"    {printable(line)}")
