"""The worker of a configuration, with its model and its instructions."""

from __future__ import annotations

import logging

from guarantee_email_agent.agent.identity_key import mailbox_name
from guarantee_email_agent.agent.mail_model import check_price
from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.agent.required_evaluation import RequiredEvaluation, required_evaluation
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.identity import DEFAULT_DOMAIN
from guarantee_email_agent.email.processor import EmailProcessor, InstructionSource
from guarantee_email_agent.email.processor_models import AnswerPolicy, ModelSettings
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.interpreter.interpreter import InstructionInterpreter
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.llm.port import ClosableModel, LanguageModel
from guarantee_email_agent.llm.provider import language_model
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.services.services import Services
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import InstructionError

logger = logging.getLogger(__name__)


class CheckedInstructions:
    """An InstructionSource that never fails.

    Raises InstructionError, when it is made, where the files have a mistake, or where neither they nor any before them
    have the evaluation that is required, if one is.
    """

    def __init__(self, files: InstructionFiles, evaluation: RequiredEvaluation | None = None) -> None:
        self._files, self._evaluation = files, evaluation
        self._last = files.load()
        self._problem = ""
        if evaluation is not None:
            try:
                evaluation.require()
            except InstructionError as error:
                if (proved := evaluation.last_proved()) is None:
                    raise
                self._last = proved[1]
                self._tell(error)

    def lexicon(self) -> Lexicon:
        """A LexiconSource."""
        return self._last.lexicon

    def load(self) -> Instructions:
        """The files as they stand, or, while one of them has a mistake or they are not proved, as they were before.

        Each mistake is logged at ERROR once, with file and line.
        """
        try:
            found = self._files.load()
            if found is not self._last and self._evaluation is not None:
                self._evaluation.require()
                if self._files.load() is not found:  # edited meanwhile: it is not what was proved
                    return self._last
        except InstructionError as error:
            self._tell(error)
            return self._last
        if self._problem:
            self._problem = ""
            logger.info("The instruction files can be read again, and are in use as they stand now")
        self._last = found
        return found

    def _tell(self, error: InstructionError) -> None:
        if error.message != self._problem:
            self._problem = error.message
            for line in error.message.splitlines():
                logger.error("The instructions from before stay in use: %s", line, extra=_fields(error))


def _fields(error: InstructionError) -> dict[str, dict[str, str]]:
    return {"fields": {"code": error.code}}


def checked_instructions(config: Config) -> CheckedInstructions:
    """Raises InstructionError for files with a mistake, and for those that may not answer without an evaluation."""
    return CheckedInstructions(instruction_files(config), required_evaluation(config))


def create_model(config: Config, clock: Clock, instructions: CheckedInstructions) -> ClosableModel:
    """Raises ConfigurationError for what is missing."""
    return language_model(config, clock, InstructionInterpreter(instructions.lexicon))


def create_worker(
    config: Config,
    services: Services,
    model: LanguageModel,
    ledger: Ledger,
    key: bytes,
    clock: Clock,
    instructions: InstructionSource,
) -> MailWorker:
    """Raises ConfigurationError for a limit of costs without a known price."""
    copy_wait_s = config.mailbox.copy_wait_s if config.mailbox.imap.host else 0.0
    check_price(config.llm)
    address = config.mailbox.from_address
    processor = EmailProcessor(
        mail=services.mail,
        warranty=services.warranty,
        ticketing=services.ticketing,
        look_ups=services.look_ups,
        llm=model,
        instructions=instructions,
        model=ModelSettings(config.llm.model, config.llm.max_tokens),
        clock=clock,
        policy=AnswerPolicy.of(config),
        identity_key=key,
        reply_domain=address.rpartition("@")[2] if address else DEFAULT_DOMAIN,
    )
    name = mailbox_name(config)
    return MailWorker(
        services.mail,
        ledger,
        processor,
        config.agent,
        copy_wait_s,
        name,
        process_name(),
        has_live_model=config.llm.provider != "offline",
        max_cost_usd=config.llm.max_cost_per_day,
    )
