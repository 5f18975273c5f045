"""`agent.require_eval`: only instruction files answer for which the configured suite is green."""

from __future__ import annotations

import os
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.settings import Config, InstructionSettings
from guarantee_email_agent.email.agent_inputs import agent_settings, file_inputs, instruction_paths, lexicon_paths
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.program_inputs import program_inputs
from guarantee_email_agent.runlog.proof import Proof, SuiteProofs
from guarantee_email_agent.runlog.records import Input
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.utils.errors import InstructionError
from guarantee_email_agent.utils.text import printable

REMEDY: Final = "Run `eval` until it passes, or set agent.mode: drafts"


class RequiredEvaluation:
    """Asks the run store, whose runs `eval` keeps."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._proofs = SuiteProofs(config)

    def proof(self) -> Proof:
        """Of the files as they are now. Raises StoreError."""
        return self._proofs.of(self._inputs())

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
