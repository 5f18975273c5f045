"""The language model behind an agent of somebody else's: what it asks passes here, to be recorded, counted, replayed.
Where it reaches its model by itself, the spans that it exports tell what that took.

Anthropic's messages, OpenAI's chat completions and responses are counted. Whatever else an agent asks passes, too, and
what that takes is not known.
"""

from __future__ import annotations

import json
import re
import time
from asyncio import to_thread
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any, Final

from httpx2 import AsyncClient, HTTPError, InvalidURL, Timeout
from httpx2 import Response as Answer
from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.types import Receive, Scope, Send

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.agents.span_receiver import SpanReceiver, exporter_environment
from guarantee_email_agent.eval.live import PaidRun
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.scenario_model import LlmMode, SuiteRecordings
from guarantee_email_agent.llm.anthropic_client import AnthropicModel
from guarantee_email_agent.llm.api_client import NOT_SENT, ApiModel, is_refusal
from guarantee_email_agent.llm.cost_limit import CostLimit
from guarantee_email_agent.llm.openai_client import OpenAiModel, chat_usage
from guarantee_email_agent.llm.port import ClosableModel, LanguageModel, TokenUsage, request_digest
from guarantee_email_agent.llm.provider import live_model
from guarantee_email_agent.llm.rate_limit import Permit, RateLimiter, retry_after_s
from guarantee_email_agent.llm.recording import Exchange, RecordingClient, RecordingName, Recordings, ReplayClient
from guarantee_email_agent.llm.usage import (
    PLAIN_TIERS,
    MeteredModel,
    ModelUsage,
    UsageMeter,
    cost_usd,
    has_list_price,
    usage_of,
)
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.errors import ConfigurationError, LLMError
from guarantee_email_agent.utils.terminal import Progress
from guarantee_email_agent.utils.text import cost_text

MAX_BODY_BYTES: Final = 64_000_000
KEY_SET_BY_US: Final = "set-by-eval"
"""What an agent without a key has for one: the SDKs want one, and the real one need not be known to it."""

_CONNECT_S: Final = 10.0
_APIS: Final[Mapping[str, type[ApiModel]]] = {"anthropic": AnthropicModel, "openai": OpenAiModel}
_SPANS: Final = "otlp"
_BASE_URLS: Final = {"anthropic": "/anthropic", "openai": "/openai/v1"}
_IN_BASE_URL: Final = {"anthropic": "", "openai": "v1/"}
_OF_CONNECTION: Final = frozenset(
    {"host", "connection", "keep-alive", "transfer-encoding", "te", "trailer", "upgrade", "content-length"}
    | {"accept-encoding", "content-encoding", "proxy-authorization", "proxy-connection", "x-forwarded-for"}
)
_LAST_EVENTS: Final = ("message_stop", "response.completed", "response.incomplete", "response.failed")
_LAST_LINE: Final = re.compile(r"^data: ?\[DONE\]", re.MULTILINE)
_STREAMED: Final = ("/messages", "/completions", "/responses")
_FREE: Final = ("/count_tokens", "/input_tokens")
_PLAIN_CALLS: Final = ("function_call", "custom_tool_call")  # of the agent's own tools; others are paid for each
_TRANSIENT: Final = frozenset({408, 409, 425, 429})


class ModelGateway(PaidRun):
    """For one run of a suite. Used in the event loop of the server that publishes it."""

    def __init__(
        self,
        config: Config,
        recordings: SuiteRecordings | None,
        llm: LlmMode,
        *,
        max_cost_usd: float | None = None,
        repeat: int = 1,
    ) -> None:
        """recordings: to which exchanges are written, or by which they are answered where it `replays`. `passes`:
        whether the agent is to reach its model through us.
        """
        self.config, self.recordings, self.replays, self.passes = config, recordings, llm == "replay", llm != "offline"
        self.model, self.meter = "the agent's own", UsageMeter()
        self.limit = CostLimit(self.meter, None if self.replays else max_cost_usd, repeat, None)
        self.limiter = RateLimiter.of(config.llm, SystemClock())
        self._client: AsyncClient | None = None
        self._judge: ClosableModel | None = None

    def judge(self) -> LanguageModel:
        """The configured model, which answers rubrics. Raises ConfigurationError where its key or SDK is missing."""
        if self._judge is None:
            self._judge = live_model(self.config, SystemClock(), self.limiter)
        return self._judge

    @property
    def client(self) -> AsyncClient:
        if self._client is None:
            self._client = AsyncClient(timeout=Timeout(_CONNECT_S, read=None))
        return self._client

    def of_case(self, case: EvalTestCase) -> CaseModel:
        return CaseModel(self, None if self.recordings is None else self.recordings.of_scenario(case))

    def address(self, provider: str) -> str:
        """Where the real API is."""
        llm = self.config.llm
        config = self.config if llm.provider == provider else replace(self.config, llm=replace(llm, base_url=None))
        return _APIS[provider].address(config).rstrip("/")

    async def end(self) -> None:
        """A scenario is over."""
        self.limit.end()

    async def aclose(self) -> None:
        for client in (self._client, self._judge):
            if client is not None:
                await client.aclose()

    def progress_detail(self) -> str:
        return "" if self.meter.cost_usd == 0 else cost_text(self.meter.cost_usd)

    def show_progress(self, progress: Progress) -> None:
        """Each result is told as it comes."""


class CaseModel:
    """The model of one scenario, in all of its runs."""

    def __init__(self, gateway: ModelGateway, recordings: Recordings | None) -> None:
        self._gateway = gateway
        self._recordings = recordings
        self._runs: list[GatewayRun] = []

    def begin(self, number: int) -> GatewayRun:
        """number: from 1."""
        self._runs.append(GatewayRun(self._gateway, self._recordings, number))
        return self._runs[-1]

    def usage(self) -> ModelUsage | None:
        """What the run that was begun last took; None where nothing is paid for."""
        if self._gateway.replays:
            return None
        usage = self._runs[-1].meter.total
        self._gateway.limit.learn(usage)
        return usage

    def finish(self) -> str | None:
        """Called once after the last run; what went wrong with the recording."""
        if self._recordings is None or self._gateway.replays:
            return None
        if any(run.unanswered for run in self._runs):
            return "a request got no whole answer, so nothing is recorded, and what was before stays. Record once more"
        return self._recordings.write([run.exchanges for run in self._runs])


class GatewayRun:
    """An ASGI application for one run of an agent. `failure`: why the run does not count.

    unanswered: digests of requests that failed, or whose answer was cut off, and that got none when asked again.
    """

    def __init__(self, gateway: ModelGateway, recordings: Recordings | None, number: int) -> None:
        self._gateway, self._recordings, self._number = gateway, recordings, number
        self._used: set[RecordingName] = set()
        self._under_way: dict[Request, _Passing] = {}
        self.meter = UsageMeter(None if gateway.replays else gateway.meter)
        self.spans = SpanReceiver()
        self.exchanges: list[Exchange] = []
        self.unanswered: set[str] = set()
        self.failure: str | None = None

    def environment(self, url: str) -> dict[str, str]:
        """For the agent. url: under which this is published."""
        secrets = self._gateway.config.secrets
        found = exporter_environment(f"{url}/{_SPANS}")
        for provider, path in _BASE_URLS.items() if self._gateway.passes else ():
            found[f"{provider.upper()}_BASE_URL"] = url + path
            if self._gateway.replays or getattr(secrets, f"{provider}_api_key") is not None:
                found[f"{provider.upper()}_API_KEY"] = KEY_SET_BY_US
        return found

    def judge(self) -> LanguageModel | None:
        """Who answers the scenario's rubric: counted, recorded and replayed with what the agent asks; None: nobody."""
        if not self._gateway.passes:
            return None
        if self._gateway.replays:
            assert self._recordings is not None
            return ReplayClient(self._recordings, self._number)
        judge = RecordingClient(MeteredModel(self._gateway.judge(), self.meter))
        judge.exchanges = self.exchanges
        return judge

    def end(self, *, is_whole: bool) -> None:
        """Called once the agent has. is_whole: whether it came to its end, so that it exported all its spans."""
        if not self._gateway.passes:
            self.spans.is_whole &= is_whole
            self.meter.add(self.spans.usage())

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request = Request(scope, receive)
        provider, _, place = request.url.path.lstrip("/").partition("/")[2].partition("/")
        try:
            response = await self._answer(request, provider, place)
            await response(scope, receive, send)
        except ClientDisconnect:
            return
        finally:
            if (passing := self._under_way.pop(request, None)) is not None:
                await self._finish(passing)

    async def _answer(self, request: Request, provider: str, place: str) -> Response:
        if provider not in (*(_APIS if self._gateway.passes else ()), _SPANS):
            return _problem(404, "there is no such API")
        if provider != _SPANS:
            try:
                require_extra(provider, f"--llm, for an agent that asks {provider}'s API,", provider)
            except ConfigurationError as error:
                self.failure = self.failure or error.message
                return _problem(400, error.message)
            await to_thread(import_module, f"{provider}.types")  # which take a second to load
        body = bytearray()
        async for part in request.stream():
            body += part
            if len(body) > MAX_BODY_BYTES:
                self.spans.is_whole &= provider != _SPANS
                return _problem(413, f"the request is over {MAX_BODY_BYTES // 1_000_000} MB")
        if provider == _SPANS:
            problem = self.spans.receive(place, request.headers, bytes(body))
            is_json = "json" in request.headers.get("content-type", "")
            return Response("{}" if is_json else b"") if problem is None else _problem(400, problem)
        try:
            content = json.loads(body) if body else None
        except (ValueError, RecursionError):  # an upload has borders of its own each time, so it is never found again
            if self._recordings is not None:
                return _problem(400, "the request is no JSON, which can neither be recorded nor replayed")
            content = None
        query = f"?{request.url.query}" if request.url.query else ""
        asked = {"method": request.method, "path": f"{provider}/{place}{query}", "body": content}
        if self._gateway.replays:
            return self._replayed(asked)
        return await self._passed_on(request, provider, f"{place}{query}", bytes(body), asked)

    def _replayed(self, asked: Mapping[str, Any]) -> Response:
        assert self._recordings is not None
        try:
            answer = self._recordings.find(asked, self._number, self._used).answer
        except LLMError as error:
            self.failure = self.failure or error.message
            return _problem(400, error.message)
        self._count(asked, answer["status"], answer["body"], 0.0)
        headers = {"content-type": answer["content_type"]}
        return Response(answer["body"], answer["status"], headers)

    async def _passed_on(
        self, request: Request, provider: str, place: str, body: bytes, asked: Mapping[str, Any]
    ) -> Response:
        headers = {name: value for name, value in request.headers.items() if name not in _OF_CONNECTION}
        key = getattr(self._gateway.config.secrets, f"{provider}_api_key")
        for name in ("authorization", "x-api-key"):
            if KEY_SET_BY_US in headers.get(name, ""):
                headers[name] = headers[name].replace(KEY_SET_BY_US, key or "")
        permit = await self._gateway.limiter.acquire() if request.method == "POST" else None
        url = f"{self._gateway.address(provider)}/{place.removeprefix(_IN_BASE_URL[provider])}"
        headers["accept-encoding"] = "identity"
        self._under_way[request] = passing = _Passing(permit, asked, time.perf_counter())
        try:
            client = self._gateway.client
            sent = client.build_request(request.method, url, headers=headers, content=body)
            passing.answer = answer = await client.send(sent, stream=True)
        except (HTTPError, InvalidURL, OSError, ValueError) as error:
            del self._under_way[request]
            self.unanswered.add(passing.digest)
            self._gateway.limiter.unanswered()
            if isinstance(error, HTTPError) and type(error).__name__ not in NOT_SENT:
                self._count(asked, 200, "", time.perf_counter() - passing.began)
            why = f"{type(error).__name__}; see {provider.upper()}_BASE_URL"
            return _problem(502, f"the model's API cannot be reached ({why})")
        back = {name: value for name, value in answer.headers.items() if name not in _OF_CONNECTION}
        return StreamingResponse(passing.parts(), answer.status_code, back)

    async def _finish(self, passing: _Passing) -> None:
        """Count and keep an answer, whether the agent has read it or not."""
        answer, asked, text = passing.answer, passing.asked, passing.whole_text()
        status = 200 if answer is None else answer.status_code  # the agent did not wait for it
        self._count(asked, status, text or "", time.perf_counter() - passing.began)
        self.unanswered.add(passing.digest)
        if answer is None:
            self._gateway.limiter.unanswered()
            return
        limiter = self._gateway.limiter
        if passing.permit is not None and status in (429, 529):
            limiter.refused(passing.permit, retry_after_s(answer.headers), over_limit=status == 429)
        elif passing.permit is not None:
            limiter.answered()
        if text is not None and status < 500 and status not in _TRANSIENT:  # what is asked again is no answer
            kept = {"status": status, "content_type": passing.content_type, "body": text}
            self.exchanges.append(Exchange(asked, passing.digest, kept))
            self.unanswered.discard(passing.digest)
        await answer.aclose()  # last, since an agent that hung up cancels it

    def _count(self, asked: Mapping[str, Any], status: int, text: str, took_s: float) -> None:
        """Count an answer. text: empty for one that was cut off, or is none."""
        if is_refusal(status) or asked["method"] != "POST" or str(asked["path"]).partition("?")[0].endswith(_FREE):
            return
        try:
            usage, cost = _taken(str(asked["path"]), _payloads(text))
        except (ArithmeticError, AttributeError, RecursionError, TypeError, ValueError):  # not of the form that we know
            usage, cost = TokenUsage(uncounted=1), None
        self.meter.add(ModelUsage(1, usage, cost, round(took_s * 1000)))


@dataclass(slots=True)
class _Passing:
    """A request, and its answer on the way to the agent; None while the API has said nothing."""

    permit: Permit | None
    asked: Mapping[str, Any]
    began: float
    answer: Answer | None = None
    content: bytearray = field(default_factory=bytearray)
    is_whole: bool = False

    async def parts(self) -> AsyncIterator[bytes]:
        assert self.answer is not None
        async for part in self.answer.aiter_bytes():
            self.content += part
            yield part
        self.is_whole = True

    @property
    def digest(self) -> str:
        return request_digest(self.asked)

    @property
    def content_type(self) -> str:
        return "" if self.answer is None else self.answer.headers.get("content-type", "application/json")

    def whole_text(self) -> str | None:
        """The answer; None where it is not there to its end, or no text. Of a stream the last event is the end: an
        agent may hang up on it, and what is between may close the connection before.
        """
        try:
            text = self.content.decode()
            if is_json := "json" in self.content_type and text != "":
                json.loads(text)
        except (ValueError, RecursionError):
            return None
        path = str(self.asked["path"]).partition("?")[0]
        if "event-stream" not in self.content_type or not path.endswith(_STREAMED):
            return text if self.is_whole or is_json else None
        is_ended = _LAST_LINE.search(text) or any(each.get("type") in _LAST_EVENTS for each in _payloads(text))
        return text if is_ended else None


def _payloads(text: str) -> Iterator[Mapping[str, Any]]:
    """The JSON objects of an answer, or of each event of a stream (text/event-stream)."""
    lines = re.split(r"[\r\n]+", text) if text.lstrip()[:1] not in ("{", "") else (f"data:{text}",)
    for line in lines:
        if line.startswith("data:"):
            try:
                payload = json.loads(line[5:])
            except (ValueError, RecursionError):
                continue
            if isinstance(payload, Mapping):
                yield payload


def _taken(path: str, payloads: Iterable[Mapping[str, Any]]) -> tuple[TokenUsage, float | None]:
    """Tokens and US dollars of one answer, as far as it tells them, by the SDKs' own types.

    They are constructed, not validated, so that what is missing is None: others deviate in what costs nothing.
    """
    parts = (each for each in payloads if each.keys() & {"message", "response", "usage"})
    model, tiers, tokens, extra = _of_messages(parts) if path.startswith("anthropic/") else _of_openai(path, parts)
    is_plain = not extra and all(tier in PLAIN_TIERS for tier in tiers)
    return tokens, cost_usd(model, tokens) if is_plain and isinstance(model, str) else None


_Taken = tuple[object, list[object], TokenUsage, bool]
"""The model, its tiers of service, tokens, and whether the API took more than these."""


def _of_messages(parts: Iterable[Mapping[str, Any]]) -> _Taken:
    from anthropic.types import Message, RawMessageDeltaEvent, RawMessageStartEvent

    model, told = "", dict[str, Any]()
    for each in parts:
        part: Message | RawMessageDeltaEvent
        if each.get("type") == "message_delta":
            part = RawMessageDeltaEvent.construct(**each)
        else:
            is_begun = each.get("type") == "message_start"
            part = RawMessageStartEvent.construct(**each).message if is_begun else Message.construct(**each)
            model = part.model
        told |= part.usage.to_dict(exclude_none=True)
    tools = (message := Message.construct(usage=told)).usage.server_tool_use
    extra = tools is not None and any(tools.to_dict().values())
    return model, [], usage_of(message), extra or not has_list_price(message)


def _of_openai(path: str, parts: Iterable[Mapping[str, Any]]) -> _Taken:
    from openai.types.chat import ChatCompletion
    from openai.types.responses import Response, ResponseCompletedEvent

    model, tiers, tokens, extra = "", list[object](), TokenUsage(uncounted=1), False
    for each in parts:
        if "/responses" in path:
            is_event = "response" in each
            response = ResponseCompletedEvent.construct(**each).response if is_event else Response.construct(**each)
            model, tier = response.model, response.service_tier
            kinds = (str(item.type) for item in response.output or ())
            extra = extra or any(kind.endswith("_call") and kind not in _PLAIN_CALLS for kind in kinds)
            if (used := response.usage) is not None:
                counts = {"prompt_tokens": used.input_tokens, "completion_tokens": used.output_tokens}
                details = used.to_dict().get("input_tokens_details")
                tokens = chat_usage({**counts, "prompt_tokens_details": details})
        else:
            completion = ChatCompletion.construct(**each)
            model, tier = completion.model, completion.service_tier
            tokens = tokens if completion.usage is None else chat_usage(completion.usage.to_dict())
        tiers.append(tier)
    return model, tiers, tokens, extra


def _problem(status: int, message: str) -> JSONResponse:
    """An error in a form that both SDKs read, and do not ask again for."""
    error = {"type": "error", "error": {"type": "invalid_request_error", "message": message}}
    return JSONResponse(error, status, {"x-should-retry": "false"})
