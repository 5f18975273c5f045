"""Scenarios whose mail is given as raw bytes: the agent gets them, and the scenario says how they are to be read."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import BUILT_IN, ScenarioFolder

from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.served_mocks import raw_mail
from guarantee_email_agent.utils.errors import EvalError

RAW = (
    "From: Jane <jane@example.com>\r\n"
    "Subject: =?iso-8859-1?Q?Trockner_f=FCr_die_K=FCche?=\r\n"
    "Date: Sun, 18 Jan 2026 11:00:00 +0100\r\n"
    "Message-ID: <mine@example.com>\r\n"
    "MIME-Version: 1.0\r\n"
    'Content-Type: multipart/mixed; boundary="b"\r\n'
    "\r\n"
    "--b\r\n"
    "Content-Type: text/plain; charset=iso-8859-1\r\n"
    "Content-Transfer-Encoding: 8bit\r\n"
    "\r\n"
    "Mein Trockner mit der Seriennummer SN12345 l\u00e4uft nicht.\r\n"
    "--b\r\n"
    "Content-Type: image/jpeg\r\n"
    'Content-Disposition: attachment; filename="foto.jpg"\r\n'
    "\r\n"
    "x\r\n"
    "--b--\r\n"
).encode("iso-8859-1")
MAIL: dict[str, Any] = {
    "subject": "Trockner für die Küche",
    "body": "Mein Trockner mit  der Seriennummer SN12345 läuft nicht.\n\n",
    "from": "jane@example.com",
    "received": "2026-01-18T10:00:00Z",
    "attachments": ["foto.jpg"],
    "raw_file": "valid_warranty_001.eml",
}


@pytest.fixture
def folder(tmp_path: Path) -> ScenarioFolder:
    folder = ScenarioFolder(tmp_path / "scenarios", BUILT_IN)
    (folder.folder / "valid_warranty_001.eml").write_bytes(RAW)
    return folder


ANSWERED = {"message_id": "<reply@example.com>", "scenario": "missing-info"}


def write(folder: ScenarioFolder, previous_reply: dict[str, Any] | None = None, **changes: Any) -> Path:
    path = folder.folder / "valid_warranty_001.yaml"
    scenario: dict[str, Any] = {
        "scenario_id": "valid_warranty_001",
        "description": "A mail in an old charset, with a photo",
        "category": "valid-warranty",
        "created": "2026-01-18",
        "input": {"email": MAIL | changes, "mock_responses": {"warranty_api": {"status": "valid"}}},
        "expected_output": {
            "email_sent": True,
            "ticket_created": True,
            "ticket_fields": {"serial_number": "SN12345"},
            "scenario_instruction_used": "valid-warranty",
        },
    }
    if previous_reply is not None:
        scenario["input"]["previous_reply"] = previous_reply
    path.write_text(json.dumps(scenario), encoding="utf-8")
    return path


def load(folder: ScenarioFolder, previous_reply: dict[str, Any] | None = None, **changes: Any) -> EvalTestCase:
    return EvalLoader().load_eval_test_case(write(folder, previous_reply, **changes))


def failures(folder: ScenarioFolder, previous_reply: dict[str, Any] | None = None, **changes: Any) -> list[str]:
    result = asyncio.run(EvalRunner(folder.config).run_test_case(load(folder, previous_reply, **changes)))
    return [failure.partition("\n")[0] for failure in result.failures]


def test_the_agent_gets_the_bytes_as_they_are(folder: ScenarioFolder) -> None:
    assert failures(folder) == []
    assert raw_mail(load(folder)) == RAW


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("subject", "Trockner"),
        ("body", "Mein Trockner mit der Seriennummer SN12345 läuft."),
        ("body", "Mein Trockner mit der\nSeriennummer SN12345 läuft nicht."),
        ("from", "jane@example.org"),
        ("received", "2026-01-18T11:00:00Z"),
        ("attachments", []),
    ],
)
def test_what_is_read_otherwise_than_the_scenario_says_fails(folder: ScenarioFolder, key: str, value: object) -> None:
    assert f"raw_file: {key} of valid_warranty_001.eml reads otherwise" in failures(folder, **{key: value})


def test_a_file_that_is_no_mail_fails(folder: ScenarioFolder) -> None:
    (folder.folder / "valid_warranty_001.eml").write_bytes(b"\r\nHello\r\n")
    assert any(failure.startswith("raw_file: valid_warranty_001.eml cannot be read: ") for failure in failures(folder))


def test_a_raw_mail_may_answer_our_reply(folder: ScenarioFolder) -> None:
    raw = b"References: <first@example.com>\r\n <reply@example.com>\r\n" + RAW
    (folder.folder / "valid_warranty_001.eml").write_bytes(raw)
    assert failures(folder, ANSWERED) == []
    # So the reply is known: a second follow-up is left to a person.
    assert failures(folder, ANSWERED | {"follow_ups": 2}) != []


def test_a_raw_mail_that_does_not_answer_our_reply_fails(folder: ScenarioFolder) -> None:
    assert failures(folder, ANSWERED) == [
        "raw_file: valid_warranty_001.eml does not answer previous_reply by In-Reply-To or References"
    ]


@pytest.mark.parametrize("key", ["headers", "to"])
def test_what_the_raw_mail_has_in_itself_is_not_said_again(folder: ScenarioFolder, key: str) -> None:
    value = {"Precedence": "bulk"} if key == "headers" else "service@example.com"
    with pytest.raises(EvalError, match=f"input.email.{key} .*stands in valid_warranty_001.eml itself"):
        load(folder, **{key: value})


def test_a_raw_mail_that_is_too_large_cannot_be_used(folder: ScenarioFolder) -> None:
    (folder.folder / "valid_warranty_001.eml").write_bytes(RAW + b"x" * (1 << 20))
    with pytest.raises(EvalError, match=r"Mail cannot be used: valid_warranty_001\.eml: ") as caught:
        load(folder)
    assert caught.value.code == "eval_mail_unreadable"
