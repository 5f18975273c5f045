"""Copies in folders that other sessions change at the same time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from imapclient import IMAPClient

from guarantee_email_agent.services.mail.sent_copies import find_copies, find_own_copies

HEADER = b"BODY[HEADER.FIELDS (FROM TO MESSAGE-ID X-SENT-PROOF)]"


class MovedMeanwhile:
    """A server's answers about a mail that another session moved after it was found: RFC 3501 has NIL for such a part.

    A stand-in, since no server can be made to answer so at a chosen moment.
    """

    def __init__(self, parts: dict[bytes, Any]) -> None:
        self._parts = parts

    def search(self, criteria: Sequence[object]) -> list[int]:
        return [7] if b"HEADER" in criteria or b"FROM" in criteria else []

    def noop(self) -> None:
        """From now on, searches no longer find it."""

    def fetch(self, uids: Sequence[int], data: Sequence[bytes]) -> dict[int, dict[bytes, Any]]:
        return dict.fromkeys(uids, self._parts)


@pytest.mark.parametrize("parts", [{HEADER: None, b"BODY[TEXT]<0>": None}, {b"FLAGS": ()}, {}])
def test_a_mail_that_another_session_moved_is_no_copy(parts: dict[bytes, Any]) -> None:
    client = cast("IMAPClient", MovedMeanwhile(parts))
    assert find_copies(client, "<reply-1@example.com>") == []
    assert find_own_copies(client, [7], "support@example.com", b"key") == {}
