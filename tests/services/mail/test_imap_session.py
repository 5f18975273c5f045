from collections.abc import Iterator, Mapping
from contextlib import ExitStack

import pytest
from scripted_server import ScriptedServer

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail import imap_session
from guarantee_email_agent.services.mail.imap_session import ImapSession
from guarantee_email_agent.services.mail.mail_server import MailServer


class Scripted:
    """A session with a server that says yes to everything, except for what is given: the answer by the command."""

    def __init__(self, stack: ExitStack) -> None:
        self._stack = stack
        self.heard: list[str] = []
        self.told: list[object] = []
        self.password = "secret"

    def __call__(
        self, answers: Mapping[str, bytes | None] | None = None, greeting: bytes = b"* OK [CAPABILITY IMAP4rev1] hi\r\n"
    ) -> ImapSession:
        def answer(line: bytes) -> bytes | None:
            tag, command = line.split()[:2]
            self.heard.append(command.decode())
            told = (answers or {}).get(command.decode(), b"OK done")
            if told is None or told == b"":
                return told
            more = {b"CAPABILITY": b"* CAPABILITY IMAP4rev1\r\n", b"NOOP": b"* 3 EXISTS\r\n"}.get(command, b"")
            return more + tag + b" " + told + b"\r\n"

        server = self._stack.enter_context(ScriptedServer(greeting, answer))
        where = MailServer("IMAP", "localhost", server.port, "none", "user", self.password)
        session = ImapSession(where, lambda _: None, self.told.extend)
        self._stack.callback(session.close)
        return session


@pytest.fixture
def scripted() -> Iterator[Scripted]:
    with ExitStack() as stack:
        yield Scripted(stack)


def refusal(session: ImapSession, *, repeat: bool = True) -> ToolError:
    with pytest.raises(ToolError) as caught:
        session.run(lambda client: client.noop(), repeat=repeat)
    return caught.value


@pytest.mark.parametrize(
    ("command", "response", "code", "retryable", "told"),
    [
        ("LOGIN", b"NO [UNAVAILABLE] the user database is down", "mail_unavailable", True, "user database is down"),
        ("LOGIN", b"NO [LIMIT] too many sessions", "mail_unavailable", True, "command: [LIMIT] too many sessions"),
        ("LOGIN", b"NO [AUTHENTICATIONFAILED] no", "mail_auth", False, "Check the user and IMAP_PASSWORD"),
        ("LOGIN", None, "mail_unavailable", True, "broke"),
        ("NOOP", b"NO [OVERQUOTA] Quota exceeded", "mail_disk_full", True, "has no room left"),
        ("NOOP", b"NO not today", "mail_unavailable", True, "not today"),
    ],
)
def test_a_refusal_tells_what_to_do(
    scripted: Scripted, command: str, response: bytes | None, code: str, retryable: bool, told: str
) -> None:
    error = refusal(scripted({command: response}))
    assert (error.code, error.retryable) == (code, retryable)
    assert told in error.message


def test_a_password_beyond_ascii_needs_a_server_with_plain(scripted: Scripted) -> None:
    scripted.password = "Grüße"
    error = refusal(scripted())
    assert (error.code, error.retryable) == ("mail_auth", False)
    assert "no way to log in with the characters of this user or password" in error.message
    assert "LOGIN" not in scripted.heard


@pytest.mark.parametrize(
    ("answer", "repeat", "code", "tries"),
    [
        pytest.param(b"BAD what", True, "mail_unavailable", 1, id="refused"),
        pytest.param(None, True, "mail_unavailable", 2, id="lost"),
        pytest.param(None, False, "mail_unavailable", 1, id="lost, not to be repeated"),
        pytest.param(b"", True, "mail_timeout", 1, id="silent"),
    ],
)
def test_only_work_on_a_lost_connection_is_tried_once_more(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, answer: bytes | None, repeat: bool, code: str, tries: int
) -> None:
    if answer == b"":
        monkeypatch.setattr(imap_session, "STEP_S", 0.3)
    session = scripted({"NOOP": answer})
    error = refusal(session, repeat=repeat)
    assert (error.code, error.retryable) == (code, True)
    assert scripted.heard.count("NOOP") == tries
    session.run(lambda _: None)  # after a refusal, too, since its folder may be another by now
    assert scripted.heard.count("LOGIN") == tries + 1


@pytest.mark.parametrize("greeting", [b"* BYE too many connections\r\n", b"HTTP/1.1 400 Bad Request\r\n"])
def test_a_server_that_is_none_or_wants_nobody_is_told(scripted: Scripted, greeting: bytes) -> None:
    assert refusal(scripted(greeting=greeting)).code == "mail_unavailable"


@pytest.mark.parametrize(("answer", "logins", "told"), [(b"OK done", 1, [(3, b"EXISTS")]), (None, 2, [])])
def test_a_connection_unused_for_long_is_tested_first_and_what_the_server_tells_then_is_heard(
    scripted: Scripted, monkeypatch: pytest.MonkeyPatch, answer: bytes | None, logins: int, told: list[object]
) -> None:
    monkeypatch.setattr(imap_session, "_FRESH_S", 0.0)
    session = scripted({"NOOP": answer})
    session.run(lambda _: None)
    assert "NOOP" not in scripted.heard
    session.run(lambda _: None)
    assert (scripted.heard.count("NOOP"), scripted.heard.count("LOGIN"), scripted.told) == (1, logins, told)
