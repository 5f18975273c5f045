from __future__ import annotations

import pytest

from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.parsing.parse import parse_email
from guarantee_email_agent.eval.dry_run import UNKNOWN_SCENARIO, reply_of_thread, with_previous_reply
from guarantee_email_agent.eval.models import PreviousReply
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.services.ports import Thread
from guarantee_email_agent.utils.errors import ConfigurationError


def answer(headers: str = "") -> Email:
    return parse_email(f"From: ada@example.com\nSubject: Re: Dryer\n{headers}\nHere it is.\n".encode())


def test_the_reply_is_the_nearest_mail_that_this_one_answers(instructions: Instructions) -> None:
    email = answer("References: <first@a.example> <ours@b.example>\nIn-Reply-To: <ours@b.example>\n")
    reply, same = with_previous_reply("missing-info:WEB-00017", email, instructions.scenarios)
    assert reply == PreviousReply("<ours@b.example>", "missing-info", "WEB-00017")
    assert same == email


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("missing-inf", "no scenario 'missing-inf' sends a reply – did you mean 'missing-info'?"),
        ("no-reply", "no scenario 'no-reply' sends a reply; those that do are "),
        ("", "no scenario '' sends a reply; those that do are "),
        ("missing-info:", "'' is no ticket number. Write it as missing-info:WEB-00017, or leave it out"),
        ("missing-info:a b", "'a b' is no ticket number"),
    ],
)
def test_what_is_no_reply_of_ours_is_told(text: str, message: str, instructions: Instructions) -> None:
    with pytest.raises(ConfigurationError) as caught:
        with_previous_reply(text, answer(), instructions.scenarios)
    assert message in caught.value.message


@pytest.mark.parametrize(("code", "name"), [("missing_info", "missing-info"), ("gone_since", UNKNOWN_SCENARIO)])
def test_a_reply_that_the_ledger_knows(code: str, name: str, instructions: Instructions) -> None:
    thread = Thread("k", code, "WEB-1", "<ours@b.example>", replied_at=0.0, replies=2, follow_ups=1)
    reply = reply_of_thread(thread, instructions.scenarios)
    assert reply == PreviousReply("<ours@b.example>", name, "WEB-1", follow_ups=1)
