import dataclasses
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from mail_servers import MailServers
from scripted_server import ScriptedServer

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail import smtp
from guarantee_email_agent.services.mail.mail_server import MailServer
from guarantee_email_agent.services.mail.smtp import send_mail

US, CUSTOMER = "support@example.com", "customer@example.org"
MAIL = b"From: support@example.com\r\nMessage-ID: <reply-1@example.com>\r\n\r\n.a dot\r\n..two\r\nend\r\n"


def refusal(server: MailServer, message: bytes = MAIL, to: tuple[str, ...] = (CUSTOMER, US)) -> ToolError:
    with pytest.raises(ToolError) as caught:
        send_mail(server, US, to, message)
    return caught.value


@pytest.fixture
def scripted() -> Iterator[Callable[[Mapping[bytes, bytes | None]], MailServer]]:
    """A server that takes everything, except for what is given: the answer by a line, or by its first word."""
    with ExitStack() as stack:

        def start(answers: Mapping[bytes, bytes | None], extensions: bytes = b"") -> MailServer:
            in_data = False

            def answer(line: bytes) -> bytes | None:
                nonlocal in_data
                if in_data:
                    in_data = line != b".\r\n"
                    return b"" if in_data else answers.get(b".", b"250 taken\r\n")
                word = line.split()[0].upper()
                in_data = word == b"DATA" and word not in answers
                usual = {b"EHLO": b"250-hello\r\n" + extensions + b"250 HELP\r\n", b"DATA": b"354 go on\r\n"}
                return answers.get(line.strip(), answers.get(word, usual.get(word, b"250 fine\r\n")))

            server = stack.enter_context(ScriptedServer(b"220 hello\r\n", answer))
            return MailServer("SMTP", "localhost", server.port, "none", None, None)

        yield start


def test_a_mail_arrives_as_it_is(smtp_server: MailServer, mail_servers: MailServers) -> None:
    send_mail(smtp_server, US, [CUSTOMER, US], MAIL)
    mail_servers.wait_until_sent()
    text = MAIL.split(b"\r\n\r\n")[1].replace(b"\r\n", b"\n")
    for received in (*mail_servers.sent_to_customers(), *mail_servers.folder()):
        assert received.replace(b"\r\n", b"\n").split(b"\n\n", 1)[1] == text
    assert (len(mail_servers.sent_to_customers()), len(mail_servers.folder())) == (1, 1)


@pytest.mark.parametrize("order", [("nobody@example.net", US), (US, "nobody@example.net")])
def test_one_refused_recipient_stops_the_mail_to_the_other(
    smtp_server: MailServer, mail_servers: MailServers, order: tuple[str, str]
) -> None:
    error = refusal(smtp_server, to=order)
    assert (error.code, error.retryable, error.uncertain) == ("mail_rejected", False, False)
    assert "refused a recipient at example.net: 550 5.1.1" in error.message
    mail_servers.wait_until_sent()
    assert (mail_servers.folder(), mail_servers.sent_to_customers()) == ([], [])


@pytest.mark.parametrize("step", [b"MAIL", b"RCPT", b"DATA", b"."])
@pytest.mark.parametrize(
    ("answer", "code", "retryable"),
    [
        (b"421 closing\r\n", "mail_unavailable", True),
        (b"552 5.3.4 too large\r\n", "mail_rejected", False),
        (b"530 log in first\r\n", "mail_auth", False),
        (b"rubbish\r\n", "mail_unavailable", True),
        (b"25\r\n", "mail_unavailable", True),
    ],
)
def test_a_no_is_certain_and_what_is_neither_yes_nor_no_is_not_after_the_final_dot(
    scripted: Callable[..., MailServer], step: bytes, answer: bytes, code: str, retryable: bool
) -> None:
    error = refusal(scripted({step: answer}))
    uncertain = step == b"." and answer[0] not in b"45"
    assert (error.code, error.retryable, error.uncertain) == (code, retryable and not uncertain, uncertain)


@pytest.mark.parametrize(
    ("step", "answer", "code"),
    [
        (b"RCPT", b"550 no such user\r\n", "mail_rejected"),
        (b"RCPT", b"450 greylisted\r\n", "mail_recipient_deferred"),
        (b"RCPT", b"450 4.4.1 its server does not answer\r\n", "mail_recipient_deferred"),
        (b"RCPT", b"450 4.2.1 see 4.3.0\r\n", "mail_recipient_deferred"),
        (b"RCPT", b"451 4.3.0 the queue is full\r\n", "mail_unavailable"),
        (b"RCPT", b"451 4.4.3 no name service\r\n", "mail_unavailable"),
        (b"RCPT", b"451 4.4.5 busy\r\n", "mail_unavailable"),
        (b"MAIL", b"450 slow down\r\n", "mail_unavailable"),
        (b"MAIL", b"550 5.4.5 daily limit exceeded\r\n", "mail_unavailable"),
        (b"MAIL", b"553 5.7.1 sender address rejected: not owned by user\r\n", "mail_unavailable"),
        (b"MAIL", b"550 5.6.7 no letters beyond ASCII\r\n", "mail_rejected"),
        (b"DATA", b"554 5.6.0 its content\r\n", "mail_rejected"),
        (b".", b"554 5.7.1 spam\r\n", "mail_rejected"),
        (b".", b"451 try again later\r\n", "mail_deferred"),
        (b".", b"451 4.7.1 greylisted\r\n", "mail_deferred"),
        (b".", b"452 4.3.1 no room\r\n", "mail_unavailable"),
    ],
)
def test_what_is_refused_tells_the_one_mail_from_the_server(
    scripted: Callable[..., MailServer], step: bytes, answer: bytes, code: str
) -> None:
    error = refusal(scripted({step: answer}))
    assert (error.code, error.retryable, error.uncertain) == (code, code == "mail_unavailable", False)


@pytest.mark.parametrize("answer", [b"550 5.1.1 no such user\r\n", b"450 4.2.0 later\r\n"])
@pytest.mark.parametrize("order", [(CUSTOMER, US), (US, CUSTOMER)])
def test_a_refusal_of_our_own_address_is_no_matter_of_the_one_mail(
    scripted: Callable[..., MailServer], answer: bytes, order: tuple[str, ...]
) -> None:
    error = refusal(scripted({b"RCPT TO:<support@example.com>": answer}), to=order)
    assert (error.code, error.retryable, error.uncertain) == ("mail_unavailable", True, False)
    assert "refused a recipient at example.com, which is ourselves" in error.message or answer.startswith(b"4")


@pytest.mark.parametrize("step", [b"EHLO", b"MAIL", b"RCPT", b"DATA", b"."])
def test_a_connection_lost_is_uncertain_after_the_final_dot_only(
    scripted: Callable[..., MailServer], step: bytes
) -> None:
    error = refusal(scripted({step: None}))
    uncertain = step == b"."
    assert (error.code, error.retryable, error.uncertain) == ("mail_unavailable", not uncertain, uncertain)


@pytest.mark.parametrize(("step", "uncertain"), [(b"MAIL", False), (b"DATA", False), (b".", True)])
def test_a_server_that_falls_silent_is_given_up(
    scripted: Callable[..., MailServer], monkeypatch: pytest.MonkeyPatch, step: bytes, uncertain: bool
) -> None:
    monkeypatch.setattr(smtp, "SEND_S", 0.3)
    error = refusal(scripted({step: b""}))
    assert (error.code, error.uncertain) == ("mail_timeout", uncertain)


def test_a_server_that_wants_no_connection_is_told() -> None:
    with ScriptedServer(b"554 go away\r\n", lambda _: b"") as server:
        error = refusal(MailServer("SMTP", "localhost", server.port, "none", None, None))
    assert error.code == "mail_unavailable"
    assert "wants no connection: 554 go away" in error.message


def test_a_server_without_ehlo_is_greeted_the_old_way_and_its_first_digit_counts(
    scripted: Callable[..., MailServer],
) -> None:
    send_mail(scripted({b"EHLO": b"502 unknown\r\n", b".": b"200 taken\r\n"}), US, [CUSTOMER], MAIL)


def test_a_server_that_offers_no_login_is_told(scripted: Callable[..., MailServer]) -> None:
    error = refusal(dataclasses.replace(scripted({}), user="user", password="secret"))
    assert error.code == "mail_auth"
    assert "offers no login here" in error.message


@pytest.mark.parametrize(("methods", "answer"), [(b"PLAIN", b"454 not now\r\n"), (b"CRAM-MD5", b"334 a\r\n")])
def test_a_login_that_fails_for_now_can_be_tried_again(scripted: Any, methods: bytes, answer: bytes) -> None:
    server = scripted({b"AUTH": answer}, extensions=b"250-AUTH " + methods + b"\r\n")
    error = refusal(dataclasses.replace(server, user="user", password="secret"))
    assert (error.code, error.retryable) == ("mail_unavailable", True)


@pytest.mark.parametrize("methods", [b"CRAM-MD5 LOGIN", b"LOGIN", b"PLAIN"])
def test_a_password_that_cannot_be_sent_is_told(scripted: Callable[..., MailServer], methods: bytes) -> None:
    server = scripted({b"AUTH": b"334 \r\n"}, extensions=b"250-AUTH " + methods + b"\r\n")
    password = "half a character \udcff" if methods == b"PLAIN" else "Grüße"
    error = refusal(dataclasses.replace(server, user="user", password=password))
    assert (error.code, error.retryable) == ("mail_auth", False)
    assert "no way to log in with the characters of this user or password" in error.message
