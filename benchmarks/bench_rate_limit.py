"""How much of its rate limits a live run uses: calls against a local server with the limits of the real API.

    uv run --extra anthropic --extra view python benchmarks/bench_rate_limit.py [--seconds 60] [--at-once 3]
        [--only config] [--least 95]

The server speaks /v1/messages, takes 0.5 to 3 s for an answer, and has token buckets for requests, input tokens and
output tokens that refill all the time. What is over a limit gets HTTP 429 at once. Utilisation is what the server
admitted of the scarce limit, divided by all that it could have admitted: the bucket, full at first, and its refill.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import random
import socket
import sys
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from email.utils import formatdate
from math import ceil
from time import perf_counter, time
from typing import Any, Final, Literal

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from guarantee_email_agent.config.settings import Config, Llm, Secrets
from guarantee_email_agent.llm.anthropic_client import AnthropicModel
from guarantee_email_agent.llm.rate_limit import RateLimiter
from guarantee_email_agent.utils.clock import SystemClock
from guarantee_email_agent.utils.errors import LLMError

REQUESTS: Final = 600
INPUT_TOKENS: Final = 240_000
OUTPUT_TOKENS: Final = 60_000
PLENTY: Final = 10_000_000
CHARACTERS_PER_TOKEN: Final = 4
TOKENS_A_SECOND: Final = 100.0
"""How fast an answer is written."""

Kind = Literal["requests", "input-tokens", "output-tokens"]
RetryAfter = Literal["seconds", "date", "garbage", "none"]


@dataclass(slots=True)
class Bucket:
    """Of the server: `granted` counts all that could be taken of it until now."""

    per_minute: float
    size: float
    level: float = 0.0
    at: float = 0.0
    granted: float = 0.0
    taken: float = 0.0

    def fill(self, now: float) -> None:
        self.level = self.granted = self.size
        self.at = now

    def refill(self, now: float) -> None:
        new = (now - self.at) * self.per_minute / 60
        self.level, self.at = min(self.size, self.level + new), now
        self.granted += new

    def take(self, amount: float) -> None:
        self.level -= amount
        self.taken += amount


@dataclass(frozen=True, slots=True)
class Row:
    """One run. limit: the scarce one. configured: whether the client is told. headers: whether answers tell it.

    bucket_s: seconds of its rate that a bucket holds. later: factor of the scarce limit from the middle of the run on.
    overloaded: the share of requests that get 529. others: the share of the limit that another program uses.
    """

    name: str
    limit: Kind = "requests"
    configured: bool = False
    headers: Literal["yes", "no", "garbage"] = "no"
    retry_after: RetryAfter = "seconds"
    bucket_s: float = 10.0
    later: float = 1.0
    overloaded: float = 0.0
    others: float = 0.0
    jobs: int = 40


ROWS: Final = (
    Row("config: requests", configured=True),
    Row("config: input tokens", "input-tokens", configured=True),
    Row("headers: requests", headers="yes"),
    Row("headers: input tokens", "input-tokens", headers="yes"),
    Row("headers: output tokens", "output-tokens", headers="yes"),
    Row("headers: requests, a minute's bucket", headers="yes", bucket_s=60, jobs=100),
    Row("retry-after alone: requests"),
    Row("retry-after alone: input tokens", "input-tokens"),
    Row("retry-after alone, as a date", retry_after="date"),
    Row("config and headers: requests", configured=True, headers="yes"),
    Row("hostile: a 429 says nothing", retry_after="none"),
    Row("hostile: all headers are garbage", headers="garbage", retry_after="garbage"),
    Row("hostile: headers, limit halves", headers="yes", later=0.5),
    Row("hostile: headers, limit doubles", headers="yes", later=2.0, jobs=60),
    Row("hostile: config, limit halves", configured=True, later=0.5),
    Row("hostile: headers, 5 % overloaded (529)", headers="yes", overloaded=0.05),
    Row("hostile: headers, others take 30 %", headers="yes", others=0.3),
    Row("hostile: headers, a bucket of 3 s", headers="yes", bucket_s=3),
)


@dataclass
class Api:
    """The server's side of one run."""

    row: Row
    random: random.Random = field(default_factory=lambda: random.Random(7))
    refused: int = 0
    overloaded: int = 0
    began: float | None = None
    now: float = 0.0

    def __post_init__(self) -> None:
        self.buckets = {
            kind: Bucket(limit, limit * self.row.bucket_s / 60)
            for kind, limit in {
                "requests": REQUESTS if self.row.limit == "requests" else PLENTY,
                "input-tokens": INPUT_TOKENS if self.row.limit == "input-tokens" else PLENTY,
                "output-tokens": OUTPUT_TOKENS if self.row.limit == "output-tokens" else PLENTY,
            }.items()
        }

    @property
    def scarce(self) -> Bucket:
        return self.buckets[self.row.limit]

    def refill(self) -> None:
        now = perf_counter()
        if self.began is None:
            self.began = now
            for bucket in self.buckets.values():
                bucket.fill(now)
        for bucket in self.buckets.values():
            bucket.refill(now)

    def change_limit(self) -> None:
        self.refill()
        self.scarce.per_minute *= self.row.later

    async def answer(self, request: Request) -> Response:
        body = await request.json()
        tokens = len(json.dumps(body)) // CHARACTERS_PER_TOKEN
        self.refill()
        if self.random.random() < self.row.overloaded:
            self.overloaded += 1
            return _error(529, "overloaded_error", {"retry-after": "1"})
        need = {"requests": 1.0, "input-tokens": float(tokens), "output-tokens": 1.0}
        short_s = max((need[kind] - bucket.level) * 60 / bucket.per_minute for kind, bucket in self.buckets.items())
        if short_s > 0:
            self.refused += 1
            return _error(429, "rate_limit_error", {**self.headers(), **self.retry_after(short_s)})
        for kind in ("requests", "input-tokens"):
            self.buckets[kind].take(need[kind])
        headers = self.headers()  # as they were when the request came
        output = self.random.randint(30, 250)
        await asyncio.sleep(0.5 + output / TOKENS_A_SECOND)
        self.refill()
        self.buckets["output-tokens"].take(output)
        return JSONResponse(_message(tokens, output), headers=headers)

    def headers(self) -> dict[str, str]:
        if self.row.headers == "no":
            return {}
        if self.row.headers == "garbage":
            said = self.random.choice(("-3", "lots", "", "0", "1e3", "nan", "9" * 40))
            return {
                f"anthropic-ratelimit-{kind}-{what}": said
                for kind in (*self.buckets, "tokens")
                for what in ("limit", "remaining", "reset")
            }
        headers = {}
        for kind, bucket in self.buckets.items():
            remaining = max(0.0, bucket.level)
            said = int(remaining) if kind == "requests" else round(remaining, -3)
            headers[f"anthropic-ratelimit-{kind}-limit"] = f"{bucket.per_minute:.0f}"
            headers[f"anthropic-ratelimit-{kind}-remaining"] = f"{said:.0f}"
        return headers

    def retry_after(self, seconds: float) -> dict[str, str]:
        match self.row.retry_after:
            case "seconds":
                return {"retry-after": f"{ceil(seconds)}"}
            case "date":
                return {"retry-after": formatdate(ceil(time()) + ceil(seconds), usegmt=True)}
            case "garbage":
                return {"retry-after": self.random.choice(("soon", "-5", "nan", "inf", "", "Fri, 99 Nov"))}
            case "none":
                return {}

    async def use_up(self) -> None:
        """What another program takes of the same limit."""
        while True:
            await asyncio.sleep(0.1)
            self.refill()
            share = self.row.others * self.scarce.per_minute / 600
            self.scarce.level -= share
            self.scarce.granted -= share


def _error(status: int, kind: str, headers: Mapping[str, str]) -> Response:
    return JSONResponse({"type": "error", "error": {"type": kind, "message": "Wait"}}, status, headers=headers)


def _message(tokens: int, output: int) -> Mapping[str, Any]:
    return {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": [{"type": "tool_use", "id": "toolu_1", "name": "note", "input": {"number": 1}}],
        "stop_reason": "tool_use",
        "stop_sequence": None,
        "usage": {"input_tokens": tokens, "output_tokens": output},
    }


@asynccontextmanager
async def served(api: Api) -> AsyncIterator[str]:
    """The address of the server."""
    app = Starlette(routes=[Route("/v1/messages", api.answer, methods=["POST"])])
    config = uvicorn.Config(app, log_level="critical", lifespan="off", access_log=False)
    server = uvicorn.Server(config)
    with socket.socket() as listening:
        listening.bind(("127.0.0.1", 0))
        serving = asyncio.create_task(server.serve([listening]))
        try:
            yield f"http://127.0.0.1:{listening.getsockname()[1]}"
        finally:
            server.should_exit = server.force_exit = True
            await serving


@dataclass
class Tally:
    """The client's side."""

    answers: int = 0
    failed: int = 0
    longest_s: float = 0.0


async def ask(model: Any, numbers: random.Random, tally: Tally) -> None:
    """One call after the other."""
    while True:
        asked = perf_counter()
        mail = "My dryer is broken. " * numbers.randint(50, 150)
        try:
            await model.messages.create(
                model="claude-sonnet-4-6",
                max_tokens=1024,
                system=[{"type": "text", "text": "Read the mail."}],
                messages=[{"role": "user", "content": mail}],
                tools=[{"name": "note", "input_schema": {"type": "object"}}],
                tool_choice={"type": "tool", "name": "note"},
            )
        except LLMError:
            tally.failed += 1
        else:
            tally.answers += 1
        tally.longest_s = max(tally.longest_s, perf_counter() - asked)


def configured(row: Row) -> dict[str, float]:
    if not row.configured:
        return {}
    if row.limit == "requests":
        return {"requests_per_minute": REQUESTS}
    # All tokens are configured, and the server counts input alone: what an answer takes on average comes on top.
    return {"tokens_per_minute": INPUT_TOKENS * (1 + 140 / 600)}


async def measure(row: Row, seconds: float) -> tuple[Row, float, Api, Tally]:
    """The utilisation in percent."""
    api, tally, numbers = Api(row), Tally(), random.Random(11)
    async with served(api) as url:
        secrets = Secrets(anthropic_api_key="no-key", anthropic_base_url=url)
        config = Config(llm=Llm(provider="anthropic", **configured(row)), secrets=secrets)
        limiter = RateLimiter.of(config.llm, SystemClock())
        model = AnthropicModel.of(config, limiter=limiter)
        callers = [asyncio.create_task(ask(model, numbers, tally)) for _ in range(row.jobs)]
        other = asyncio.create_task(api.use_up())
        await asyncio.sleep(seconds / 2)
        api.change_limit()
        await asyncio.sleep(seconds / 2)
        api.refill()
        used = 100 * api.scarce.taken / api.scarce.granted
        for task in (*callers, other):
            task.cancel()
        await asyncio.gather(*callers, other, return_exceptions=True)
        await model.aclose()
    return row, used, api, tally


async def measure_all(rows: Sequence[Row], seconds: float, at_once: int, least: float) -> bool:
    """Whether every row is good enough."""
    print(f"{'':<40} {'used':>7} {'answers':>8} {'429':>6} {'529':>5} {'failed':>7} {'longest call':>13}")
    enough = True
    for first in range(0, len(rows), at_once):
        batch = rows[first : first + at_once]
        for row, used, api, tally in await asyncio.gather(*(measure(row, seconds) for row in batch)):
            enough = enough and used >= least and not tally.failed
            print(
                f"{row.name:<40} {used:>6.1f}% {tally.answers:>8} {api.refused:>6} {api.overloaded:>5} "
                f"{tally.failed:>7} {tally.longest_s:>11.1f} s",
                flush=True,
            )
    return enough


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else None)
    parser.add_argument("--seconds", type=float, default=60.0, metavar="S", help="of each run (default: 60)")
    parser.add_argument("--at-once", type=int, default=3, metavar="N", help="runs at a time (default: 3)")
    parser.add_argument("--only", default="", metavar="WORD", help="only the rows whose name has it")
    parser.add_argument("--least", type=float, default=95.0, metavar="PERCENT", help="to be used (default: 95)")
    options = parser.parse_args(arguments)
    logging.disable(logging.CRITICAL)
    rows = [row for row in ROWS if options.only in row.name]
    return 0 if asyncio.run(measure_all(rows, options.seconds, options.at_once, options.least)) else 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
