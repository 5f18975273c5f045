"""The record of a scenario's run, in the shape in which any agent's work is judged (`judging.record`).

Whoever wants a record lets the agent work with a trace's clients; all other runs pay nothing for it.
"""

from __future__ import annotations

import json
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from guarantee_email_agent.eval.mocks import build_raw_email, send_email_arguments
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.integrations.ports import Reply
from guarantee_email_agent.llm.port import ModelClient


class RunTrace:
    """Stands between the agent and its four clients, and notes in order what passes.

    conversation: the exchange with the model, in OpenAI's shape. execution_trace: each call of a service as an action,
    with what came back as its feedback; step_ms: what each took, which is no part of it. model_calls: how often the
    model was asked.
    """

    def __init__(self, clients: Mapping[str, Any], monotonic: Callable[[], float] = time.monotonic) -> None:
        """monotonic: seconds."""
        self._monotonic = monotonic
        self.step_ms: list[float] = []
        self.conversation: list[dict[str, Any]] = []
        self.execution_trace: list[dict[str, Any]] = []
        self.model_calls = 0
        self.clients: dict[str, Any] = {
            **dict.fromkeys(("gmail", "warranty", "ticketing"), _TracedServices(self, clients)),
            "anthropic": _TracedModel(self, clients["anthropic"]),
            "look_ups": {
                name: _TracedLookUp(self, name, client) for name, client in clients.get("look_ups", {}).items()
            },
        }

    def as_dict(self, *, conversation: bool) -> dict[str, Any]:
        """The way of a run, without the prompts, which are the instruction files.

        conversation: also what was said to the model, and what it answered.
        """
        if not conversation:
            return {"execution_trace": self.execution_trace}
        said = [message for message in self.conversation if message["role"] != "system"]
        return {"conversation": said, "execution_trace": self.execution_trace}

    async def record_call(
        self, action: dict[str, Any], call: Awaitable[Mapping[str, Any]], *, completes: bool = False
    ) -> Any:
        """Wait for `call` and note it. completes: whether the work is done once this has succeeded."""
        feedback: dict[str, Any] = {"done": False}
        began = self._monotonic()
        try:
            answer = await call
            feedback = {"done": completes, "message": _as_json(answer)}
        except Exception as error:
            feedback["message"] = f"{type(error).__name__}: {error}"
            raise
        finally:
            self.step_ms.append(1000 * (self._monotonic() - began))
            self.execution_trace.append({"action": action, "feedback": feedback})
        return answer


def build_record(test_case: EvalTestCase, trace: RunTrace, actual: Mapping[str, Any]) -> dict[str, Any]:
    """Everything about one run, as a judge sees it. The same run gives the same record, so it holds no times.

    actual: what the mocks captured, as `EvalResult.actual_output` has it.
    """
    return {
        "task_name": test_case.scenario_id,
        "instruction": test_case.input.email.body,
        "status": "failed" if actual["failed_step"] else "success",
        "iterations": trace.model_calls,
        "task_result": actual["response_body"] or "",
        "conversation": trace.conversation,
        "execution_trace": trace.execution_trace,
        "sandbox": {},
        "scenario": {
            "category": test_case.category,
            "description": test_case.description,
            "mail": build_raw_email(test_case),
            "actual_output": {key: value for key, value in actual.items() if key != "processing_time_ms"},
        },
    }


class _TracedServices:
    """Mailbox, warranty system and ticketing system."""

    def __init__(self, trace: RunTrace, clients: Mapping[str, Any]) -> None:
        self._record_call = trace.record_call
        self._clients = clients

    async def send(self, reply: Reply) -> Any:
        arguments = {key: value for key, value in send_email_arguments(reply).items() if value is not None}
        action = {"action_type": "send_email", **arguments}
        return await self._record_call(action, self._clients["gmail"].send(reply), completes=True)

    async def save_draft(self, reply: Reply) -> Any:
        arguments = {key: value for key, value in send_email_arguments(reply).items() if value is not None}
        action = {"action_type": "save_draft", **arguments}
        return await self._record_call(action, self._clients["gmail"].save_draft(reply), completes=True)

    async def check_warranty(self, serial_number: str) -> Any:
        action = {"action_type": "check_warranty", "serial_number": serial_number}
        return await self._record_call(action, self._clients["warranty"].check_warranty(serial_number))

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Any:
        action = {"action_type": "create_ticket", **ticket_data}
        return await self._record_call(action, self._clients["ticketing"].create_ticket(ticket_data))

    async def add_note(self, ticket_id: str, note: str, idempotency_key: str) -> Any:
        action = {"action_type": "add_note", "ticket_id": ticket_id, "note": note, "idempotency_key": idempotency_key}
        call = self._clients["ticketing"].add_note(ticket_id, note, idempotency_key)
        return await self._record_call(action, call)


class _TracedLookUp:
    """A configured look-up."""

    def __init__(self, trace: RunTrace, name: str, client: Any) -> None:
        self._trace, self._name, self._client = trace, name, client

    async def look_up(self, number: str) -> Any:
        action = {"action_type": "look_up", "look_up": self._name, "number": number}
        return await self._trace.record_call(action, self._client.look_up(number))


class _TracedModel(ModelClient):
    def __init__(self, trace: RunTrace, client: Any) -> None:
        self._trace, self._client = trace, client

    async def create(self, **request: Any) -> Any:
        self._trace.model_calls += 1
        conversation = self._trace.conversation
        conversation.extend({"role": "system", "content": block["text"]} for block in request["system"])
        conversation.extend(dict(message) for message in request["messages"])
        answer = await self._client.messages.create(**request)
        conversation.append(_assistant_message(answer))
        return answer


def _assistant_message(answer: Any) -> dict[str, Any]:
    """A Messages API answer as OpenAI's chat completions have it: tool calls apart, their input as JSON text."""
    texts = [block.text for block in answer.content if block.type == "text"]
    message: dict[str, Any] = {"role": "assistant", "content": "\n".join(texts) if texts else None}
    calls = [
        {"id": block.id, "type": "function", "function": {"name": block.name, "arguments": _as_json(block.input)}}
        for block in answer.content
        if block.type == "tool_use"
    ]
    return message | {"tool_calls": calls} if calls else message


def _as_json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False, default=dict)
