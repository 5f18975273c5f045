"""The real agent of one simulated process: daemon, worker, processor and outbox, as `run` puts them together."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.agent import mail_worker
from guarantee_email_agent.agent.daemon import Daemon
from guarantee_email_agent.agent.identity_key import key_of_location
from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.config.settings import AgentSettings, ReplyLimits
from guarantee_email_agent.email import processor as mail_processor
from guarantee_email_agent.email.identity import mail_identity
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.email.processor import EmailProcessor, RawEmail
from guarantee_email_agent.email.processor_models import AnswerPolicy, ModelSettings
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.lexicon import load_lexicon
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.llm.port import ModelClient
from simulation.ledger_in_memory import KEY
from simulation.services import SimulatedMailbox, SimulatedTicketing, SimulatedWarranty

if TYPE_CHECKING:
    from simulation.history import History

_INSTRUCTIONS: Final = Path(__file__).parents[3] / "instructions"
MAX_ATTEMPTS: Final = 3
REPLIES_TO_ONE_ADDRESS: Final = 3
COPY_WAIT_S: Final = 30.0
_MAILBOX_NAME: Final = "the inbox"
SETTINGS: Final = AgentSettings(
    answer_since="all",
    limits=ReplyLimits(per_address=REPLIES_TO_ONE_ADDRESS),
    max_attempts=MAX_ATTEMPTS,
    mail_budget_s=60.0,
    poll_interval_s=3000.0,
)
OTHER_SETTINGS: Final = (
    SETTINGS,
    replace(SETTINGS, mail_budget_s=300.0, max_attempts=MAX_ATTEMPTS + 2),
    replace(SETTINGS, mail_budget_s=40.0, concurrency=1, poll_interval_s=60.0),
)
"""What the administrator may change."""


class _LoadedInstructions:
    """The shipped files, read once for all histories."""

    def __init__(self) -> None:
        self._loaded = InstructionFiles(_INSTRUCTIONS / "main.md", _INSTRUCTIONS / "scenarios").load()

    def load(self) -> Instructions:
        return self._loaded


class _RememberedAnswers(ModelClient):
    """The offline model, which says the same to the same request: so it is asked once for all histories."""

    def __init__(self) -> None:
        lexicon = load_lexicon(_INSTRUCTIONS / "lexicon")
        self._model = InstructionInterpreter(lambda: lexicon)
        self._answers: dict[tuple[str, str], Any] = {}

    async def create(self, **request: Any) -> Any:
        key = request["tool_choice"]["name"], str(request["messages"])
        if key not in self._answers:
            self._answers[key] = await self._model.messages.create(**request)
        return self._answers[key]


def _remember_what_mails_say() -> None:
    """Most histories have mails that others had: each is read once, by the functions that read it in the agent."""
    parse = cache(parse_email)

    def parse_once(mail: RawEmail) -> Email:
        return parse(mail) if isinstance(mail, bytes) else parse_email(mail)

    mail_worker.parse_email = parse_once
    mail_processor.parse_email = parse_once
    for name in ("read_numbers", "measure_doubt", "choose_language"):
        setattr(mail_processor, name, _remembering(getattr(mail_processor, name)))


def _remembering(function: Callable[..., Any]) -> Callable[..., Any]:
    """Of a function of texts, and of mails and instructions, of which each is in memory once and for ever."""
    known: dict[object, Any] = {}

    def remembered(candidates: Any, *arguments: Any, **options: Any) -> Any:
        texts_and_ids = (each if isinstance(each, str | None) else id(each) for each in arguments)
        key = (repr(candidates), *texts_and_ids, *options.values())
        if key not in known:
            known[key] = function(candidates, *arguments, **options)
        return known[key]

    return remembered


_remember_what_mails_say()
instructions = cache(_LoadedInstructions)
_model = cache(_RememberedAnswers)


@cache
def identity_of(raw: bytes) -> str:
    """What the ledger knows a mail by."""
    return mail_identity(parse_email(raw), KEY)


def location_of(mail_id: str) -> str:
    """What the ledger knows the place of a mail by."""
    return key_of_location(_MAILBOX_NAME, mail_id, KEY)


def create_daemon(history: History, ledger: Ledger, owner: str, stop: asyncio.Event) -> Daemon:
    mode = history.administration.mode
    mailbox = SimulatedMailbox(history)
    processor = EmailProcessor(
        mail=mailbox,
        look_ups={"warranty_api": SimulatedWarranty(history)},
        ticketing=SimulatedTicketing(history),
        llm=_model(),
        instructions=instructions(),
        model=ModelSettings("offline"),
        clock=history.clock,
        policy=AnswerPolicy(mode, max_delay_days=7),
        identity_key=KEY,
    )
    settings = replace(history.administration.settings, mode=mode)
    worker = MailWorker(mailbox, ledger, processor, settings, COPY_WAIT_S, _MAILBOX_NAME, owner)
    return Daemon(worker, history.clock, stop)
