"""Whose fault an answer of another form is: that of one odd record, or that of the service.

A service that answers different requests with the same kind of bad answer, and none with a good one in between, was
changed or is misconfigured: that is an outage, and no fault of the mails that wait for it.
"""

from __future__ import annotations

import json
import logging
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final, TypeVar

from guarantee_email_agent.integrations.call_errors import malformed_error
from guarantee_email_agent.utils.errors import IntegrationError

logger = logging.getLogger(__name__)

MALFORMED_SUFFIX: Final = "_malformed"
_Answer = TypeVar("_Answer")


class BadAnswers:
    """Those of one tool since its last good answer. name: of the service, as its error codes begin.

    Another tool that is asked first, such as a search, may give them, too.
    """

    def __init__(self, name: str, tool: str) -> None:
        self._name = name
        self._tool = tool
        self._first: dict[str, str] = {}  # the first request that had an answer with this problem
        self._confirmed: set[str] = set()  # problems that another request had, too

    async def check(
        self, request: Mapping[str, Any], call: Callable[[], Awaitable[_Answer]], read: Callable[[_Answer], object]
    ) -> _Answer:
        """The answer of `call`, once `read` can read it.

        Raises what `call` raises; for a bad answer `{name}_malformed`, with service, tool and field in its message, and
        an `outage` where another request had the same.
        """
        try:
            answer = await call()
            read(answer)
        except IntegrationError as error:
            if not error.code.endswith(MALFORMED_SUFFIX):
                raise
            problem = str(error.details.get("problem") or "is not as expected")
            tool = str(error.details.get("tool") or self._tool)
            bad = malformed_error(self._name, tool, problem)
            bad.details["outage"] = self._is_services_fault(
                f"{tool} {problem}", json.dumps(request, sort_keys=True, default=str)
            )
            raise bad from None
        if self._confirmed:
            logger.warning("%s: the answers of %s can be read again", self._name, self._tool)
        self._first.clear()
        self._confirmed.clear()
        return answer

    def _is_services_fault(self, problem: str, request: str) -> bool:
        """problem: with the tool before it."""
        first = self._first.setdefault(problem, request)
        if problem in self._confirmed:
            return True
        if first == request:
            logger.warning("%s: the answer of %s", self._name, problem)
            return False
        self._confirmed.add(problem)
        logger.error(
            "%s: the answer of %s, for one request after the other: the service is at fault. Mails wait until it is "
            "mended, or its configuration is",
            self._name,
            problem,
        )
        return True
