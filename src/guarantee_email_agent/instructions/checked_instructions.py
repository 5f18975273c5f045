"""The last set of instruction files without a mistake: an edit that breaks one is told, and does not take effect."""

from __future__ import annotations

import logging
from math import inf
from typing import Final

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import InstructionError

logger = logging.getLogger(__name__)

MAX_AGE_S: Final = 0.1
"""Some forty files: to read them for each of a hundred mails a second takes a tenth of the agent's time."""


class CheckedInstructions:
    """An InstructionSource that never fails. clock: None to read the files at every call.

    Raises InstructionError, when it is made, where the files have a mistake.
    """

    def __init__(self, files: InstructionFiles, clock: Clock | None = None) -> None:
        self._files = files
        self._clock = clock
        self._fresh_until = -inf
        self._last = files.load()
        self._problem = ""

    @property
    def current(self) -> Instructions:
        """The set that was loaded last."""
        return self._last

    def lexicon(self) -> Lexicon:
        """A LexiconSource."""
        return self._last.lexicon

    def expire(self) -> None:
        """Have the next call read the files, however soon it comes."""
        self._fresh_until = -inf

    def load(self) -> Instructions:
        """The files as they stood within the last MAX_AGE_S, or, while one of them has a mistake, as they were before.

        Each mistake is logged at ERROR once, with file and line.
        """
        if self._clock is not None:
            now = self._clock.monotonic()
            if now < self._fresh_until:
                return self._last
            self._fresh_until = now + MAX_AGE_S
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
