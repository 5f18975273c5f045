"""The Anthropic API, or any server that speaks `/v1/messages`, behind the port.

The official SDK does the talking. Ours are the rate limit and the retries, so that all calls of a run share them, waits
are bounded and tests need not wait, the errors, so that each says what to do, and what differs between models: some
take a temperature, some may be forced to use a tool, newer ones refuse both.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import Any, Final

from guarantee_email_agent.config.settings import Config, Llm
from guarantee_email_agent.llm.port import ModelClient, canonical_json, wire_request
from guarantee_email_agent.llm.rate_limit import MAX_PAUSE_S, RateLimiter, retry_after_s
from guarantee_email_agent.llm.usage import usage_of
from guarantee_email_agent.utils.clock import Clock, SystemClock
from guarantee_email_agent.utils.errors import ConfigurationError, LLMError
from guarantee_email_agent.utils.retry import Backoff
from guarantee_email_agent.utils.text import printable

PUBLIC_ADDRESS: Final = "https://api.anthropic.com"
"""Given to the SDK by name: without an address it would read the environment itself, and take a blank one as it is."""

MAX_WAIT_S: Final = 300.0
"""The longest that a call waits in all because the API asks it to, if nobody says otherwise."""

BACKOFF: Final = Backoff(0.5, longest_s=8.0)
MAX_ATTEMPTS: Final = 3
_MAX_API_MESSAGE: Final = 300
# The last API version whose requests may hold a temperature; from 2026-10-21 on every one is refused for it.
_VERSION_WITH_TEMPERATURE: Final = "2023-06-01"
_LONG_WAIT_S: Final = 10.0
_RETRYABLE_STATUSES: Final = frozenset({408, 409, 429})
_REFUSED_STATUSES: Final = frozenset({429, 529})  # for now, whatever the request is
_STATUS_ERRORS: Final = {
    401: ("llm_authentication", "Check ANTHROPIC_API_KEY"),
    403: ("llm_authentication", "Check ANTHROPIC_API_KEY"),
    404: ("llm_model_not_found", "Check llm.model and ANTHROPIC_BASE_URL"),
    413: ("llm_request_too_large", "Send less at a time"),
    429: ("llm_rate_limited", "Run fewer at a time, or try again later"),
    529: ("llm_overloaded", "Try again later"),
}
_NO_CREDIT: Final = frozenset(
    {"contract_spend_limit_reached", "enforced_spend_limit_reached", "linked_organization_billing_unavailable"}
    | {"linked_organization_spend_limit_reached", "organization_on_hold"}
)


def anthropic_model(
    config: Config,
    *,
    timeout_s: float | None = None,
    max_wait_s: float = MAX_WAIT_S,
    clock: Clock | None = None,
    limiter: RateLimiter | None = None,
) -> AnthropicModel:
    """A client of the API with key, address, timeouts and retries as configured. Use it from one event loop.

    timeout_s: seconds for one attempt, all of its bytes included, if not those of `llm.timeout_s`.
    max_wait_s: the longest that a call waits in all because the API asks it to; where it asks for more, the call fails.
    limiter: shared with other clients; one of its own if None.

    Raises ConfigurationError where the SDK is not installed, without a key, and for an environment that no connection
    can be made with: a bad address, certificates that cannot be read, a bad proxy.
    """
    key = config.secrets.anthropic_api_key
    if key is None:
        raise ConfigurationError(
            "ANTHROPIC_API_KEY is not set. Set it in the environment or in .env; where ANTHROPIC_BASE_URL names a "
            "server of your own that asks for no key, any text will do",
            "config_missing_secret",
        )
    sdk = _sdk()
    client = sdk.AsyncAnthropic(
        api_key=key,
        base_url=_base_url(config.secrets.anthropic_base_url),
        http_client=_http_client(sdk),
        timeout=timeout_s or config.llm.timeout_s,
        max_retries=0,
        open_telemetry=False,  # what customers write goes to the API and nowhere else
    )
    clock = clock or SystemClock()
    limiter = limiter or RateLimiter.of(config.llm, clock)
    return AnthropicModel(client, config.llm, timeout_s or config.llm.timeout_s, max_wait_s, clock, limiter)


def deprecated_from(model: str) -> str | None:
    """When the installed SDK says that a model goes out of service; None where it says nothing of the kind.

    Raises ConfigurationError where the SDK is not installed.
    """
    _sdk()
    from anthropic.resources.messages import DEPRECATED_MODELS

    return DEPRECATED_MODELS.get(model)


def _sdk() -> Any:
    try:
        import anthropic  # over a second to load, and an extra
    except ImportError:
        raise ConfigurationError(
            "The Anthropic SDK is not installed. Install it: pip install 'guarantee-email-agent[anthropic]'",
            "llm_sdk_missing",
        ) from None
    return anthropic


def _base_url(url: str | None) -> str:
    """What the SDK is to connect to. Never shown where it is bad: it may hold a password."""
    if not url:
        return PUBLIC_ADDRESS
    import httpx2  # the SDK's own

    try:
        parsed = httpx2.URL(url)
    except httpx2.InvalidURL:
        parsed = httpx2.URL("")
    if parsed.scheme not in ("http", "https") or not parsed.host or (parsed.port or 0) > 65_535:
        raise ConfigurationError(
            "ANTHROPIC_BASE_URL is no address of a server. Set it to one such as http://127.0.0.1:8080, or remove it",
            "llm_bad_address",
        )
    return url


def _http_client(sdk: Any) -> Any:
    """The SDK's own HTTP client, made by us: one that the SDK fails to make complains once more when it is deleted."""
    import httpx2  # the SDK's own

    try:
        return sdk.DefaultAsyncHttpxClient()
    except OSError as error:
        reason = getattr(error, "reason", None) or error.strerror or type(error).__name__
        raise ConfigurationError(
            f"SSL_CERT_FILE or SSL_CERT_DIR names no certificates that can be read ({reason}). Correct it, or "
            "remove it",
            "llm_bad_certificates",
        ) from None
    except (httpx2.InvalidURL, ValueError, ImportError):
        raise ConfigurationError(
            "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY or NO_PROXY names no proxy that can be used. Correct it, or remove it",
            "llm_bad_proxy",
        ) from None


class RefusedError(LLMError):
    """The API takes no request for now: it is overloaded, or has had too many. `headers`: of its answer."""

    headers: Mapping[str, str]


@dataclass(frozen=True)
class AnthropicModel(ModelClient):
    """A LanguageModel of the port. `create` raises LLMError and nothing else."""

    client: Any  # the SDK's
    llm: Llm
    timeout_s: float
    max_wait_s: float
    clock: Clock
    limiter: RateLimiter

    async def create(self, **request: Any) -> Any:
        """The API's answer. Raises LLMError once no attempt is left, or where another one could not help.

        A call that is refused for now (HTTP 429, 529) waits, mostly as all others do, and is sent again. No attempt:
        it ends where more than `max_wait_s` would have been waited for refusals.
        """
        sent = wire_request(request, force_tool=self.llm.force_tool)
        if (temperature := sent.pop("temperature", None)) is not None:
            sent["extra_body"] = {"temperature": temperature}
            sent["extra_headers"] = {"anthropic-version": _VERSION_WITH_TEMPERATURE}
        characters = len(canonical_json(sent))
        attempt, refused_s, place, not_before = 1, 0.0, None, -inf
        while True:
            asked_at = self.clock.monotonic()
            permit = await self.limiter.acquire(characters, sent["max_tokens"], place, not_before=not_before)
            refused_s += 0.0 if place is None else permit.at - asked_at
            try:
                answer, headers = await self._attempt(sent)
            except RefusedError as error:
                error.details["attempts"] = attempt
                over_limit = error.code == "llm_rate_limited"
                pause_s = self.limiter.refused(permit, error.headers, error.retry_after_s, over_limit=over_limit)
                if refused_s + pause_s > self.max_wait_s:
                    raise
                place, not_before = permit.number, self.clock.monotonic() + min(pause_s, MAX_PAUSE_S)
            except LLMError as error:
                self.limiter.unanswered()
                error.details["attempts"] = attempt
                asked_s = error.retry_after_s
                wait_s = BACKOFF.delay_s(attempt) if asked_s is None else asked_s
                if not error.retryable or attempt == MAX_ATTEMPTS or wait_s > self.max_wait_s:
                    raise
                await self.clock.sleep(wait_s)
                attempt, place, not_before = attempt + 1, None, -inf
            else:
                self.limiter.answered(permit, headers, usage_of(answer))
                return answer

    async def _attempt(self, request: Mapping[str, Any]) -> tuple[Any, Mapping[str, str]]:
        """The answer and its headers."""
        import anthropic  # loaded already, or there would be no client

        try:
            # The SDK's own timeout starts anew with every byte that trickles in.
            async with asyncio.timeout(self.timeout_s):
                response = await self.client.messages.with_raw_response.create(**request)
                answer = await response.parse()
            if _is_message(answer):
                return answer, response.headers
        except (TimeoutError, anthropic.APITimeoutError):
            raise _api_error("llm_timeout", f"gave no answer within {self.timeout_s:g} s", retryable=True) from None
        except anthropic.APIConnectionError as error:
            reason = type(error.__cause__ or error).__name__
            what = f"cannot be reached, or broke off its answer ({reason}). Check the network and ANTHROPIC_BASE_URL"
            raise _api_error("llm_unreachable", what, retryable=True) from None
        except anthropic.APIStatusError as error:
            raise _status_error(error, request) from None
        except (anthropic.APIResponseValidationError, json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            pass
        except (anthropic.AnthropicError, ValueError, TypeError) as error:
            raise _api_error("llm_bad_request", f"cannot be asked this way: {error}") from None
        # A proxy's own page, or a body cut off: another attempt may get through.
        raise _api_error("llm_bad_answer", "gave an answer that is no message", retryable=True)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.client.close()


def _is_message(answer: Any) -> bool:
    """Whether the answer has what every answer has: the SDK hands over whatever JSON came."""
    content = getattr(answer, "content", None)
    return (
        isinstance(content, list)
        and isinstance(getattr(answer, "stop_reason", None), str)
        and all(isinstance(getattr(block, "type", None), str) for block in content)
    )


def _status_error(error: Any, request: Mapping[str, Any]) -> LLMError:
    status, headers = error.status_code, error.response.headers
    api_message = printable(str(error.api_message or error.message))[:_MAX_API_MESSAGE]
    code, remedy = _code_and_remedy(error, api_message, request)
    override = headers.get("x-should-retry")
    is_transient = status in _RETRYABLE_STATUSES or status >= 500
    retryable = code != "llm_no_credit" and (override == "true" or (is_transient and override != "false"))
    details: dict[str, Any] = {"status": status}
    if error.request_id:
        details["request_id"] = error.request_id
    wait_s = retry_after_s(headers)
    if wait_s is not None and wait_s > _LONG_WAIT_S:
        remedy = f"It asks to wait {wait_s:g} s; try again then"
    problem = _api_error(code, f"answered HTTP {status}: {api_message}. {remedy}", retryable=retryable, **details)
    if retryable and status in _REFUSED_STATUSES:
        problem = refused = RefusedError.of(problem)
        refused.headers = headers
    problem.retry_after_s = wait_s
    return problem


def _code_and_remedy(error: Any, api_message: str, request: Mapping[str, Any]) -> tuple[str, str]:
    status: int = error.status_code
    # A low balance comes as a plain 400, without a code.
    if status == 402 or error.error_code in _NO_CREDIT or "credit balance" in api_message:
        return "llm_no_credit", "Buy credit or raise the limit, where the API key was made"
    if status == 400 and "temperature" in api_message and "extra_body" in request:
        return "llm_temperature_refused", "Set llm.temperature to null for this model"
    is_forced = request["tool_choice"].get("type") in ("any", "tool")
    if status == 400 and is_forced and ("tool_choice" in api_message or "forc" in api_message):
        return "llm_forced_tool_refused", "Set llm.force_tool to false for this model"
    if status in _STATUS_ERRORS:
        return _STATUS_ERRORS[status]
    if status >= 500 or status in _RETRYABLE_STATUSES:
        return "llm_unavailable", "Try again later"
    return "llm_bad_request", "Check the section llm of the configuration"


def _api_error(code: str, what: str, *, retryable: bool = False, **details: Any) -> LLMError:
    return LLMError(f"The model API {what}", code, details, retryable=retryable)
