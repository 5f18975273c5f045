"""Forms, as clients send them."""

from __future__ import annotations

import pytest

from guarantee_email_agent.sandbox.inside.api_request import InvalidArgumentError
from guarantee_email_agent.sandbox.inside.files import form_fields

KIND = "multipart/form-data; boundary=XX"


def _part(header: str, content: bytes) -> bytes:
    return b"--XX\r\n" + header.encode() + b"\r\n\r\n" + content + b"\r\n"


def test_fields_and_files_are_told_apart() -> None:
    body = _part('Content-Disposition: form-data; name="path"', b"/tmp/x") + _part(
        'Content-Disposition: form-data; name="file"; filename="a b.bin"\r\nContent-Type: x/y', b"\0\r\n--X\r\n\xff"
    )
    assert form_fields(KIND, body + b"--XX--\r\n") == {
        "path": ("", b"/tmp/x"),
        "file": ("a b.bin", b"\0\r\n--X\r\n\xff"),
    }


@pytest.mark.parametrize(
    ("kind", "body"),
    [("application/json", b"{}"), ("multipart/form-data", b""), (KIND, b"--XX\r\nno header\r\n--XX--\r\n")],
)
def test_what_is_no_form_is_refused(kind: str, body: bytes) -> None:
    with pytest.raises(InvalidArgumentError):
        form_fields(kind, body)


def test_a_form_without_parts_has_no_fields() -> None:
    assert form_fields(KIND, b"--XX--\r\n") == {}
