"""How a failed call is classified by its message, its codes, or what the server declares."""

import pickle
from typing import Any

import pytest

from guarantee_email_agent.instructions.look_up import WARRANTY
from guarantee_email_agent.services.call_errors import (
    AUTH,
    FAILED,
    INVALID_ARGUMENT,
    RATE_LIMITED,
    TIMEOUT,
    UNAVAILABLE,
    ErrorKind,
    MalformedAnswerError,
    ToolError,
    classify_message,
    classify_protocol_error,
    declared_error,
    integration_error,
    readable,
    service_error,
    without_arguments,
)
from guarantee_email_agent.services.look_up_answer import parse_look_up_answer
from guarantee_email_agent.utils.errors import IntegrationError


@pytest.mark.parametrize(
    ("message", "kind"),
    [
        ("Rate limit exceeded", RATE_LIMITED),
        ("Quota exceeded for quota metric 'Queries'", RATE_LIMITED),
        ("Too many concurrent requests for user.", RATE_LIMITED),
        ("HTTP 429", RATE_LIMITED),
        ("403: rate limit exceeded", RATE_LIMITED),
        ("invalid_grant", AUTH),
        ("Invalid Credentials", AUTH),
        ("Request had insufficient authentication scopes.", AUTH),
        ("The access token has expired", AUTH),
        ("Forbidden", AUTH),
        ("request to /api failed with status 401", AUTH),
        ("The operation timed out", TIMEOUT),
        ("upstream request timeout", TIMEOUT),
        ("Gateway Timeout (504)", TIMEOUT),
        ("connect ECONNREFUSED 127.0.0.1:443", UNAVAILABLE),
        ("getaddrinfo ENOTFOUND gmail.googleapis.com", UNAVAILABLE),
        ("Connection reset by peer", UNAVAILABLE),
        ("503 Service Unavailable", UNAVAILABLE),
        ("Temporary failure, please try again", UNAVAILABLE),
        ("serial number SN-4290 is malformed", FAILED),
        ("no such device", FAILED),
        ("", FAILED),
    ],
)
def test_a_message_is_classified_by_its_words(message: str, kind: ErrorKind) -> None:
    assert classify_message(message) is kind


@pytest.mark.parametrize(
    ("said", "arguments", "kind"),
    [
        ("Device SN-429-77 not found", {"serial": "SN-429-77"}, FAILED),
        ("device sn 429 77 not found", {"serial": "SN-429-77"}, FAILED),
        ("Device 429 not found", {"serial": "00429"}, FAILED),
        ("nobody has SN-503", {"filter": {"any": ["SN-503"]}}, FAILED),
        ("no mail for ada@unavailable.example", {"to": "ada@unavailable.example"}, FAILED),
        ("SN-429-77: quota exceeded", {"serial": "SN-429-77"}, RATE_LIMITED),
        ("503 Bad answer", {"serial": "5"}, UNAVAILABLE),
        ("error 503", {"serial": "SN-50"}, UNAVAILABLE),
        ("the token has expired", {"warranty_status": "expired"}, AUTH),
        ("no device", {"serial": "---", "limit": 5}, FAILED),
    ],
)
def test_what_a_service_repeats_of_a_request_is_no_failure_of_it(
    said: str, arguments: dict[str, object], kind: ErrorKind
) -> None:
    assert classify_message(without_arguments(said, arguments)) is kind


@pytest.mark.parametrize(
    ("code", "status", "kind"),
    [
        (0, 401, AUTH),
        (0, 403, AUTH),
        (0, 429, RATE_LIMITED),
        (0, 500, UNAVAILABLE),
        (0, 503, UNAVAILABLE),
        (0, 504, TIMEOUT),
        (-32601, 0, INVALID_ARGUMENT),
        (-32602, 400, INVALID_ARGUMENT),
        (-32603, 0, FAILED),
    ],
)
def test_codes_of_the_protocol_and_of_http_are_classified(code: int, status: int, kind: ErrorKind) -> None:
    assert classify_protocol_error(code, status, "it did not work") is kind


@pytest.mark.parametrize("kind", [RATE_LIMITED, TIMEOUT, UNAVAILABLE, AUTH, INVALID_ARGUMENT, FAILED])
def test_what_can_heal_is_retryable(kind: ErrorKind) -> None:
    error = service_error("mail", "read_raw", kind)
    assert error.retryable is (kind in (RATE_LIMITED, TIMEOUT, UNAVAILABLE))
    assert error.code == f"mail_{kind.type}"
    assert error.message.startswith("mail: read_raw: the service ")


def declared(name: str, **fields: object) -> IntegrationError:
    error = declared_error(name, {"error": {"message": "x", **fields}})
    assert error is not None
    return error


def test_a_declared_error_is_taken_as_it_is() -> None:
    error = declared("mail", code="mail_rejected", message="550: no such user\n", retryable=False, uncertain=True)
    assert error.code == "mail_rejected"
    assert error.message == "550: no such user\\n"
    assert (error.retryable, error.uncertain, error.outage) == (False, True, False)
    assert declared("mail", code="mail_timeout", outage=True).outage is True
    assert declared("warranty_api", code="no_license").code == "warranty_api_no_license"


@pytest.mark.parametrize(
    ("code", "outage"),
    [
        ("mail_unavailable", True),
        ("mail_auth", True),
        ("mail_disk_full", True),
        ("mail_tls", True),
        ("mail_folder_missing", True),
        ("mail_rate_limited", True),
        ("mail_timeout", False),
        ("mail_not_found", False),
    ],
)
def test_codes_tell_whether_the_whole_service_is_down(code: str, outage: bool) -> None:
    assert declared("mail", code=code).outage is outage


@pytest.mark.parametrize(
    "structured",
    [None, [], "error", {}]
    + [{"error": error} for error in ("text", {"code": 7, "message": "x"}, {"code": "Not A Code", "message": "x"})]
    + [{"error": {"code": "x"}}],
)
def test_anything_else_declares_nothing(structured: Any) -> None:
    assert declared_error("mail", structured) is None


pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "bad",
    [
        {"status": "valid", "expiration_date": ["of Ms Doe"]},
        {"status": "valid", "coverage": 2},
        {"status": 1},
        {"status": None},
        {"status": "valid", "expiration_date": "x" * 1_000_000},
        [{"status": "valid"}],
        None,
        MalformedAnswerError("warranty_api", "check_warranty", "is no JSON object"),
    ],
    ids=lambda bad: str(bad)[:40],
)
async def test_a_bad_answer_names_service_tool_and_field_and_no_word_of_it(
    bad: object, caplog: pytest.LogCaptureFixture
) -> None:
    async def call() -> object:
        if isinstance(bad, Exception):
            raise bad
        return bad

    with pytest.raises(IntegrationError) as raised:
        await readable("warranty_api", "check_warranty", call, lambda raw: parse_look_up_answer(raw, WARRANTY))
    assert raised.value.code == "warranty_api_malformed"
    assert raised.value.message.startswith("warranty_api: the answer of check_warranty ")
    assert caplog.messages == [raised.value.message]
    assert "Doe" not in caplog.text


async def test_an_error_of_another_kind_is_passed_on() -> None:
    down = integration_error("warranty_api", TIMEOUT, "slow")

    async def call() -> object:
        raise down

    with pytest.raises(IntegrationError) as raised:
        await readable("warranty_api", "check_warranty", call, lambda _: None)
    assert raised.value is down


def test_an_error_keeps_what_it_says_between_processes() -> None:
    error = pickle.loads(pickle.dumps(ToolError("tickets_locked", "it is locked", retryable=True)))
    assert (error.code, error.message, error.retryable) == ("tickets_locked", "it is locked", True)
