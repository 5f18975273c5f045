"""A support desk in a folder as the commands for a running agent find it: configuration, Maildir, and a ledger."""

import json
from contextlib import closing
from pathlib import Path
from typing import Any

from guarantee_email_agent.agent.identity_key import identity_key, key_of_location, key_of_mailbox, mailbox_name
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.ledger.ledger import Claim, Ledger
from guarantee_email_agent.ledger.ledger_reader import LedgerReader, LedgerRow
from guarantee_email_agent.ledger.opening import open_ledger
from guarantee_email_agent.services.ports import Outcome

MAIL = b"From: ada@example.com\r\nSubject: Dryer\r\nMessage-ID: <m@example.com>\r\n\r\nSN12345\r\n"
MARKS = {"answered": "a", "handed_over": "b", "quarantined": "c", "unknown": "d"}
_KEYWORDS = "0 $AgentAnswered\n1 $AgentHandedOver\n2 $AgentQuarantined\n3 $AgentUnknown\n"


class SteeredDesk:
    """`config.yaml`, `mailbox` and `ledger.db` in `folder`. One key for each mail, which follows from its name."""

    def __init__(self, folder: Path, **sections: Any) -> None:
        self.folder = folder
        self.inbox = folder / "mailbox"
        for part in ("cur", "new", "tmp"):
            (self.inbox / part).mkdir(parents=True)
        (self.inbox / "dovecot-keywords").write_text(_KEYWORDS)
        settings = {"mailbox": {"from_address": "support@example.com"}, **sections}
        (folder / "config.yaml").write_text(json.dumps(settings))

    @property
    def config(self) -> Config:
        return load_config(self.folder / "config.yaml", environ={}, cwd=self.folder)

    def ledger(self) -> closing[Ledger]:
        return closing(open_ledger(self.config.agent.ledger, key=identity_key(self.config)))

    def receive(self, name: str, raw: bytes = MAIL, mark: str = "") -> None:
        (self.inbox / "cur" / f"{name}:2,{MARKS.get(mark, '')}").write_bytes(raw)

    def location(self, name: str) -> str:
        return key_of_location(mailbox_name(self.config), name, identity_key(self.config))

    def claim(self, ledger: Ledger, name: str, owner: str = "elsewhere:1") -> Claim:
        place, mailbox_key = self.location(name), key_of_mailbox(mailbox_name(self.config), identity_key(self.config))
        claim = ledger.claim(place, location_key=place, owner=owner, lease_s=180, mailbox_key=mailbox_key)
        assert isinstance(claim, Claim)
        return claim

    def ended(self, name: str, outcome: Outcome, reason: str = "", raw: bytes = MAIL) -> str:
        """A mail that the agent marked; its key."""
        self.receive(name, raw, outcome)
        with self.ledger() as ledger:
            claim = self.claim(ledger, name)
            if outcome in ("answered", "unknown"):
                ledger.intend_send(claim, "<reply@example.com>")
            ledger.finish(claim, outcome, reason)
            ledger.marked(self.location(name))
        return self.location(name)

    def row(self, name: str) -> LedgerRow:
        with LedgerReader(self.config.agent.ledger) as reader:
            row = reader.at(self.location(name))
        assert row is not None
        return row

    def mark_of(self, name: str) -> str:
        """What became of a mail, as the mailbox has it."""
        (file,) = [file for part in ("new", "cur") for file in (self.inbox / part).glob(f"{name}*")]
        letters = file.name.partition(":2,")[2]
        return next((mark for mark, letter in MARKS.items() if letter in letters), "")
