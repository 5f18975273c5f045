"""Names of the folders that mails are moved to where the IMAP server keeps no keywords."""

from __future__ import annotations

from dataclasses import astuple, dataclass
from typing import Literal

from guarantee_email_agent.files.fields import not_blank, setting

MarkKind = Literal["auto", "keywords", "folders"]
"""What says what became of a mail; `auto`: keywords where the server keeps them, else folders."""


def _folder_name(name: str) -> str | None:
    if name != name.strip() or not name.isprintable() or not set("*%").isdisjoint(name):
        return "must be a name without * and %, and without white space around it"
    return not_blank(name)


@dataclass(frozen=True, slots=True)
class MarkFolders:
    """Folders that a mail is moved to by its outcome, where marks are folders; made where they are missing."""

    parent: str = setting("guarantee-email-agent", "Folder that the others lie in.", _folder_name)
    answered: str = setting("Answered", "For mails that got a reply.", _folder_name)
    drafted: str = setting("Drafted", "For mails to which a reply lies among the drafts.", _folder_name)
    handed_over: str = setting("Handed over", "For mails that are a person's.", _folder_name)
    not_answered: str = setting("Not answered", "For mails that must not be answered.", _folder_name)
    quarantined: str = setting("Quarantined", "For mails that failed.", _folder_name)
    unknown: str = setting("Unknown", "For mails to which a reply may have gone out.", _folder_name)

    def __post_init__(self) -> None:
        _, *names = astuple(self)
        if len({name.casefold() for name in names}) < len(names):  # some servers tell no capitals apart
            raise ValueError("has one name for two outcomes; give each a name of its own")
