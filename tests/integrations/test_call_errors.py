"""What the words, codes and declarations of a failed call are taken for."""

from __future__ import annotations

from typing import Any

import pytest

from guarantee_email_agent.integrations.call_errors import (
    AUTH,
    FAILED,
    INVALID_ARGUMENT,
    RATE_LIMITED,
    TIMEOUT,
    UNAVAILABLE,
    ErrorKind,
    classify_message,
    classify_protocol_error,
    declared_error,
    service_error,
)


@pytest.mark.parametrize(
    ("words", "kind"),
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
def test_words_tell_what_kind_of_failure_it_is(words: str, kind: ErrorKind) -> None:
    assert classify_message(words) is kind


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
def test_so_do_the_codes_of_the_protocol_and_of_http(code: int, status: int, kind: ErrorKind) -> None:
    assert classify_protocol_error(code, status, "it did not work") is kind


@pytest.mark.parametrize("kind", [RATE_LIMITED, TIMEOUT, UNAVAILABLE])
def test_what_can_heal_is_retryable(kind: ErrorKind) -> None:
    error = service_error("mail", "read_raw", kind)
    assert error.retryable
    assert error.code == f"mail_{kind.type}"
    assert error.message.startswith("mail: read_raw: the service ")


@pytest.mark.parametrize("kind", [AUTH, INVALID_ARGUMENT, FAILED])
def test_what_cannot_is_not(kind: ErrorKind) -> None:
    assert not service_error("mail", "read_raw", kind).retryable


def test_a_declared_error_is_taken_as_it_is() -> None:
    declared = {"code": "mail_rejected", "message": "550: no such user\n", "retryable": False, "uncertain": True}

    error = declared_error("mail", {"error": declared})

    assert error is not None
    assert error.code == "mail_rejected"
    assert error.message == "550: no such user\\n"
    assert error.details == {"retryable": False, "uncertain": True, "outage": False}


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
    error = declared_error("mail", {"error": {"code": code, "message": "x"}})
    assert error is not None
    assert error.details["outage"] is outage


def test_a_server_may_say_so_itself() -> None:
    error = declared_error("mail", {"error": {"code": "mail_timeout", "message": "x", "outage": True}})
    assert error is not None
    assert error.details["outage"] is True


def test_a_foreign_code_is_put_behind_the_services_name() -> None:
    error = declared_error("warranty_api", {"error": {"code": "no_license", "message": "x"}})
    assert error is not None
    assert error.code == "warranty_api_no_license"


@pytest.mark.parametrize(
    "structured",
    [
        None,
        [],
        "error",
        {},
        {"error": "text"},
        {"error": {"code": 7, "message": "x"}},
        {"error": {"code": "Not A Code", "message": "x"}},
        {"error": {"code": "x"}},
    ],
)
def test_anything_else_declares_nothing(structured: Any) -> None:
    assert declared_error("mail", structured) is None
