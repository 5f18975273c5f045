"""The language model that the configuration asks for."""

from __future__ import annotations

import logging
from contextlib import aclosing
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.llm.port import ClosableModel, ModelClient, tool_input
from guarantee_email_agent.utils.circuit_breaker import OPEN_S, CircuitBreaker, CircuitOpenError
from guarantee_email_agent.utils.clock import Clock
from guarantee_email_agent.utils.errors import LLMError

if TYPE_CHECKING:
    from guarantee_email_agent.llm.api_client import ApiModel
    from guarantee_email_agent.llm.rate_limit import RateLimiter

logger = logging.getLogger(__name__)

# No mail can cause these.
_SERVICE_ERRORS: Final = frozenset(
    {"llm_authentication", "llm_model_not_found", "llm_no_credit", "llm_overloaded", "llm_unreachable"}
)
# A service that has had too many requests is not down, but neither is the mail to blame.
_RATE_LIMITED: Final = "llm_rate_limited"
# One mail may cause these, or the service; whether it answered lately tells.
_AMBIGUOUS_ERRORS: Final = frozenset({"llm_bad_answer", "llm_timeout", "llm_unavailable"})


class ModelWithFallback(ModelClient):
    """A LanguageModel in front of another one. `create` raises LLMError, and what `fallback` raises.

    An answer of `fallback`, which gives a `Message`, says why in `fallback_reason`.

    Five errors of the service in a row open the circuit: for 60 s the model is not asked, then one call probes it.
    Meanwhile `fallback` answers; where there is none, every call is an error. `outage` of an error tells whether
    the mail should wait, since the service is to blame and not perhaps this one request. An error that either
    may cause is an outage once the service has answered nothing for ten minutes. A rate limit opens no circuit: what
    would have to wait for it too long waits as in an outage. Only one that lasts longer than an open circuit does is
    one for `fallback`, too.
    """

    def __init__(self, model: ClosableModel, clock: Clock, fallback: ClosableModel | None) -> None:
        self._model = model
        self._fallback = fallback
        self._breaker = CircuitBreaker("llm", clock, _may_be_outage)
        self._falling_back = False

    async def create(self, **request: Any) -> Any:
        try:
            answer = await self._breaker.call(lambda: self._model.messages.create(**request))
        except CircuitOpenError as error:
            left_s = error.retry_in_s
            when = f"It is asked again in {left_s:.0f} s" if left_s else "One call is finding out whether it is back"
            problem = LLMError.of(error, f"The language model is down: {when}")
        except LLMError as error:
            error.outage = error.outage or error.code in _SERVICE_ERRORS | {_RATE_LIMITED}
            is_used_up = error.code == _RATE_LIMITED and (error.retry_after_s or 0.0) > OPEN_S
            is_down = is_used_up or (_may_be_outage(error) and self._breaker.is_open)
            if not is_down or self._fallback is None:
                raise
            problem = error
        else:
            if self._falling_back:
                self._falling_back = False
                logger.info("The language model answers again")
            return answer
        if self._fallback is None:
            raise problem
        if not self._falling_back:
            self._falling_back = True
            logger.warning("The instructions' own templates answer until the model is back (%s)", problem.code)
            logger.debug("%s", problem.message)  # what the server said may be the customer's words
        return replace(await self._fallback.messages.create(**request), fallback_reason=problem)

    async def aclose(self) -> None:
        """Close the connections."""
        await self._model.aclose()


def _may_be_outage(error: Exception) -> bool:
    return isinstance(error, LLMError) and error.code in _SERVICE_ERRORS | _AMBIGUOUS_ERRORS


_WAITS_PER_MAIL_BUDGET: Final = 4
_TEST_TOOL: Final = {
    "name": "say_that_you_are_there",
    "description": "Say that you are there.",
    "input_schema": {"type": "object", "properties": {}, "additionalProperties": False},
}


def language_model(config: Config, clock: Clock, interpreter: ClosableModel) -> ClosableModel:
    """The model of `llm.provider`, and while that is down what `llm.when_down` says.

    One for the whole process, used from one event loop; `llm.usage` counts what each mail takes of it. interpreter:
    answers offline.

    Raises ConfigurationError where the key or the SDK is missing.
    """
    if config.llm.provider == "offline":
        return interpreter
    from guarantee_email_agent.llm.rate_limit import RateLimiter

    fallback = interpreter if config.llm.when_down == "template" else None
    # A long wait would use up the time of a mail that can as well be tried later.
    max_wait_s = config.agent.mail_budget_s / _WAITS_PER_MAIL_BUDGET
    limiter = RateLimiter.of(config.llm, clock, max_wait_s=max_wait_s)
    model = api_of(config).of(config, clock=clock, limiter=limiter, max_wait_s=max_wait_s)
    return ModelWithFallback(model, clock, fallback)


def live_model(
    config: Config, clock: Clock, limiter: RateLimiter | None = None, *, max_wait_s: float | None = None
) -> ClosableModel:
    """The API, whatever `llm.provider` and `llm.when_down` say, without a fallback.

    limiter: for whoever shows or ends the waiting. max_wait_s: if not as long as `ApiModel.of` waits. Raises
    ConfigurationError where the key or the SDK is missing.
    """
    limits = {} if max_wait_s is None else {"max_wait_s": max_wait_s}
    return ModelWithFallback(api_of(config).of(config, clock=clock, limiter=limiter, **limits), clock, None)


def api_of(config: Config) -> type[ApiModel]:
    """Which API a live model is asked through: the one that `llm.provider` names, or else Anthropic's."""
    if config.llm.provider == "openai":
        from guarantee_email_agent.llm.openai_client import OpenAiModel

        return OpenAiModel
    from guarantee_email_agent.llm.anthropic_client import AnthropicModel

    return AnthropicModel


async def check_connection(config: Config, clock: Clock) -> None:
    """Ask for next to nothing, in the way in which mails are asked about: with the same parameters and a forced tool.

    A wrong key, an unknown model and one that calls no tools show here. Raises LLMError, and ConfigurationError where
    the key or the SDK is missing.
    """
    if config.llm.provider == "offline":
        return
    max_wait_s = config.agent.mail_budget_s / _WAITS_PER_MAIL_BUDGET
    async with aclosing(live_model(config, clock, max_wait_s=max_wait_s)) as model:
        answer = await model.messages.create(
            model=config.llm.model,
            max_tokens=config.llm.max_tokens,
            system=[{"type": "text", "text": f"Call the tool {_TEST_TOOL['name']}, and do nothing else."}],
            messages=[{"role": "user", "content": "Are you there?"}],
            tools=[_TEST_TOOL],
            tool_choice={"type": "tool", "name": _TEST_TOOL["name"]},
            temperature=0.0,
        )
    try:
        tool_input(answer, str(_TEST_TOOL["name"]), lambda _: True)
    except LLMError as error:
        if error.code == "llm_truncated":
            raise
        problem = f"{config.llm.model} answers, but calls no tool as it is made to. Set llm.model to one that does"
        raise LLMError(problem, error.code) from None
