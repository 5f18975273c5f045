"""The real SDK against a server on loopback that speaks `/v1/messages`."""

import asyncio
import gc
import socket
import sys
from contextlib import aclosing
from typing import Any

import pytest
from messages_server import MessagesServer, Reply, answer, anthropic_config, error_reply, tool_call
from virtual_time import SleptClock
from waiting import wait_until

from guarantee_email_agent.config.settings import Config, Llm, Secrets
from guarantee_email_agent.llm.anthropic_client import AnthropicModel
from guarantee_email_agent.llm.api_client import MAX_WAIT_S
from guarantee_email_agent.llm.rate_limit import RateLimiter
from guarantee_email_agent.utils.clock import SkippingClock, counted_waits
from guarantee_email_agent.utils.errors import ConfigurationError, LLMError

REQUEST: dict[str, Any] = {
    "model": "claude-sonnet-4-6",
    "max_tokens": 100,
    "system": [{"type": "text", "text": "Be short."}],
    "messages": [{"role": "user", "content": "Hello"}],
    "tools": [{"name": "note", "description": "Note it.", "input_schema": {"type": "object"}}],
    "tool_choice": {"type": "tool", "name": "note"},
}


def note(number: int) -> dict[str, Any]:
    return tool_call("note", {"number": number}, number)


def ask(config: Config, clock: Any = None, max_wait_s: float = MAX_WAIT_S, **changes: Any) -> Any:
    async def once() -> Any:
        waits = clock or SkippingClock()
        limiter = RateLimiter(waits, jitter=lambda: 0.0)
        async with aclosing(AnthropicModel.of(config, clock=waits, max_wait_s=max_wait_s, limiter=limiter)) as model:
            return await model.messages.create(**{**REQUEST, **changes})

    return asyncio.run(once())


def failure(config: Config, clock: Any = None, **changes: Any) -> LLMError:
    with pytest.raises(LLMError) as caught:
        ask(config, clock, **changes)
    return caught.value


def test_a_request_goes_out_with_key_and_temperature_and_a_tool_call_arrives_with_its_tokens(
    server: MessagesServer,
) -> None:
    server.replies = [answer({"type": "text", "text": None}, note(1))]
    message = ask(anthropic_config(server.url), temperature=0.0)
    assert [(block.name, block.input) for block in message.content] == [("note", {"number": 1})]
    assert (message.usage.input_tokens, message.usage.output_tokens) == (12, 5)
    assert message.usage.cache_read_input_tokens == 7
    assert server.headers[0]["authorization"] == "Bearer test-key"
    assert server.headers[0]["anthropic-version"] == "2023-06-01"  # which takes a temperature
    assert server.requests[0]["temperature"] == 0.0


def test_what_the_model_refuses_is_left_out_from_then_on(server: MessagesServer) -> None:
    """A model that is made to use no tool is shown the one that is meant, and no other."""
    refusals = [error_reply(400, "temperature: Extra inputs"), error_reply(400, "tool_choice forces tool use")]
    server.replies = [*refusals, answer()]
    forced = {"type": "tool", "name": "note", "disable_parallel_tool_use": True}
    request = {**REQUEST, "tools": [{"name": "other"}, *REQUEST["tools"]], "tool_choice": forced, "temperature": 0.0}

    async def scene() -> None:
        async with aclosing(AnthropicModel.of(anthropic_config(server.url))) as model:
            await model.messages.create(**request)
            await model.messages.create(**request)
            await model.messages.create(**{**request, "tool_choice": {"type": "none"}})

    asyncio.run(scene())
    assert [("temperature" in sent, sent["tool_choice"]["type"], len(sent["tools"])) for sent in server.requests] == [
        *((True, "tool", 2), (False, "tool", 2), (False, "auto", 1), (False, "auto", 1), (False, "none", 2))
    ]
    assert server.requests[2]["tool_choice"] == {"type": "auto", "disable_parallel_tool_use": True}


@pytest.mark.parametrize(
    "reply",
    [
        error_reply(429),
        error_reply(500),
        error_reply(529),
        Reply(b'{"id": "msg_1", "cont', length=500),
        Reply(b'{"id": "msg_1", "cont', length=500, resets=True),
        Reply(b'{"id": "msg_1", "cont'),
        Reply(b"<html>Bad gateway</html>", headers={"content-type": "text/html"}),
        Reply(b'{"id": "msg_1", "content": null}'),
        Reply(b"[" * 100_000),
    ],
    ids=lambda reply: f"{reply.status} {reply.body[:12]!r}{' reset' if reply.resets else ''}",
)
def test_what_can_heal_is_tried_again(server: MessagesServer, reply: Reply) -> None:
    server.replies = [reply, answer(note(1))]
    with counted_waits() as attempts:
        assert ask(anthropic_config(server.url)).content[0].id == "toolu_1"
    assert len(server.requests) == 2
    # What the API refused is free; of what was lost nobody knows.
    assert attempts.lost == (reply.status not in (429, 529))


def test_waits_as_long_as_the_server_asks(server: MessagesServer) -> None:
    server.replies = [error_reply(429, retry_after="7"), error_reply(529, retry_after_ms="1500"), answer()]
    clock = SleptClock()
    ask(anthropic_config(server.url), clock)
    assert sum(clock.slept) == pytest.approx(8.5)


def test_a_refusal_for_now_is_no_attempt_and_asked_again_by_nobody_else(server: MessagesServer) -> None:
    server.replies = [*[error_reply(429, retry_after="20")] * 6, *[error_reply(529, retry_after="20")] * 6, answer()]
    ask(anthropic_config(server.url))
    assert len(server.requests) == 13  # the SDK has retries of its own


def test_attempts_that_fail_count_also_between_refusals(server: MessagesServer) -> None:
    refused = error_reply(429, retry_after="1")
    server.replies = [refused, error_reply(500), refused, error_reply(500), error_reply(500), refused, answer()]
    error = failure(anthropic_config(server.url))
    assert (error.code, len(server.requests)) == ("llm_unavailable", 5)


def test_a_call_waits_300_s_in_all_for_refusals(server: MessagesServer) -> None:
    server.replies = [error_reply(429, "Too many", retry_after="70")]
    clock = SleptClock()
    error = failure(anthropic_config(server.url), clock)
    assert (error.code, error.retry_after_s) == ("llm_rate_limited", 70)
    assert sum(clock.slept) == pytest.approx(280)
    assert len(server.requests) == 5


@pytest.mark.parametrize(("asked", "allowed"), [(20, {"max_wait_s": 15.0}), (3600, {})])
def test_waits_no_longer_than_it_is_allowed_to(server: MessagesServer, asked: int, allowed: dict[str, float]) -> None:
    server.replies = [error_reply(429, retry_after=str(asked))]
    clock = SleptClock()
    error = failure(anthropic_config(server.url), clock, **allowed)
    assert clock.slept == []
    assert error.retry_after_s == asked
    assert f"asks to wait {asked} s" in error.message


def test_gives_up_after_three_attempts_and_waits_longer_each_time(server: MessagesServer) -> None:
    server.replies = [error_reply(503, "Maintenance")]
    clock = SleptClock()
    error = failure(anthropic_config(server.url), clock)
    assert (error.code, error.retryable) == ("llm_unavailable", True)
    assert "HTTP 503: Maintenance. Try again later" in error.message
    assert (len(server.requests), clock.slept) == (3, [0.5, 1.0])


@pytest.mark.parametrize(
    ("reply", "code", "says"),
    [
        (error_reply(400, "tools.0.input_schema.type: Field required"), "llm_bad_request", "input_schema.type"),
        (error_reply(400, "Your credit balance is too low"), "llm_no_credit", "Buy credit"),
        (error_reply(429, "Limit", error_code="enforced_spend_limit_reached"), "llm_no_credit", "raise the limit"),
        (error_reply(401, "invalid x-api-key"), "llm_authentication", "Check ANTHROPIC_API_KEY"),
        (error_reply(404, "model: nonesuch"), "llm_model_not_found", "Check llm.model"),
        (error_reply(413), "llm_request_too_large", "Send less"),
        (error_reply(500, x_should_retry="false"), "llm_unavailable", "HTTP 500"),
    ],
)
def test_what_cannot_heal_is_not_tried_again(server: MessagesServer, reply: Reply, code: str, says: str) -> None:
    server.replies = [reply]
    error = failure(anthropic_config(server.url), temperature=0.0)
    assert error.code == code
    assert says in error.message
    assert len(server.requests) == 1


@pytest.mark.parametrize("said", ["temperature: Extra inputs", "tool_choice forces tool use"])
def test_what_was_not_sent_is_not_to_blame(server: MessagesServer, said: str) -> None:
    server.replies = [error_reply(400, said)]
    error = failure(anthropic_config(server.url), tool_choice={"type": "auto"})
    assert error.code == "llm_bad_request"


def test_an_answer_that_trickles_ends_at_the_timeout(server: MessagesServer) -> None:
    server.replies = [Reply(b"{}", length=1_000_000, trickles=True)]
    with counted_waits() as attempts:
        error = failure(anthropic_config(server.url, timeout_s=0.3))
    assert attempts.lost == len(server.requests)
    assert error.code == "llm_timeout"
    assert error.message == "The model API gave no answer within 0.3 s"


def test_a_call_that_is_cancelled_ends_at_once_and_leaves_the_client_usable(server: MessagesServer) -> None:
    server.replies = [Reply(b"{}", hangs=True), answer(note(1))]

    async def scene() -> Any:
        async with aclosing(AnthropicModel.of(anthropic_config(server.url))) as model:
            call = asyncio.create_task(model.messages.create(**REQUEST))
            await asyncio.to_thread(wait_until, lambda: server.requests)
            call.cancel()
            with pytest.raises(asyncio.CancelledError):
                await call
            return await model.messages.create(**REQUEST)

    with counted_waits() as attempts:
        assert asyncio.run(scene()).content[0].id == "toolu_1"
    assert (attempts.lost, attempts.seconds) == (1, 0)  # nobody waits for an answer that nobody wants
    assert len(server.requests) == 2


def test_a_failure_that_nobody_foresaw_holds_up_no_other_call(
    server: MessagesServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    server.replies = [answer(note(1))]

    async def scene() -> Any:
        async with aclosing(AnthropicModel.of(anthropic_config(server.url))) as model:
            with monkeypatch.context() as broken:
                broken.setattr(AnthropicModel, "_send", lambda *_: 1 / 0)
                with pytest.raises(ZeroDivisionError):
                    await model.messages.create(**REQUEST)
            return await model.messages.create(**REQUEST)

    with counted_waits() as attempts:
        assert asyncio.run(scene()).content[0].id == "toolu_1"
    assert attempts.seconds == 0


def test_nobody_at_the_address_is_an_error_that_names_it() -> None:
    with socket.socket() as taken:  # bound but not listening, so that nobody else can
        taken.bind(("127.0.0.1", 0))
        with counted_waits() as attempts:
            error = failure(anthropic_config(f"http://127.0.0.1:{taken.getsockname()[1]}"))
    assert attempts.lost == 0
    assert error.code == "llm_unreachable"
    assert "Check the network and ANTHROPIC_BASE_URL" in error.message


@pytest.mark.parametrize(
    "address",
    [
        "http://h:canary",
        "http://[::1canary",
        "http://canary:99999",
        "canary.example.com",
        "http://",
    ],
)
def test_a_bad_address_is_a_configuration_error_that_does_not_show_it(
    address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ConfigurationError) as caught:
        AnthropicModel.of(anthropic_config(address))
    assert caught.value.message.startswith("ANTHROPIC_BASE_URL is no address of a server. ")
    assert "canary" not in caught.value.message
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize(
    ("name", "value", "says"),
    [
        ("SSL_CERT_FILE", "/canary", "Correct SSL_CERT_FILE"),
        ("SSL_CERT_FILE", __file__, "Correct SSL_CERT_FILE"),
        ("HTTPS_PROXY", "canary://h", "Correct HTTPS_PROXY"),
        ("HTTPS_PROXY", "http://h:canary", "Correct HTTPS_PROXY"),
    ],
)
def test_an_environment_without_a_way_out_is_one_configuration_error(
    name: str, value: str, says: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(ConfigurationError) as caught:
        AnthropicModel.of(anthropic_config("http://127.0.0.1:9"))
    assert says in caught.value.message
    assert "canary" not in caught.value.message
    gc.collect()
    assert capfd.readouterr().err == ""


def test_without_an_address_the_public_one_is_asked_whatever_the_environment_says(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_BASE_URL", "")
    config = Config(llm=Llm(provider="anthropic"), secrets=Secrets(anthropic_api_key="test-key"))

    async def address() -> str:
        async with aclosing(AnthropicModel.of(config)) as model:
            return str(model.client.base_url)

    assert asyncio.run(address()) == AnthropicModel.public_address


def test_missing_sdk_is_a_configuration_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)
    with pytest.raises(ConfigurationError, match="needs the package anthropic"):
        AnthropicModel.of(anthropic_config("http://127.0.0.1:9"))
