"""The mailbox as MCP tools: calls in, results and errors out, and nothing decided here."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeVar

from guarantee_email_agent.mcp_servers.dispatcher import Tool, in_thread
from guarantee_email_agent.mcp_servers.mail.compose import MESSAGE_ID, Reply
from guarantee_email_agent.mcp_servers.mail.mailbox import KEYWORDS, Mailbox
from guarantee_email_agent.mcp_servers.tool_error import ToolError
from guarantee_email_agent.utils.retry import Backoff

MAX_READ_BYTES: Final = 100_000_000
_PROOF_BACKOFF: Final = Backoff(0.25, growth=1.5, longest_s=2.0)
_Result = TypeVar("_Result")

INSTRUCTIONS: Final = (
    "An inbox whose mails are answered one by one. Take mails from list_unprocessed, read them with read_raw, answer "
    "with send_reply, and mark each with what became of it, so that it is not listed again."
)

_MAIL_ID: Final = {"type": "string", "minLength": 1, "maxLength": 300, "description": "id from list_unprocessed"}
_MESSAGE_ID: Final = {
    "type": "string",
    "minLength": 3,
    "maxLength": 902,
    "description": "Message-ID of the reply, with its angle brackets",
}
_COUNT: Final = {"type": "integer", "minimum": 0}


class MailTools:
    """The tools over one mailbox. copy_wait_s: after this many seconds the proof of a sent reply will not come."""

    def __init__(self, mailbox: Mailbox, copy_wait_s: float) -> None:
        self._mailbox = mailbox
        self._copy_wait_s = copy_wait_s

    def tools(self) -> list[Tool]:
        return [
            Tool(
                name="list_unprocessed",
                description="The mails that were not marked yet, oldest first, and how many there are in all.",
                input_schema=_input(limit={"type": "integer", "minimum": 1, "maximum": 10_000, "default": 100}),
                output_schema=_output(
                    messages={
                        "type": "array",
                        "items": _output(id={"type": "string"}, size={**_COUNT, "description": "bytes"}),
                    },
                    total=_COUNT,
                ),
                call=self._list_unprocessed,
                read_only=True,
            ),
            Tool(
                name="read_raw",
                description="One whole mail as it arrived, in base64. It stays unread and unmarked.",
                input_schema=_input(
                    id=_MAIL_ID,
                    max_bytes={
                        "type": "integer",
                        "minimum": 1,
                        "maximum": MAX_READ_BYTES,
                        "default": 25_000_000,
                        "description": "a larger mail is an error, mail_too_large",
                    },
                    required=["id"],
                ),
                output_schema=_output(
                    raw={"type": "string", "description": "the mail (RFC 5322), in base64"},
                    size={**_COUNT, "description": "bytes"},
                ),
                call=self._read_raw,
                read_only=True,
            ),
            Tool(
                name="send_reply",
                description=(
                    "Send a reply in plain text to one address, from this mailbox's own address, marked as an "
                    "automatic reply. A second call with the same message_id sends nothing: already_sent."
                ),
                input_schema=_input(
                    to={"type": "string", "maxLength": 320, "description": "one bare address: customer@example.org"},
                    subject={"type": "string", "maxLength": 998},
                    body={"type": "string", "maxLength": 200_000, "description": "plain text"},
                    message_id=_MESSAGE_ID,
                    in_reply_to={
                        "type": "string",
                        "maxLength": 2_000,
                        "default": "",
                        "description": "Message-ID of the mail answered; a malformed one is left out",
                    },
                    references={
                        "type": "string",
                        "maxLength": 60_000,
                        "default": "",
                        "description": "Message-IDs of the thread so far, with spaces between",
                    },
                    headers={
                        "type": "object",
                        "additionalProperties": {"type": "string", "maxLength": 2_000},
                        "default": {},
                        "description": "further headers: Precedence and X-…",
                    },
                    required=["to", "subject", "body", "message_id"],
                ),
                output_schema=_output(
                    message_id={"type": "string"}, status={"type": "string", "enum": ["sent", "already_sent"]}
                ),
                call=self._send_reply,
            ),
            Tool(
                name="find_sent",
                description=(
                    "Whether a reply was sent, by its Message-ID: sent, not_sent, or unknown where nothing proves "
                    "either. The proof may take a while after the reply itself; wait_s waits for it."
                ),
                input_schema=_input(
                    message_id=_MESSAGE_ID,
                    wait_s={"type": "number", "minimum": 0, "maximum": 600, "default": 0, "description": "seconds"},
                    required=["message_id"],
                ),
                output_schema=_output(state={"type": "string", "enum": ["sent", "not_sent", "unknown"]}),
                call=self._find_sent,
                read_only=True,
                interruptible=True,
            ),
            Tool(
                name="mark",
                description="Say what became of a mail. It is no longer listed; whether it was read stays as it is.",
                input_schema=_input(
                    id=_MAIL_ID, outcome={"type": "string", "enum": list(KEYWORDS)}, required=["id", "outcome"]
                ),
                output_schema=_output(),
                call=self._mark,
            ),
            Tool(
                name="tally",
                description="How many mails of the inbox are unprocessed, and how many were marked with each outcome.",
                input_schema=_input(),
                output_schema=_output(unprocessed=_COUNT, **dict.fromkeys(KEYWORDS, _COUNT)),
                call=self._tally,
                read_only=True,
            ),
            Tool(
                name="wait_for_mail",
                description="Wait until the inbox may hold something new, at most timeout_s. List it then.",
                input_schema=_input(
                    timeout_s={"type": "number", "minimum": 0, "maximum": 3600, "description": "seconds"},
                    required=["timeout_s"],
                ),
                output_schema=_output(changed={"type": "boolean"}),
                call=self._wait_for_mail,
                read_only=True,
                interruptible=True,
            ),
            Tool(
                name="test_connection",
                description="Try the inbox, the folder for sent mail and the way to send, without sending anything.",
                input_schema=_input(),
                output_schema=_output(mailbox={"type": "string"}),
                call=self._test_connection,
                read_only=True,
            ),
        ]

    async def _list_unprocessed(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        listing = await in_thread(self._mailbox.list_unprocessed, arguments["limit"])
        messages = [{"id": entry.id, "size": entry.size} for entry in listing.entries]
        return {"messages": messages, "total": listing.total}

    async def _read_raw(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        def read() -> Mapping[str, Any]:
            raw = self._mailbox.read_raw(arguments["id"], arguments["max_bytes"])
            return {"raw": base64.b64encode(raw).decode("ascii"), "size": len(raw)}

        return await in_thread(read)

    async def _send_reply(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        reply = Reply(**arguments)
        status = await in_thread(self._mailbox.send, reply)
        return {"message_id": reply.message_id, "status": status}

    async def _find_sent(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        if not MESSAGE_ID.fullmatch(arguments["message_id"]):
            text = "find_sent: message_id is no Message-ID of the form <text@domain>"
            raise ToolError("mail_invalid_argument", text)
        wait_s = min(arguments["wait_s"], self._copy_wait_s) if self._mailbox.proof_lags else 0
        deadline = time.monotonic() + wait_s
        attempt = 0
        while True:
            state = await in_thread(self._mailbox.find_sent, arguments["message_id"])
            left = deadline - time.monotonic()
            if state == "sent" or left <= 0:
                return {"state": state}
            attempt += 1
            await asyncio.sleep(min(_PROOF_BACKOFF.delay_s(attempt), left))

    async def _mark(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        await in_thread(self._mailbox.mark, arguments["id"], arguments["outcome"])
        return {}

    async def _tally(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        return await in_thread(self._mailbox.tally)

    async def _wait_for_mail(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        stop = threading.Event()
        try:
            return {"changed": await _in_own_thread(partial(self._mailbox.wait, arguments["timeout_s"], stop))}
        finally:
            stop.set()

    async def _test_connection(self, _: Mapping[str, Any]) -> Mapping[str, Any]:
        return {"mailbox": await in_thread(self._mailbox.test_connection)}


async def _in_own_thread(work: Callable[[], _Result]) -> _Result:
    """The result of `work`, in a thread that takes no other call's place, and that the end of the process cuts off."""
    loop = asyncio.get_running_loop()
    result: asyncio.Future[_Result] = loop.create_future()

    def settle(settler: Callable[[], None]) -> None:
        if not result.done():
            settler()

    def run() -> None:
        try:
            outcome = work()
        except Exception as error:  # noqa: BLE001 - raised where it is awaited
            settler = partial(result.set_exception, error)
        else:
            settler = partial(result.set_result, outcome)
        with suppress(RuntimeError):  # the server has stopped meanwhile
            loop.call_soon_threadsafe(settle, settler)

    threading.Thread(target=run, daemon=True, name="wait").start()
    return await result


def _input(*, required: list[str] | None = None, **properties: Mapping[str, Any]) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "object", "properties": properties, "additionalProperties": False}
    return {**schema, "required": required} if required else schema


def _output(**properties: Mapping[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": list(properties)}
