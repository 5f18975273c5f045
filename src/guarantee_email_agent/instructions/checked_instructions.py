"""The last set of instruction files without a mistake: an edit that breaks one is told, and does not take effect."""

from __future__ import annotations

import logging

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.utils.errors import InstructionError

logger = logging.getLogger(__name__)


class CheckedInstructions:
    """An InstructionSource that never fails.

    Raises InstructionError, when it is made, where the files have a mistake.
    """

    def __init__(self, files: InstructionFiles) -> None:
        self._files = files
        self._last = files.load()
        self._problem = ""

    @property
    def current(self) -> Instructions:
        """The set that was loaded last."""
        return self._last

    def lexicon(self) -> Lexicon:
        """A LexiconSource."""
        return self._last.lexicon

    def load(self) -> Instructions:
        """The files as they stand, or, while one of them has a mistake, as they were before.

        Each mistake is logged at ERROR once, with file and line.
        """
        try:
            found = self._files.load()
        except InstructionError as error:
            if error.message != self._problem:
                self._problem = error.message
                for line in error.message.splitlines():
                    logger.error("The instructions from before stay in use: %s", line, extra=_fields(error))
            return self._last
        if self._problem:
            self._problem = ""
            logger.info("The instruction files can be read again, and are in use as they stand now")
        self._last = found
        return found


def _fields(error: InstructionError) -> dict[str, dict[str, str]]:
    return {"fields": {"code": error.code}}
