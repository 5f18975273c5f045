"""The language model that the configuration asks for."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.llm.port import ClosableModel, LanguageModel
from guarantee_email_agent.utils.clock import Clock

if TYPE_CHECKING:
    from guarantee_email_agent.llm.rate_limit import RateLimiter

logger = logging.getLogger(__name__)

_WAITS_PER_MAIL_BUDGET: Final = 4
_TEST_TOOL: Final = {
    "name": "say_that_you_are_there",
    "description": "Say that you are there.",
    "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
}


def mail_limiter(config: Config, clock: Clock) -> RateLimiter:
    """Of a process that answers mail: it lets no call wait for longer than a mail has time for."""
    from guarantee_email_agent.llm.rate_limit import RateLimiter

    return RateLimiter.of(config.llm, clock, max_wait_s=config.agent.mail_budget_s / _WAITS_PER_MAIL_BUDGET)


def language_model(
    config: Config, clock: Clock, interpreter: ClosableModel, limiter: RateLimiter | None = None
) -> ClosableModel:
    """The model of `llm.provider`, and while that is down what `llm.when_down` says.

    One for the whole process, used from one event loop; `llm.usage` counts what each mail takes of it. interpreter:
    answers offline. limiter: a `mail_limiter`, for whoever looks at it.

    Raises ConfigurationError where the key or the SDK is missing.
    """
    if config.llm.provider == "offline":
        return interpreter
    fallback = interpreter if config.llm.when_down == "template" else None
    # A long wait would use up the time of a mail that can as well be tried later.
    max_wait_s = config.agent.mail_budget_s / _WAITS_PER_MAIL_BUDGET
    return _live(config, clock, fallback, limiter or mail_limiter(config, clock), max_wait_s=max_wait_s)


def live_model(
    config: Config, clock: Clock, limiter: RateLimiter | None = None, *, max_wait_s: float | None = None
) -> ClosableModel:
    """The API, whatever `llm.provider` and `llm.when_down` say, without a fallback.

    limiter: for whoever shows or ends the waiting. max_wait_s: if not as long as `anthropic_model` waits. Raises
    ConfigurationError where the key or the SDK is missing.
    """
    limits = {} if max_wait_s is None else {"max_wait_s": max_wait_s}
    return _live(config, clock, None, limiter, **limits)


def _live(
    config: Config, clock: Clock, fallback: ClosableModel | None, limiter: RateLimiter | None, **limits: float
) -> ClosableModel:
    from guarantee_email_agent.llm.anthropic_client import anthropic_model, deprecated_from
    from guarantee_email_agent.llm.fallback import ModelWithFallback

    model = anthropic_model(config, clock=clock, limiter=limiter, **limits)
    if (end := deprecated_from(config.llm.model)) is not None:
        logger.warning("llm.model %s goes out of service on %s. Name a newer one", config.llm.model, end)
    return ModelWithFallback(model, clock, fallback)


async def check_connection(model: LanguageModel, config: Config) -> None:
    """Ask for next to nothing, in the way in which mails are asked about: with the same parameters and a forced tool.

    A wrong key, an unknown model, and a setting that the model refuses all show here. Raises LLMError.
    """
    if config.llm.provider == "offline":
        return
    parameters = {} if config.llm.temperature is None else {"temperature": config.llm.temperature}
    await model.messages.create(
        model=config.llm.model,
        max_tokens=config.llm.max_tokens,
        system=[{"type": "text", "text": f"Call the tool {_TEST_TOOL['name']}, and do nothing else."}],
        messages=[{"role": "user", "content": "Are you there?"}],
        tools=[_TEST_TOOL],
        tool_choice={"type": "tool", "name": _TEST_TOOL["name"]},
        **parameters,
    )
