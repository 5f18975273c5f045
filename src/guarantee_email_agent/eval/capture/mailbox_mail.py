"""Reading one mail of the configured mailbox by its Message-ID; nothing is marked, sent or stored."""

from __future__ import annotations

import asyncio
import os
import re
from dataclasses import replace
from typing import Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.email import MAX_MAIL_BYTES, Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.answer_command import connected
from guarantee_email_agent.services.services import create_mail_client
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import ProcessingError

MESSAGE_ID: Final = re.compile(r"<[^<>\s\"]{1,450}@[^<>\s\"]{1,450}>")


def read_mailbox_mail(message_id: str, config: Config) -> tuple[bytes, Email]:
    """The mail as it came, and parsed. message_id: with its angle brackets.

    Raises ProcessingError where no mail has it, ConfigurationError for what is missing to reach the mailbox,
    MCPConnectionError where it cannot be reached, and IntegrationError for a mail that cannot be read.
    """
    raw = asyncio.run(_read(message_id, config))
    return raw, parse_email(raw)


async def _read(message_id: str, config: Config) -> bytes:
    # To observe is to read only, and asks the server for nothing else.
    config = replace(config, agent=replace(config.agent, mode="observe"))
    client = create_mail_client(config, SystemClock(), os.environ)
    try:
        await connected(client.test_connection())
        mail_id = await client.find_mail(message_id)
        if mail_id is None:
            raise ProcessingError(
                f"No mail of the mailbox has the Message-ID {message_id}. Copy it from the mail's header, or save the "
                "mail as a file",
                "capture_mail_not_found",
            )
        return await client.read_raw(mail_id, MAX_MAIL_BYTES)
    finally:
        await client.close()
