"""An IMAP server that does not hand out some of its mails, for a `TcpProxy` in front of one."""

import re
from typing import Final, Literal

_FETCH: Final = re.compile(rb"(\S+) UID FETCH (\S+) (.*)", re.DOTALL)


class WithheldMail:
    """What FETCH gets that names one of `uids` and `item`, such as `RFC822.SIZE`: a refusal, NIL, or nothing at all."""

    def __init__(self, item: bytes, how: Literal["NO", "NIL", "nothing"]) -> None:
        self._item, self._how = item, how
        self.uids: set[int] = set()

    def __call__(self, request: bytes) -> bytes | None:
        if (fetch := _FETCH.fullmatch(request)) is None:
            return None
        tag, named, items = fetch.groups()
        if self._item not in items or self.uids.isdisjoint(_uids(named)):
            return None
        if self._how == "NO":
            return tag + b" NO [SERVERBUG] Internal error occurred.\r\n"
        uid = min(self.uids)
        data = b"* %d FETCH (UID %d BODY[] NIL)\r\n" % (uid, uid) if self._how == "NIL" else b""
        return data + tag + b" OK Fetch completed.\r\n"


def _uids(named: bytes) -> set[int]:
    ranges = [part.split(b":") for part in named.split(b",")]
    return {uid for ends in ranges for uid in range(int(ends[0]), int(ends[-1]) + 1)}
