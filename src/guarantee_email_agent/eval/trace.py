"""The record of a scenario's run, in the shape in which any agent's work is judged (`judging.record`)."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from guarantee_email_agent.eval.models import EvalTestCase
from guarantee_email_agent.eval.tool_mocks import ToolMocks
from guarantee_email_agent.llm.port import LanguageModel, ModelClient


@dataclass(slots=True)
class RunTrace:
    """What happened in one run: the calls as its mocks noted them, and what was said, in OpenAI's shape.

    iterations: how often the model was asked. Of an agent that is not ours, task_result is its own last word, None for
    the reply that was sent, printed what it printed, by the name of the stream, others the steps that no mock noted.
    """

    tools: ToolMocks
    conversation: list[Any] = field(default_factory=list)
    iterations: int = 0
    task_result: str | None = None
    printed: Mapping[str, str] = field(default_factory=dict)
    others: Sequence[dict[str, Any]] = ()
    is_own: bool = True

    @property
    def execution_trace(self) -> list[dict[str, Any]]:
        """Each call of a tool as an action, with what came back as its feedback."""
        return [*(call.as_step() for call in self.tools.calls), *self.others]

    @property
    def step_ms(self) -> tuple[float | None, ...]:
        """What each took, in milliseconds, which is no part of it; None for one that nobody waited for."""
        return (*(call.took_ms for call in self.tools.calls), *(None for _ in self.others))

    def follow(self, model: LanguageModel) -> LanguageModel:
        """`model`, whose exchange with the agent becomes the conversation."""
        return _TracedModel(self, model)

    def as_dict(self, *, conversation: bool) -> dict[str, Any]:
        """The way of a run, without the prompts of our own agent, which are the instruction files.

        conversation: also what was said to the model, and what it answered.
        """
        steps = {"execution_trace": self.execution_trace}
        if not self.is_own:
            return {"conversation": self.conversation, **steps, "task_result": self.task_result, **self.printed}
        said = [message for message in self.conversation if message["role"] != "system"]
        return {"conversation": said, **steps} if conversation else steps


def build_record(
    test_case: EvalTestCase, trace: RunTrace, actual: Mapping[str, Any], mail: Mapping[str, Any] | None
) -> dict[str, Any]:
    """Everything about one run, as a judge sees it. The same run of our own agent gives the same record, without times.

    actual: what the mocks captured, as `EvalResult.actual_output` has it. mail: as the agent got it; None
    where it got a task alone.
    """
    steps = trace.execution_trace
    if not trace.is_own:
        times = (None if took is None else round(took, 3) for took in trace.step_ms)
        # A call that the agent left behind may come in meanwhile.
        steps = [{**step, "duration_ms": took} for step, took in zip(steps, times, strict=False)]
    return {
        "task_name": test_case.scenario_id,
        "instruction": test_case.input.instruction,
        "status": "failed" if actual["failed_step"] or actual["error"] else "success",
        "iterations": trace.iterations,
        "task_result": (actual["response_body"] or "") if trace.task_result is None else trace.task_result,
        "conversation": trace.conversation,
        "execution_trace": steps,
        "sandbox": {},
        **trace.printed,
        "scenario": {
            "category": test_case.category,
            "description": test_case.description,
            "mail": mail,
            **({} if test_case.input.task is None else {"task": test_case.input.task}),
            "actual_output": {key: value for key, value in actual.items() if key != "processing_time_ms"},
        },
    }


class _TracedModel(ModelClient):
    def __init__(self, trace: RunTrace, client: Any) -> None:
        self._trace, self._client = trace, client

    async def create(self, **request: Any) -> Any:
        self._trace.iterations += 1
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
