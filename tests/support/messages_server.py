"""A server on loopback that speaks `/v1/messages` and `/v1/chat/completions`: it answers, or fails as a network can.

Its answers are the instruction interpreter's unless a test sets others, so that the agent at the other end finds a
reliable model behind the real SDK and a real socket.
"""

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from shipped_instructions import shipped_interpreter

from guarantee_email_agent.config.settings import Config, Llm, Secrets
from guarantee_email_agent.utils.errors import LLMError

USAGE: Mapping[str, int] = {
    "input_tokens": 12,
    "output_tokens": 5,
    "cache_read_input_tokens": 7,
    "cache_creation_input_tokens": 3,
}
CHAT_USAGE: Mapping[str, Any] = {
    "prompt_tokens": 22,
    "completion_tokens": 5,
    "total_tokens": 27,
    "prompt_tokens_details": {"cached_tokens": 7, "cache_write_tokens": 3},
}
"""The same tokens as OpenAI counts them."""
HANG_S = 10.0
TRICKLE_S = 0.02


@dataclass(frozen=True, slots=True)
class Reply:
    """length: what the header says, if not the truth. hangs: nothing is sent before the server ends. resets: the
    connection, half-way through the body. trickles: a byte of it every few milliseconds, until the client has enough.
    held_until: when a test lets it go.
    """

    body: bytes
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    length: int | None = None
    hangs: bool = False
    resets: bool = False
    trickles: bool = False
    held_until: threading.Event | None = None


INTERPRETED = Reply(b"interpreted")
"""Answer the request as the instructions in it say."""


def answer(*content: Mapping[str, Any], stop_reason: str = "tool_use", **more: Any) -> Reply:
    message = {
        "id": "msg_1",
        "type": "message",
        "role": "assistant",
        "model": "claude-sonnet-4-6",
        "content": list(content),
        "stop_reason": stop_reason,
        "stop_sequence": None,
        "usage": dict(USAGE),
        **more,
    }
    return Reply(json.dumps(message).encode())


def completion(*calls: Mapping[str, Any], ending: str | None = "tool_calls", **more: Any) -> Reply:
    """What `/v1/chat/completions` answers. more: fields of the message; of the whole those of `defaults`."""
    defaults = {"model": "gpt-5-mini-2025-08-07", "usage": CHAT_USAGE, "service_tier": "default"}
    whole = {name: more.pop(name, value) for name, value in defaults.items()}
    functions = [{"name": call["name"], "arguments": json.dumps(call["input"])} for call in calls]
    ids = [call["id"] for call in calls]
    tool_calls = [{"id": id_, "type": "function", "function": one} for id_, one in zip(ids, functions, strict=True)]
    message = {"role": "assistant", "content": None, "refusal": None, "tool_calls": tool_calls, **more}
    choices = [{"index": 0, "finish_reason": ending, "message": message, "logprobs": None}]
    return Reply(json.dumps({"id": "chatcmpl-1", "object": "chat.completion", "choices": choices, **whole}).encode())


def error_reply(status: int, message: str = "It went wrong", error_code: str | None = None, **headers: str) -> Reply:
    error: dict[str, Any] = {"type": "some_error", "message": message}
    if error_code is not None:
        error["details"] = {"error_code": error_code}
    body = json.dumps({"type": "error", "error": error}).encode()
    return Reply(body, status, {name.replace("_", "-"): value for name, value in headers.items()})


def tool_call(name: str, value: object, number: int = 1) -> dict[str, Any]:
    return {"type": "tool_use", "id": f"toolu_{number}", "name": name, "input": value}


def text(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def anthropic_config(url: str, **llm: Any) -> Config:
    """A configuration that asks the server at an address."""
    secrets = Secrets(anthropic_api_key="test-key", anthropic_base_url=url)
    return Config(llm=Llm(**{"provider": "anthropic", "timeout_s": 5, **llm}), secrets=secrets)


def openai_config(url: str, **llm: Any) -> Config:
    secrets = Secrets(openai_api_key="test-key")
    return Config(llm=Llm(**{"provider": "openai", "base_url": f"{url}/v1", "timeout_s": 5, **llm}), secrets=secrets)


class MessagesServer:
    """Gives `replies` one after the other, the last one for ever; one may depend on the request.

    `requests`, `headers`: what it was asked.
    """

    def __init__(self) -> None:
        self.replies: list[Reply | Callable[[dict[str, Any]], Reply]] = [INTERPRETED]
        self.requests: list[dict[str, Any]] = []
        self.headers: list[Mapping[str, str]] = []
        self.most_at_once = 0
        self._at_once = 0
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._http = ThreadingHTTPServer(("127.0.0.1", 0), _handler(self))
        self._http.daemon_threads = True
        self._thread = threading.Thread(target=self._http.serve_forever, args=(0.01,))
        self.url = f"http://127.0.0.1:{self._http.server_port}"

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._over.set()
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    @property
    def is_over(self) -> bool:
        return self._over.is_set()

    def wait(self) -> None:
        """Until the server ends, or for longer than any client waits."""
        self._over.wait(HANG_S)

    @property
    def tools_asked_for(self) -> list[str]:
        return [request["tools"][0]["name"] for request in self.requests]

    def take(self, request: dict[str, Any], headers: Mapping[str, str]) -> Reply:
        with self._lock:
            self.requests.append(request)
            self.headers.append(headers)
            self._at_once += 1
            self.most_at_once = max(self.most_at_once, self._at_once)
            reply = self.replies.pop(0) if len(self.replies) > 1 else self.replies[0]
        if callable(reply):
            return reply(request)
        return interpreted_reply(request) if reply is INTERPRETED else reply

    def done(self) -> None:
        with self._lock:
            self._at_once -= 1


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """Gives honest answers unless a test sets `replies`."""
    server = MessagesServer()
    server.start()
    yield server
    server.stop()


def _handler(server: MessagesServer) -> type[BaseHTTPRequestHandler]:
    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            assert self.path.startswith("/v1/")
            body = self.rfile.read(int(self.headers["content-length"]))
            request = json.loads(body) if body.startswith(b"{") else {"upload": body.decode()}
            reply = server.take(request, {name.lower(): value for name, value in self.headers.items()})
            try:
                self._give(reply)
            except (BrokenPipeError, ConnectionResetError):
                self.close_connection = True  # the client had enough
            finally:
                server.done()

        def _give(self, reply: Reply) -> None:
            if reply.hangs:
                server.wait()
            if reply.held_until is not None:
                reply.held_until.wait(HANG_S)
            self.send_response(reply.status)
            for name, value in {"content-type": "application/json", **reply.headers}.items():
                self.send_header(name, value)
            self.send_header("content-length", str(len(reply.body) if reply.length is None else reply.length))
            self.end_headers()
            if reply.trickles:
                self._trickle()
            self.wfile.write(reply.body)
            self.wfile.flush()
            if reply.resets:
                self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                self.connection.close()
            self.close_connection = reply.resets or reply.length is not None

        def _trickle(self) -> None:
            """White space, which may stand before any JSON, for longer than any client waits."""
            until = time.monotonic() + HANG_S
            while time.monotonic() < until and not server.is_over:
                self.wfile.write(b" ")
                self.wfile.flush()
                time.sleep(TRICKLE_S)

        def log_message(self, *_: object) -> None:
            pass

    return Handler


def interpreted_reply(request: Mapping[str, Any]) -> Reply:
    reply = completion if (is_chat := "system" not in request) else answer
    if is_chat:
        system, *messages = request["messages"]
        tools = [{**tool["function"], "input_schema": tool["function"]["parameters"]} for tool in request["tools"]]
        request = {**request, "system": [text(system["content"])], "messages": messages, "tools": tools}
        request["tool_choice"] = request["tool_choice"]["function"]
    tool = request["tool_choice"].get("name") or request["tools"][0]["name"]
    asked = {**request, "tool_choice": {"type": "tool", "name": tool}}
    asking = shipped_interpreter().create(**asked)
    try:
        asking.send(None)
    except StopIteration as done:
        return reply(*(tool_call(block.name, dict(block.input)) for block in done.value.content))
    except LLMError as error:
        return error_reply(400, error.message)
    raise AssertionError("the interpreter never waits")
