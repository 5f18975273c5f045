"""What a model that fails does to the calls after it, over the real SDK and a socket."""

import logging
from collections.abc import AsyncIterator
from dataclasses import replace
from functools import cached_property
from typing import Any

import pytest
from messages_server import INTERPRETED, MessagesServer, Reply, answer, anthropic_config, error_reply, text, tool_call
from shipped_instructions import shipped_interpreter

from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.llm.port import OFFLINE_MODEL, ClosableModel
from guarantee_email_agent.llm.prompts import TRIAGE_TOOL
from guarantee_email_agent.llm.provider import check_connection, language_model, live_model
from guarantee_email_agent.utils.clock import SkippingClock
from guarantee_email_agent.utils.errors import LLMError

pytestmark = pytest.mark.anyio

TOPICS = {"type": "string", "enum": ["warranty", "other", "unclear"]}
MAIL = '<mail>\n{"subject": "Dryer", "new_text": "My dryer with serial number SN12345 is broken."}\n</mail>'


class Agent:
    """Asks what the agent asks, of the model that its configuration names when it first asks."""

    def __init__(self, server: MessagesServer, instructions: Instructions) -> None:
        self.server = server
        self.clock = SkippingClock()
        self.config = anthropic_config(server.url, timeout_s=0.5)
        self._instructions = instructions

    def configure(self, **llm: Any) -> None:
        self.config = replace(self.config, llm=replace(self.config.llm, **llm))

    @cached_property
    def model(self) -> ClosableModel:
        return language_model(self.config, self.clock, shipped_interpreter())

    async def ask(self) -> Any:
        return await self.model.messages.create(
            model=self.config.llm.model,
            max_tokens=100,
            temperature=0.0,
            system=[{"type": "text", "text": self._instructions.main_body}],
            messages=[{"role": "user", "content": MAIL}],
            tools=[{"name": TRIAGE_TOOL, "input_schema": {"type": "object", "properties": {"topic": TOPICS}}}],
            tool_choice={"type": "tool", "name": TRIAGE_TOOL},
        )

    async def failure(self) -> LLMError:
        with pytest.raises(LLMError) as caught:
            await self.ask()
        return caught.value


@pytest.fixture(autouse=True)
def _one_attempt(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of each call, so that requests can be counted as calls."""
    monkeypatch.setattr("guarantee_email_agent.llm.api_client.MAX_ATTEMPTS", 1)


@pytest.fixture
async def agent(server: MessagesServer, instructions: Instructions) -> AsyncIterator[Agent]:
    agent = Agent(server, instructions)
    yield agent
    await agent.model.aclose()


async def test_after_five_failures_the_model_is_left_alone_for_a_minute(agent: Agent) -> None:
    agent.server.replies = [error_reply(500)]
    for _ in range(5):
        assert (await agent.failure()).code == "llm_unavailable"
    error = await agent.failure()
    assert error.code == "llm_circuit_open"
    assert (error.outage, error.retryable) == (True, False)
    assert error.message.startswith("The language model is down: It is asked again in ")
    assert len(agent.server.requests) == 5

    agent.server.replies = [INTERPRETED]
    await agent.clock.sleep(61)
    assert (await agent.ask()).content[0].input["serial_numbers"] == ["SN12345"]
    assert len(agent.server.requests) == 6


async def test_while_it_is_down_the_templates_answer_where_that_is_configured(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "guarantee_email_agent")
    agent.configure(when_down="template")
    agent.server.replies = [error_reply(529, retry_after="16")]
    for _ in range(4):
        assert (await agent.failure()).code == "llm_overloaded"
        await agent.clock.sleep(17)
    for _ in range(3):  # the call that opens the circuit is answered, too
        answer = await agent.ask()
        assert (answer.model, answer.content[0].input["serial_numbers"]) == (OFFLINE_MODEL, ["SN12345"])
    assert len(agent.server.requests) == 5

    await agent.clock.sleep(61)
    assert (await agent.ask()).model == OFFLINE_MODEL  # a probe that fails
    assert len(agent.server.requests) == 6

    agent.server.replies = [INTERPRETED]
    await agent.clock.sleep(61)
    assert (await agent.ask()).model == "claude-sonnet-4-6"

    warning, information = (record for record in caplog.records if record.name.endswith("provider"))
    assert warning.levelname == "WARNING"
    assert warning.message == "The instructions' own templates answer until the model is back (llm_overloaded)"
    assert information.message == "The language model answers again"


@pytest.mark.parametrize(
    ("reply", "is_outage"),
    [
        (error_reply(401), True),
        (error_reply(429), True),
        (error_reply(529), True),
        (error_reply(400, "Your credit balance is too low"), True),
        (error_reply(400, "messages: text is too odd"), False),
        (error_reply(500), False),
        (Reply(b"<html>"), False),
        (Reply(b"", hangs=True), False),
    ],
    ids=lambda value: f"{value.status} {value.body[-40:]!r}" if isinstance(value, Reply) else "",
)
async def test_an_error_tells_whether_the_service_or_perhaps_the_mail_is_to_blame(
    agent: Agent, reply: Reply, is_outage: bool
) -> None:
    agent.server.replies = [INTERPRETED, reply]
    await agent.ask()
    assert (await agent.failure()).outage is is_outage


@pytest.mark.parametrize("reply", [error_reply(500), Reply(b"<html>"), Reply(b"", hangs=True)])
async def test_a_service_that_never_answered_is_to_blame(agent: Agent, reply: Reply) -> None:
    agent.server.replies = [reply]
    assert (await agent.failure()).outage is True


async def test_the_templates_answer_a_lone_mail_at_its_fifth_try(agent: Agent) -> None:
    agent.configure(when_down="template")
    agent.server.replies = [error_reply(500)]
    for _ in range(4):  # each of them leaves the mail as it is, for another try
        assert (await agent.failure()).outage is True
        await agent.clock.sleep(90)
    assert (await agent.ask()).model == OFFLINE_MODEL
    assert (await agent.ask()).model == OFFLINE_MODEL  # the reply of the same mail
    assert len(agent.server.requests) == 5


async def test_what_the_server_says_is_not_logged_above_debug(agent: Agent, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG, "guarantee_email_agent")
    agent.configure(when_down="template")
    agent.server.replies = [error_reply(503, "My secret word is canary-4711")]
    for _ in range(4):
        await agent.failure()
    await agent.ask()

    assert {record.levelname for record in caplog.records if "canary" in record.getMessage()} == {"DEBUG"}


async def test_a_rate_limit_is_no_outage_of_the_service(agent: Agent) -> None:
    agent.server.replies = [error_reply(429, retry_after="16")]
    for _ in range(8):
        error = await agent.failure()
        assert (error.code, error.outage) == ("llm_rate_limited", True)
        await agent.clock.sleep(17)
    agent.server.replies = [INTERPRETED]
    assert (await agent.ask()).model == "claude-sonnet-4-6"
    assert len(agent.server.requests) == 9


async def test_during_a_long_pause_the_api_is_not_asked(agent: Agent) -> None:
    agent.server.replies = [error_reply(429, retry_after="7200"), INTERPRETED]
    for _ in range(8):
        error = await agent.failure()
        assert (error.code, error.outage) == ("llm_rate_limited", True)
    assert len(agent.server.requests) == 1
    await agent.clock.sleep(3600)  # it may ask for more, but from time to time one call finds out
    await agent.ask()


async def test_the_templates_do_not_answer_what_a_rate_limit_holds_back_for_less_than_a_minute(agent: Agent) -> None:
    agent.configure(when_down="template", requests_per_minute=2)
    agent.server.replies = [INTERPRETED, INTERPRETED, error_reply(429, retry_after="50")]
    await agent.ask()
    await agent.ask()
    held_back = await agent.failure()  # half a minute by the setting
    assert (held_back.code, held_back.outage) == ("llm_rate_limited", True)
    await agent.clock.sleep(60)
    assert (await agent.failure()).code == "llm_rate_limited"


async def test_the_templates_answer_while_a_rate_limit_lasts_longer_than_a_minute(
    agent: Agent, caplog: pytest.LogCaptureFixture
) -> None:
    agent.configure(when_down="template")
    agent.server.replies = [error_reply(429, retry_after="90"), INTERPRETED]
    assert [(await agent.ask()).model for _ in range(3)] == [OFFLINE_MODEL] * 3
    await agent.clock.sleep(91)
    assert (await agent.ask()).model == "claude-sonnet-4-6"
    assert len(agent.server.requests) == 2
    assert caplog.messages[0].endswith("until the model is back (llm_rate_limited)")


async def test_an_evaluation_is_never_answered_by_anybody_else(agent: Agent) -> None:
    agent.configure(provider="offline", when_down="template")
    agent.server.replies = [error_reply(500)]
    agent.model = live_model(agent.config, agent.clock)
    assert [(await agent.failure()).code for _ in range(6)][-1] == "llm_circuit_open"


async def test_the_connection_is_checked_in_the_way_in_which_mails_are_asked_about(agent: Agent) -> None:
    agent.server.replies = [answer(tool_call("say_that_you_are_there", {}))]
    agent.configure(when_down="template")
    await check_connection(agent.config, agent.clock)
    no_tool = r"calls no tool as it is made to\. Set llm\.model"
    for reply, said in (
        (error_reply(404, "model: nonesuch"), r"Check llm\.model"),
        (error_reply(429, retry_after="90"), "asks to wait 90 s"),
        (answer(text("I am"), stop_reason="end_turn"), no_tool),
        (answer(stop_reason="refusal"), no_tool),
        (answer(tool_call("say_that_you_are_there", {}), stop_reason="max_tokens"), r"Raise llm\.max_tokens"),
    ):
        agent.server.replies = [reply]
        with pytest.raises(LLMError, match=said):
            await check_connection(agent.config, agent.clock)
    request = agent.server.requests[0]
    assert (request["temperature"], request["tool_choice"]["type"]) == (0.0, "tool")
    assert request["model"] == "claude-sonnet-4-6"
