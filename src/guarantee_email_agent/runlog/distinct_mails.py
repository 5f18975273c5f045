"""How many distinct mails a suite has: copies of one show nothing new."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from typing import Final

from guarantee_email_agent.runlog.records import Case

FINGERPRINT_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class DistinctMails:
    """How many distinct mails there are, and of how many every copy passed."""

    total: int
    passed: int


class MailCounter:
    """Counts distinct mails as cases come; it keeps 17 bytes of each case, not an object."""

    def __init__(self) -> None:
        # By the first byte, so that what is counted at a time is small, too.
        self._cases: dict[int, bytearray] = {}
        self._counted: DistinctMails | None = None

    def add(self, case: Case) -> None:
        """A case whose mail nobody has looked at, such as a file that cannot be used, is a copy of none."""
        mail = case.shown.mail
        if mail is None:
            of_none = repr((case.shown.position, case.shown.file)).encode(errors="backslashreplace")
            mail = hashlib.blake2b(of_none, digest_size=FINGERPRINT_BYTES).digest()
        cases = self._cases.setdefault(mail[0], bytearray())
        cases += mail
        cases.append(case.passed)
        self._counted = None

    def count(self) -> DistinctMails:
        if self._counted is None:
            total = passed = 0
            for cases in self._cases.values():
                mails: dict[bytes, bool] = {}
                for start in range(0, len(cases), FINGERPRINT_BYTES + 1):
                    end = start + FINGERPRINT_BYTES
                    mail = bytes(cases[start:end])
                    mails[mail] = bool(cases[end]) and mails.get(mail, True)
                total += len(mails)
                passed += sum(mails.values())
            self._counted = DistinctMails(total, passed)
        return self._counted
