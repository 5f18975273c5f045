"""The record of a scenario's run, in the shape in which any agent's work is judged (`judging.record`).

Whoever wants a record lets the agent work with a trace's clients; all other runs pay nothing for it.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Mapping
from typing import Any

from guarantee_email_agent.eval.mocks import mail_of, send_email_arguments
from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.integrations.ports import Reply
from guarantee_email_agent.llm.port import ModelClient


class RunTrace:
    """Stands between the agent and its four clients, and notes in order what passes.

    conversation: the exchange with the model, in OpenAI's shape. execution_trace: each call of a service as an action,
    with what came back as its feedback. model_calls: how often the model was asked.
    """

    def __init__(self, clients: Mapping[str, Any]) -> None:
        self.conversation: list[dict[str, Any]] = []
        self.execution_trace: list[dict[str, Any]] = []
        self.model_calls = 0
        self.clients: dict[str, Any] = {
            "gmail": _TracedMail(self, clients["gmail"]),
            "warranty": _TracedWarranty(self, clients["warranty"]),
            "ticketing": _TracedTicketing(self, clients["ticketing"]),
            "anthropic": _TracedModel(self, clients["anthropic"]),
        }

    async def act(self, action: dict[str, Any], call: Awaitable[Mapping[str, Any]], ends: bool = False) -> Any:
        """Wait for `call` and note it. ends: whether the work is done once this has succeeded."""
        try:
            answer = await call
        except Exception as error:
            self._note(action, False, f"{type(error).__name__}: {error}")
            raise
        self._note(action, ends, _as_json(answer))
        return answer

    def _note(self, action: dict[str, Any], done: bool, message: str) -> None:
        self.execution_trace.append({"action": action, "feedback": {"done": done, "message": message}})


def record_of_run(test_case: EvalTestCase, trace: RunTrace, actual: Mapping[str, Any]) -> dict[str, Any]:
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
            "mail": mail_of(test_case),
            "actual_output": {key: value for key, value in actual.items() if key != "processing_time_ms"},
        },
    }


class _TracedMail:
    def __init__(self, trace: RunTrace, mail: Any) -> None:
        self._trace, self._mail = trace, mail

    async def send(self, reply: Reply) -> Any:
        arguments = {key: value for key, value in send_email_arguments(reply).items() if value is not None}
        return await self._trace.act({"action_type": "send_email", **arguments}, self._mail.send(reply), ends=True)


class _TracedWarranty:
    def __init__(self, trace: RunTrace, warranty: Any) -> None:
        self._trace, self._warranty = trace, warranty

    async def check_warranty(self, serial_number: str) -> Any:
        action = {"action_type": "check_warranty", "serial_number": serial_number}
        return await self._trace.act(action, self._warranty.check_warranty(serial_number))


class _TracedTicketing:
    def __init__(self, trace: RunTrace, ticketing: Any) -> None:
        self._trace, self._ticketing = trace, ticketing

    async def create_ticket(self, ticket_data: Mapping[str, Any]) -> Any:
        action = {"action_type": "create_ticket", **ticket_data}
        return await self._trace.act(action, self._ticketing.create_ticket(ticket_data))


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
