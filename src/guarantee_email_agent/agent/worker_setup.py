"""The worker of a configuration, with its model and its instructions, of which only those answer that are proved."""

from __future__ import annotations

import logging
import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from guarantee_email_agent.agent.identity_key import mailbox_name
from guarantee_email_agent.agent.mail_model import check_price
from guarantee_email_agent.agent.mail_worker import MailWorker
from guarantee_email_agent.agent.process_identity import process_name
from guarantee_email_agent.config.settings import Config, InstructionSettings
from guarantee_email_agent.email.agent_inputs import agent_settings, file_inputs, instruction_paths, lexicon_paths
from guarantee_email_agent.email.identity import DEFAULT_DOMAIN
from guarantee_email_agent.email.processor import EmailProcessor, InstructionSource
from guarantee_email_agent.email.processor_models import AnswerPolicy, ModelSettings
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.judging.judge_dependencies import follow_judges
from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.llm.port import LanguageModel
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.program_inputs import code_inputs, program_inputs
from guarantee_email_agent.runlog.proof import Proof, SuiteProofs
from guarantee_email_agent.runlog.records import Input
from guarantee_email_agent.runlog.suite_manifest import judge_files, suite_files
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.services.services import Services
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import InstructionError
from guarantee_email_agent.utils.text import printable

logger = logging.getLogger(__name__)


REMEDY: Final = "Run `eval` until it passes, or set agent.mode: drafts"


class RequiredEvaluation:
    """Asks the run store, whose runs `eval` keeps."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._proofs = SuiteProofs(config)

    def proof(self) -> Proof:
        """Of the files as they are now. Raises StoreError."""
        suite = self._config.eval.test_suite_path
        judges = follow_judges(judge_files(suite))
        files = dict(suite_files(suite, judges))
        return self._proofs.of(self._inputs(), [*file_inputs(files), *code_inputs(judges)])

    def require(self) -> None:
        """Raises InstructionError where the files as they are now may not answer."""
        try:
            proof = self.proof()
        except StoreError as error:
            problem = f"Whether the suite is green is not known: {error.message}"
            raise InstructionError(f"{problem}. {REMEDY}", "instruction_not_evaluated") from None
        if proof.state != "passed":
            problem = printable(f"Evaluation of {self._config.instructions.main.parent}: {proof}. {REMEDY}")
            raise InstructionError(problem, "instruction_not_evaluated")

    def last_proved(self) -> tuple[str, Instructions] | None:
        """The newest set whose suite is green, as the run that proved it has kept it, with that run's id.

        None where none is known. Raises InstructionError where it cannot be read any more.
        """
        try:
            found = self._proofs.newest_files(self._inputs())
        except StoreError:
            found = None
        if found is None:
            return None
        run, files = found
        with tempfile.TemporaryDirectory(prefix="guarantee-email-agent-") as place:
            for each in files:
                folder = each.kind if each.kind == "lexicon" else os.path.dirname(each.name) and "scenarios"
                path = Path(place, folder, os.path.basename(each.name))
                path.parent.mkdir(exist_ok=True)
                path.write_bytes(each.content or b"")
            settings = InstructionSettings(Path(place, self._config.instructions.main.name), Path(place, "scenarios"))
            return run, instruction_files(replace(self._config, instructions=settings)).load()

    def _inputs(self) -> list[Input]:
        config = self._config
        files = instruction_paths(config) | lexicon_paths(config)
        return [*file_inputs(files), *agent_settings(config, "offline"), *program_inputs()]


def required_evaluation(config: Config) -> RequiredEvaluation | None:
    """None where none is required: a person sends what `drafts` writes, and nothing leaves in `observe`."""
    return RequiredEvaluation(config) if config.agent.mode == "answer" and config.agent.require_eval else None


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
                fields = {"code": error.code}
                logger.error("The instructions from before stay in use: %s", line, extra={"fields": fields})


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
        look_ups=services.look_ups,
        ticketing=services.ticketing,
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
