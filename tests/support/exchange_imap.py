"""What Exchange Online does otherwise than Dovecot, for a `TcpProxy` in front of one.

It keeps the system flags alone, and has MOVE and UIDPLUS, but neither CONDSTORE nor SPECIAL-USE; a keyword is refused.
"""

from collections.abc import Mapping
from typing import Final

from guarantee_email_agent.services.mail.mail_store import KEYWORDS

AS_EXCHANGE: Final[Mapping[bytes, bytes]] = {
    rb" \*)": b")",
    **{f" {keyword}".encode(): b"" for keyword in KEYWORDS.values()},
    b" CONDSTORE": b"",
    b" QRESYNC": b"",
    b" SPECIAL-USE": b"",
    b" ENABLE": b"",
}
"""Parts of answers, and what stands in their place."""


def refuse_keywords(request: bytes) -> bytes | None:
    """The answer to a request that names a keyword of ours."""
    if b"$Agent" not in request:
        return None
    return request.split()[0] + b" BAD Command Argument Error. 11\r\n"
