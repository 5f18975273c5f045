"""A model's API behind the port: what holds for every one of them.

The API's official SDK does the talking; those of Anthropic and OpenAI are made alike. Ours are the rate limit and the
retries, so that all calls of a run share them, waits are bounded and tests need not wait, the errors, so that each says
what to do, and what differs between models: some take a temperature, some may be forced to use a tool, newer ones
refuse both, which is seen by their refusals.
"""

from __future__ import annotations

import asyncio
import importlib
import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf
from typing import Any, ClassVar, Final, Self

from guarantee_email_agent.config.settings import Config, Llm
from guarantee_email_agent.llm.port import ModelClient
from guarantee_email_agent.llm.rate_limit import MAX_PAUSE_S, RateLimiter, retry_after_s
from guarantee_email_agent.utils.clock import Clock, SystemClock, count_wait
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.errors import ConfigurationError, LLMError
from guarantee_email_agent.utils.retry import Backoff
from guarantee_email_agent.utils.text import printable

MAX_WAIT_S: Final = 300.0
"""The longest that a call waits in all because the API asks it to, if nobody says otherwise."""

BACKOFF: Final = Backoff(0.5, longest_s=8.0)
MAX_ATTEMPTS: Final = 3
_MAX_API_MESSAGE: Final = 300
_TEMPERATURE_REFUSED: Final = "llm_temperature_refused"
_FORCED_TOOL_REFUSED: Final = "llm_forced_tool_refused"
_FORCES: Final = ("any", "tool")
_LONG_WAIT_S: Final = 10.0
_RETRYABLE_STATUSES: Final = frozenset({408, 409, 429})
_REFUSED_STATUSES: Final = frozenset({429, 529})  # for now, whatever the request is
NOT_SENT: Final = frozenset(
    {"ConnectError", "ConnectTimeout", "InvalidURL", "PoolTimeout", "ProxyError", "UnsupportedProtocol"}
)
"""Errors of the HTTP client after which nothing can be charged."""
_REFUSED_PROMPT: Final = frozenset({"content_filter", "content_policy_violation"})
_NO_CREDIT: Final = frozenset(
    {"contract_spend_limit_reached", "enforced_spend_limit_reached", "linked_organization_billing_unavailable"}
    | {"linked_organization_spend_limit_reached", "organization_on_hold", "insufficient_quota"}
)


class RefusedError(LLMError):
    """The API takes no request for now: it is overloaded, or has had too many."""


@dataclass(frozen=True)
class ApiModel(ModelClient, ABC):
    """A LanguageModel of the port. `create` raises LLMError and nothing else.

    A subclass says which SDK it is for, and how that one is asked.
    """

    package: ClassVar[str]
    label: ClassVar[str]
    public_address: ClassVar[str]
    """Given to the SDK by name: without an address it would read the environment, and take a blank one as it is."""

    client: Any  # the SDK's
    llm: Llm
    timeout_s: float
    max_wait_s: float
    clock: Clock
    limiter: RateLimiter
    refused: set[str] = field(default_factory=set)
    """What the model has refused of a request, by the codes of its refusals; it is not sent again."""

    @classmethod
    def of(
        cls,
        config: Config,
        *,
        timeout_s: float | None = None,
        max_wait_s: float = MAX_WAIT_S,
        clock: Clock | None = None,
        limiter: RateLimiter | None = None,
    ) -> Self:
        """A client of the API with key, address, timeouts and retries as configured. Use it from one event loop.

        timeout_s: seconds for one attempt, all of its bytes included, if not those of `llm.timeout_s`.
        max_wait_s: the longest that a call waits in all because the API asks it to; where it asks for more, the call
        fails. limiter: shared with other clients; one of its own if None.

        Raises ConfigurationError where the SDK is not installed, without a key, and for an environment that no
        connection can be made with: a bad address, certificates that cannot be read, a bad proxy.
        """
        variable = f"{cls.package.upper()}_API_KEY"
        key = getattr(config.secrets, variable.lower())
        if key is None or not (key.isascii() and key.isprintable()):
            wrong = "is not set" if key is None else "holds characters that no key has"
            raise ConfigurationError(
                f"{variable} {wrong}. Set it in the environment or in .env; where "
                f"{cls._address_setting(config.llm)} names a server of your own that asks for no key, any text will do",
                "config_missing_secret",
            )
        sdk = cls.sdk()
        timeout_s = timeout_s or config.llm.timeout_s
        client = cls._connect(
            sdk,
            api_key=key,
            base_url=cls._base_url(config),
            http_client=_http_client(sdk),
            timeout=timeout_s,
            max_retries=0,
        )
        clock = clock or SystemClock()
        return cls(client, config.llm, timeout_s, max_wait_s, clock, limiter or RateLimiter.of(config.llm, clock))

    @classmethod
    def sdk(cls) -> Any:
        """The SDK's module. Raises ConfigurationError where it is not installed."""
        require_extra(cls.package, f"a model of {cls.label}", cls.package)
        return importlib.import_module(cls.package)  # over a second to load

    @classmethod
    def _address_setting(cls, llm: Llm) -> str:
        return f"{cls.package.upper()}_BASE_URL" if llm.base_url is None else "llm.base_url"

    @classmethod
    def address(cls, config: Config) -> str:
        """Where the API is reached, as the configuration or the environment says."""
        named: str | None = config.llm.base_url or getattr(config.secrets, f"{cls.package}_base_url")
        return named or cls.public_address

    @classmethod
    def _base_url(cls, config: Config) -> str:
        """What the SDK is to connect to. Never shown where it is bad: it may hold a password."""
        import httpx2  # the SDK's own

        url = cls.address(config)
        try:
            parsed = httpx2.URL(url)
        except httpx2.InvalidURL:
            parsed = httpx2.URL("")
        if parsed.scheme not in ("http", "https") or not parsed.host or (parsed.port or 0) > 65_535:
            raise ConfigurationError(
                f"{cls._address_setting(config.llm)} is no address of a server. Set it to one such as "
                "http://127.0.0.1:8080, or remove it",
                "llm_bad_address",
            )
        return url

    @classmethod
    @abstractmethod
    def _connect(cls, sdk: Any, **options: Any) -> Any:
        """The SDK's client."""

    @abstractmethod
    async def _send(self, request: Mapping[str, Any]) -> Any:
        """The answer in the port's shape; None where it is none. request: one of the port, as it is to be sent.

        Raises what the SDK raises.
        """

    async def create(self, **request: Any) -> Any:
        """The API's answer. Raises LLMError once no attempt is left, or where another one could not help."""
        while True:
            try:
                return await self._create(request)
            except LLMError as error:
                if error.code not in (_TEMPERATURE_REFUSED, _FORCED_TOOL_REFUSED):
                    raise
                self.refused.add(error.code)

    async def _create(self, request: Mapping[str, Any]) -> Any:
        """As `create`, less what the model has refused.

        A call that is refused for now (HTTP 429, 529) waits, mostly as all others do, and is sent again. No attempt:
        it ends where more than `max_wait_s` would have been waited for refusals.
        """
        sent = dict(request) if _FORCED_TOOL_REFUSED not in self.refused else _without_force(request)
        if _TEMPERATURE_REFUSED in self.refused:
            sent.pop("temperature", None)
        attempt, refused_s, place, not_before = 1, 0.0, None, -inf
        while True:
            asked_at = self.clock.monotonic()
            permit = await self.limiter.acquire(place, not_before=not_before)
            refused_s += 0.0 if place is None else permit.at - asked_at
            try:
                answer = await self._attempt(sent)
            except RefusedError as error:
                over_limit = error.code == "llm_rate_limited"
                pause_s = self.limiter.refused(permit, error.retry_after_s, over_limit=over_limit)
                if refused_s + pause_s > self.max_wait_s:
                    raise
                place, not_before = permit.number, self.clock.monotonic() + min(pause_s, MAX_PAUSE_S)
            except LLMError as error:
                self.limiter.unanswered()
                asked_s = error.retry_after_s
                wait_s = BACKOFF.delay_s(attempt) if asked_s is None else asked_s
                if not error.retryable or attempt == MAX_ATTEMPTS or wait_s > self.max_wait_s:
                    raise
                await self.clock.sleep(wait_s)
                attempt, place, not_before = attempt + 1, None, -inf
            except BaseException:  # cancelled, or a failure that nobody foresaw
                self.limiter.unanswered()
                raise
            else:
                self.limiter.answered()
                return answer

    async def _attempt(self, request: Mapping[str, Any]) -> Any:
        sdk, is_free = self.sdk(), False  # what was sent and brought no answer may be charged all the same
        try:
            # The SDK's own timeout starts anew with every byte that trickles in.
            async with asyncio.timeout(self.timeout_s):
                answer = await self._send(request)
            if is_free := answer is not None:  # it says itself what it took
                return answer
        except (TimeoutError, sdk.APITimeoutError) as error:
            is_free = type(error.__cause__).__name__ in NOT_SENT
            raise api_error("llm_timeout", f"gave no answer within {self.timeout_s:g} s", retryable=True) from None
        except sdk.APIConnectionError as error:
            reason = type(error.__cause__ or error).__name__
            is_free = reason in NOT_SENT
            what = f"cannot be reached, or broke off its answer ({reason}). Check the network and "
            raise api_error("llm_unreachable", what + self._address_setting(self.llm), retryable=True) from None
        except sdk.APIStatusError as error:
            is_free = is_refusal(error.status_code)
            raise self._status_error(error, request) from None
        except (sdk.APIResponseValidationError, json.JSONDecodeError, UnicodeDecodeError, RecursionError):
            pass
        except (sdk.APIError, ValueError, TypeError) as error:
            is_free = True
            raise api_error("llm_bad_request", f"cannot be asked this way: {error}") from None
        finally:
            if not is_free:
                count_wait(0.0, lost=1)
        # A proxy's own page, or a body cut off: another attempt may get through.
        raise api_error("llm_bad_answer", "gave an answer that is no message", retryable=True)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.client.close()

    def _status_error(self, error: Any, request: Mapping[str, Any]) -> LLMError:
        status, headers = error.status_code, error.response.headers
        said = error.body.get("error", error.body) if isinstance(error.body, Mapping) else error.body
        fields = said if isinstance(said, Mapping) else {"message": said}
        api_message = printable(str(fields.get("message") or error.message))[:_MAX_API_MESSAGE]
        details = fields.get("details")
        api_code = (details.get("error_code") if isinstance(details, Mapping) else None) or fields.get("code")
        code, remedy = self._code_and_remedy(status, api_code, api_message, request)
        override = headers.get("x-should-retry")
        is_transient = status in _RETRYABLE_STATUSES or status >= 500
        retryable = code != "llm_no_credit" and (override == "true" or (is_transient and override != "false"))
        wait_s = retry_after_s(headers)
        if wait_s is not None and wait_s > _LONG_WAIT_S:
            remedy = f"It asks to wait {wait_s:g} s; try again then"
        problem = api_error(code, f"answered HTTP {status}: {api_message}. {remedy}", retryable=retryable)
        if retryable and status in _REFUSED_STATUSES:
            problem = RefusedError.of(problem)
        problem.retry_after_s = wait_s
        return problem

    def _code_and_remedy(
        self, status: int, api_code: object, api_message: str, request: Mapping[str, Any]
    ) -> tuple[str, str]:
        # A low balance comes as a plain 400, without a code.
        if status == 402 or api_code in _NO_CREDIT or "credit balance" in api_message:
            return "llm_no_credit", "Buy credit or raise the limit, where the API key was made"
        if status == 400 and "temperature" in api_message and request.get("temperature") is not None:
            return _TEMPERATURE_REFUSED, ""
        is_forced = request["tool_choice"].get("type") in _FORCES
        if status == 400 and is_forced and ("tool_choice" in api_message or "forc" in api_message):
            return _FORCED_TOOL_REFUSED, ""
        if api_code in _REFUSED_PROMPT:
            return "llm_refused", "Answer the mail yourself"
        match status:
            case 401 | 403:
                return "llm_authentication", f"Check {self.package.upper()}_API_KEY"
            case 404:
                return "llm_model_not_found", f"Check llm.model and {self._address_setting(self.llm)}"
            case 413:
                return "llm_request_too_large", "Send less at a time"
            case 429:
                return "llm_rate_limited", "Run fewer at a time, or try again later"
            case 529:
                return "llm_overloaded", "Try again later"
        if api_code == "context_length_exceeded":
            return "llm_request_too_large", "Send less at a time"
        if status >= 500 or status in _RETRYABLE_STATUSES:
            return "llm_unavailable", "Try again later"
        return "llm_bad_request", "Check the section llm of the configuration"


def _without_force(request: Mapping[str, Any]) -> dict[str, Any]:
    """The model is asked for a tool, and shown no other: nothing would tell it which one is meant."""
    choice = request["tool_choice"]
    if choice.get("type") not in _FORCES:
        return dict(request)
    kept = {name: value for name, value in choice.items() if name == "disable_parallel_tool_use"}
    tools = [tool for tool in request["tools"] if choice.get("name") in (None, tool.get("name"))]
    return {**request, "tools": tools, "tool_choice": {"type": "auto", **kept}}


def _http_client(sdk: Any) -> Any:
    """The SDK's own HTTP client, made by us: one that the SDK fails to make complains once more when it is deleted."""
    import httpx2  # the SDK's own

    try:
        return sdk.DefaultAsyncHttpxClient()
    except (OSError, httpx2.InvalidURL, ValueError, ImportError) as error:
        names = "SSL_CERT_FILE, SSL_CERT_DIR" if isinstance(error, OSError) else "HTTPS_PROXY, HTTP_PROXY, ALL_PROXY"
        raise ConfigurationError(
            f"The environment lets nobody connect. Correct {names}, or remove them", "llm_bad_environment"
        ) from None


def is_refusal(status: int) -> bool:
    """Whether an HTTP status says that nothing was done, so that nothing is charged; what failed on the way may be."""
    return 400 <= status < 500 or status in _REFUSED_STATUSES


def api_error(code: str, what: str, *, retryable: bool = False) -> LLMError:
    """What an API did, as its caller is told."""
    return LLMError(f"The model API {what}", code, retryable=retryable)
