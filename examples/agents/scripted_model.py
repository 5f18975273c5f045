"""A small model made of rules: speaks Anthropic's Messages API on loopback, so that agents run without a key.

    python scripted_model.py PROGRAM ARGS

runs the program with ANTHROPIC_BASE_URL and ANTHROPIC_API_KEY set, and ends with its exit code. The model knows what a
request says and nothing else: the mail or the meeting that is to be booked, and what the tools answered.
"""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

ORDER_NUMBER = re.compile(r"\bA-\d{4}\b")
ABOUT_ORDERS = re.compile(r"\b(orders?|parcel|delivery|package)\b", re.IGNORECASE)

Block = dict[str, Any]


def next_block(messages: list[dict[str, Any]]) -> Block:
    """What the model says next: text, or a call of a tool."""
    calls = [block for message in messages for block in _blocks(message) if block["type"] == "tool_use"]
    results = [block for message in messages for block in _blocks(message) if block["type"] == "tool_result"]
    if (asked := _text(messages[0])).startswith('{"title":'):
        return _booking_step(json.loads(asked), calls, results)
    if not calls:
        return _first_step(asked)
    if calls[-1]["name"] == "get_order":
        return _after_look_up(calls[-1]["input"]["order_number"], results[-1])
    return _says("The reply could not be sent." if results[-1].get("is_error") else "The mail is answered.")


def _first_step(mail: str) -> Block:
    numbers = sorted(set(ORDER_NUMBER.findall(mail)))
    if len(numbers) == 1:
        return _calls("get_order", order_number=numbers[0])
    if numbers:
        return _calls("reply", text=f"Which of your orders is this about: {' or '.join(numbers)}?")
    if ABOUT_ORDERS.search(mail):
        return _calls("reply", text="Please send us the number of your order. It begins with A-.")
    return _says("This mail is not about an order. Nothing was sent.")


def _after_look_up(number: str, result: Block) -> Block:
    match _answer_of(result):
        case {"status": "shipped", "date": date}:
            return _calls("reply", text=f"Your order {number} was shipped on {date} and should be with you soon.")
        case {"status": "open", "date": date}:
            return _calls("reply", text=f"Your order {number} is being packed. It will be shipped by {date}.")
        case {"status": "cancelled", "date": date}:
            return _calls("reply", text=f"Your order {number} was cancelled on {date}.")
        case {"status": "unknown"}:
            return _calls("reply", text=f"We have no order {number}. Please check the number.")
    return _says("The order cannot be looked up now. Nothing was sent.")


def _booking_step(meeting: dict[str, Any], calls: list[Block], results: list[Block]) -> Block:
    asked = {name: meeting[name] for name in ("day", "minutes")}
    if not calls:
        return _calls("free_slots", **asked)
    free, *booked = map(_answer_of, results)
    if free is None:
        return _says(json.dumps({"state": "failed", "why": "the calendar does not answer"}))
    if booked and booked[-1] is not None:
        return _says(json.dumps({"state": "booked", "start": calls[-1]["input"]["start"], "id": booked[-1]["id"]}))
    if (slots := free["slots"][len(booked) :]) == []:
        return _says(json.dumps({"state": "failed", "why": "no slot is free"}))
    return _calls("book", **asked, start=slots[0], title=meeting["title"])


def _answer_of(result: Block) -> Any:
    """The JSON that a tool answered; None for an error."""
    try:
        return None if result.get("is_error") else json.loads(_text(result))
    except ValueError:
        return None


def _says(text: str) -> Block:
    return {"type": "text", "text": text}


def _calls(tool: str, **arguments: Any) -> Block:
    return {"type": "tool_use", "id": f"toolu_{tool}", "name": tool, "input": arguments}


def _blocks(message: dict[str, Any]) -> list[Block]:
    content = message.get("content") or []
    return [_says(content)] if isinstance(content, str) else content


def _text(message: dict[str, Any]) -> str:
    return "\n".join(block["text"] for block in _blocks(message) if block["type"] == "text")


def stream_events(message: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """A message as the API streams it: its head, each block empty and then filled, its end."""
    yield {"type": "message_start", "message": {**message, "content": [], "stop_reason": None}}
    for index, block in enumerate(message["content"]):
        if block["type"] == "text":
            empty, delta = _says(""), {"type": "text_delta", "text": block["text"]}
        else:
            empty = {**block, "input": {}}
            delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
        yield {"type": "content_block_start", "index": index, "content_block": empty}
        yield {"type": "content_block_delta", "index": index, "delta": delta}
        yield {"type": "content_block_stop", "index": index}
    end = {"stop_reason": message["stop_reason"], "stop_sequence": None}
    yield {"type": "message_delta", "delta": end, "usage": message["usage"]}
    yield {"type": "message_stop"}


class MessagesHandler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        request = json.loads(self.rfile.read(int(self.headers["content-length"])))
        block = next_block(request["messages"])
        message = {
            "id": "msg_1",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": [block],
            "stop_reason": "tool_use" if block["type"] == "tool_use" else "end_turn",
            "stop_sequence": None,
            "usage": {"input_tokens": 1, "output_tokens": 1},
        }
        if request.get("stream"):
            events = (f"event: {event['type']}\ndata: {json.dumps(event)}\n\n" for event in stream_events(message))
            self._answer("text/event-stream", "".join(events))
        else:
            self._answer("application/json", json.dumps(message))

    def _answer(self, content_type: str, body: str) -> None:
        data = body.encode()
        self.send_response(200)
        self.send_header("content-type", content_type)
        self.send_header("content-length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, *_: object) -> None:
        pass


def main(command: list[str]) -> int:
    if not command:
        print("usage: scripted_model.py PROGRAM ARGS", file=sys.stderr)
        return 2
    server = ThreadingHTTPServer(("127.0.0.1", 0), MessagesHandler)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    url = f"http://127.0.0.1:{server.server_port}"
    environment = {**os.environ, "ANTHROPIC_BASE_URL": url, "ANTHROPIC_API_KEY": "none"}
    signal.signal(signal.SIGINT, lambda *_: None)  # Ctrl-C reaches the program, too, and it says how it ends
    try:
        code = subprocess.run(command, env=environment, check=False).returncode
    except OSError as error:
        print(f"scripted_model.py: {command[0]} cannot be started: {error.strerror}", file=sys.stderr)
        return 2
    return code if code >= 0 else 128 - code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
