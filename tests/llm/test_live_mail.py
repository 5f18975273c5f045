"""A mail from end to end with the real SDK, a socket, and an API at the other end that misbehaves."""

import asyncio
import json
from typing import Any

import pytest
from messages_server import (
    INTERPRETED,
    USAGE,
    MessagesServer,
    Reply,
    answer,
    anthropic_config,
    completion,
    error_reply,
    openai_config,
    text,
    tool_call,
)
from mocked_desk import desk as mocked_desk
from mocked_desk import mail
from shipped_instructions import shipped_interpreter

from guarantee_email_agent.email.processor_models import ModelSettings, ProcessingResult
from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.llm.prompts import CHOICE_TOOL, TRIAGE_TOOL
from guarantee_email_agent.llm.provider import language_model
from guarantee_email_agent.llm.usage import MeteredModel
from guarantee_email_agent.utils.clock import SkippingClock

MAIL = mail("My dryer with serial number SN12345 is broken. My secret word is marzipan.")


class LiveDesk:
    """The agent between its mocks, with a live model."""

    def __init__(self, server: MessagesServer) -> None:
        self.server = server
        self.timeout_s = 0.5
        self.config = anthropic_config
        self.desk = mocked_desk()
        self.tokens = TokenUsage()
        self.cost_usd: float | None = 0.0

    def process(self, *, budget_s: float = 60.0) -> ProcessingResult:
        """Raises TimeoutError where the mail takes longer than its budget."""
        config = self.config(self.server.url, timeout_s=self.timeout_s)

        async def one_mail() -> ProcessingResult:
            model = language_model(config, SkippingClock(), shipped_interpreter())
            self.desk.mocks["anthropic"] = meter = MeteredModel(model)
            self.desk.model = ModelSettings(config.llm.model, config.llm.max_tokens)
            try:
                async with asyncio.timeout(budget_s):
                    return await self.desk.processor().process_email(MAIL)
            finally:
                self.tokens, self.cost_usd = meter.usage, meter.cost_usd
                await model.aclose()

        return asyncio.run(one_mail())

    @property
    def sent(self) -> list[dict[str, Any]]:
        return self.desk.sent

    @property
    def tickets(self) -> list[dict[str, Any]]:
        return self.desk.tickets


@pytest.fixture
def desk(server: MessagesServer) -> LiveDesk:
    return LiveDesk(server)


def test_a_mail_is_answered_with_two_calls_and_counted(desk: LiveDesk) -> None:
    result = desk.process()

    assert (result.success, result.scenario_used) == (True, "valid-warranty")
    assert "2031-02-03" in desk.sent[0]["body"]
    assert desk.server.tools_asked_for == [TRIAGE_TOOL, CHOICE_TOOL]
    assert desk.tokens == TokenUsage(24, 10, 14, 6)
    assert desk.cost_usd == pytest.approx((24 * 3 + 10 * 15 + 14 * 0.3 + 6 * 3.75) / 1_000_000)
    assert set(USAGE.values()) == {12, 5, 7, 3}


@pytest.mark.parametrize(
    ("reply", "code"),
    [
        (INTERPRETED, None),
        (completion(tool_call(CHOICE_TOOL, {"ids": []}), usage=None), None),
        (completion(ending="stop", refusal="I cannot"), "llm_refused"),
        (completion(tool_call(CHOICE_TOOL, {}), ending="length"), "llm_truncated"),
    ],
    ids=["whole", "unknown usage", "refusal", "cut off"],
)
def test_a_server_of_chat_completions_answers_a_mail_or_nobody_does(
    desk: LiveDesk, reply: Reply, code: str | None
) -> None:
    desk.config = openai_config
    desk.server.replies = [INTERPRETED, reply]
    result = desk.process()
    assert (result.error_code, len(desk.sent), len(desk.tickets)) == ((code, 0, 0) if code else (None, 1, 1))
    assert (desk.tokens.uncounted, desk.cost_usd is None) == (
        (1, True) if b'"usage": null' in reply.body else (0, False)
    )


def test_the_instructions_are_marked_for_the_prompt_cache_and_the_same_for_every_mail(desk: LiveDesk) -> None:
    desk.process()
    LiveDesk(desk.server).process()

    triage, choice, *again = desk.server.requests
    assert [(each["tools"], each["system"]) for each in again] == [
        (each["tools"], each["system"]) for each in (triage, choice)
    ]
    ephemeral = {"type": "ephemeral"}
    assert [block["cache_control"] for block in triage["system"]] == [ephemeral]
    assert [block["cache_control"] for block in choice["system"]] == [ephemeral, ephemeral]
    for request in desk.server.requests:
        # At most four breakpoints are allowed; the tools stand before the first one, so they are cached with it.
        assert json.dumps(request).count('"cache_control"') == len(request["system"]) <= 4
        assert "marzipan" not in json.dumps(request["system"]) + json.dumps(request["tools"])


PART = b'{"id": "msg_1", "content": [{"type": "tool'
FAILURES: dict[str, tuple[Reply, str, str]] = {
    "429": (error_reply(429, "Too many", retry_after="2"), "llm_rate_limited", "HTTP 429: Too many"),
    "500": (error_reply(500), "llm_unavailable", "HTTP 500"),
    "529": (error_reply(529, "Overloaded"), "llm_overloaded", "HTTP 529: Overloaded"),
    "slow": (Reply(b"", hangs=True), "llm_timeout", "no answer within 0.5 s"),
    "truncated": (Reply(PART), "llm_bad_answer", "no message"),
    "not in UTF-8": (Reply(PART + b"\xff\xfe"), "llm_bad_answer", "no message"),
    "reset": (Reply(PART, length=4000, resets=True), "llm_unreachable", "broke off its answer"),
    "html": (Reply(b"<html>Sign in", headers={"content-type": "text/html"}), "llm_bad_answer", "no message"),
}


@pytest.mark.parametrize(
    ("wrong", "objection"),
    [
        (answer(text("The topic is warranty."), stop_reason="end_turn"), "It was text, and no call of the tool."),
        (answer(tool_call(TRIAGE_TOOL, None)), "The input of the call does not fit the tool's schema."),
    ],
    ids=["text", "no input"],
)
def test_an_answer_in_another_shape_is_asked_for_once_more(desk: LiveDesk, wrong: Reply, objection: str) -> None:
    desk.server.replies = [wrong, INTERPRETED]
    assert desk.process().success
    first, second = (request["messages"][0]["content"] for request in desk.server.requests[:2])
    assert second == f'{first}\n<objections-to-your-last-answer>\n["{objection}"]\n</objections-to-your-last-answer>'


@pytest.mark.parametrize(("reply", "code", "says"), FAILURES.values(), ids=FAILURES)
def test_what_goes_on_is_an_error_after_three_attempts(
    desk: LiveDesk, reply: Reply, code: str, says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("guarantee_email_agent.llm.rate_limit.JITTER_SHARE", 0.0)
    desk.server.replies = [INTERPRETED, reply]

    result = desk.process()

    assert (result.success, result.failed_step, result.error_code) == (False, "draft", code)
    assert says in str(result.error_message)
    assert (desk.sent, desk.tickets) == ([], [])
    # A refusal for now is no attempt: until a quarter of the mail's time is waited, it is asked again.
    assert len(desk.server.requests) == 1 + {"llm_rate_limited": 8, "llm_overloaded": 5}.get(code, 3)


def test_the_mails_budget_ends_a_call_and_sends_nothing(desk: LiveDesk) -> None:
    desk.timeout_s = 15
    desk.server.replies = [Reply(b"", hangs=True)]
    with pytest.raises(TimeoutError):
        desk.process(budget_s=0.5)
    assert (desk.sent, desk.tickets) == ([], [])
