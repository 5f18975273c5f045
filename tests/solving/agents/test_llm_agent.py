"""A model at the network's edge that says what a test wants, and what the agent makes of it."""

import asyncio
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack
from typing import Any

import pytest
from scripted_model import ScriptedModel
from tasks_and_sandboxes import task_context

from guarantee_email_agent.llm.port import Message, TextBlock, TokenUsage, ToolUseBlock
from guarantee_email_agent.solving.agents.agent import AgentStepError, TaskContext
from guarantee_email_agent.solving.agents.llm_agent import MAX_REMINDERS, LlmAgent
from guarantee_email_agent.solving.tools import ToolResult
from guarantee_email_agent.utils.clock import count_wait
from guarantee_email_agent.utils.errors import LLMError

SHELL = ToolUseBlock("toolu_1", "shell_execute", {"command": "ls"})
READ = ToolUseBlock("toolu_2", "file_read", {"file": "/a"})


class Model(ScriptedModel):
    """Keeps the requests; a number among its answers is the seconds that it thinks."""

    def __init__(self, *answers: Any) -> None:
        super().__init__(*answers)
        self.requests: list[Mapping[str, Any]] = []
        self.closed = 0

    async def create(self, **request: Any) -> Any:
        self.requests.append(request)
        answer = await super().create(**request)
        return await asyncio.sleep(answer) if isinstance(answer, float) else answer

    async def aclose(self) -> None:
        self.closed += 1


def said(
    *content: TextBlock | ToolUseBlock, stop_reason: str = "tool_use", model: str = "claude-sonnet-4-6"
) -> Message:
    return Message("msg_1", model, content, stop_reason, TokenUsage(1_000_000, 100_000))


MakeAgent = Callable[..., LlmAgent]


@pytest.fixture
def make_agent() -> Iterator[MakeAgent]:
    with ExitStack() as stack:

        def make(model: Model, context: TaskContext | None = None, name: str = "claude-sonnet-4-6") -> LlmAgent:
            agent = LlmAgent(context or task_context(), model, name)
            stack.callback(agent.close)
            return agent

        yield make


def test_first_request_has_instruction_and_tools_and_forces_none(make_agent: MakeAgent) -> None:
    model = Model(said(SHELL))
    make_agent(model).next_step(())
    request = model.requests[0]
    assert request["messages"][0]["content"][0]["text"] == "Add 40 and 2."
    assert request["tool_choice"] == {"type": "auto"}
    assert {tool["name"] for tool in request["tools"]} >= {"shell_execute", "task_complete"}
    assert request["temperature"] == 0.0


def test_everything_so_far_is_marked_for_the_cache_and_nothing_before(make_agent: MakeAgent) -> None:
    model = Model(said(SHELL), said(SHELL))
    agent = make_agent(model)
    agent.next_step([ToolResult(call, "fine") for call in agent.next_step(()).calls])
    marked = [
        (number, block["type"])
        for number, message in enumerate(model.requests[1]["messages"])
        for block in message["content"]
        if "cache_control" in block
    ]
    assert marked == [(2, "tool_result")]
    assert "cache_control" in model.requests[1]["system"][0]


def test_answer_without_a_tool_gets_a_reminder(make_agent: MakeAgent) -> None:
    model = Model(said(TextBlock("I am done: 42"), stop_reason="end_turn"), said(SHELL))
    agent = make_agent(model)
    step = agent.next_step(())
    assert step.reply is not None
    assert "task_complete" in step.reply
    agent.next_step(())
    assert model.requests[1]["messages"][2]["content"][0]["text"] == step.reply


def test_reminders_end(make_agent: MakeAgent) -> None:
    talk = said(TextBlock("Hm."), stop_reason="end_turn")
    agent = make_agent(Model(*[talk] * 10))
    steps = [agent.next_step(()) for _ in range(MAX_REMINDERS + 1)]
    assert [step.failure is None for step in steps] == [True] * MAX_REMINDERS + [False]
    assert steps[-1].failure.code == "no_answer"


def test_empty_answer_can_be_repeated_to_the_api(make_agent: MakeAgent) -> None:
    model = Model(said(TextBlock(""), stop_reason="end_turn"), said(SHELL))
    agent = make_agent(model)
    agent.next_step(())
    agent.next_step(())
    assert model.requests[1]["messages"][1]["content"][0]["text"]


def test_call_that_was_cut_off_is_not_carried_out(make_agent: MakeAgent) -> None:
    half = ToolUseBlock("toolu_2", "file_write", {"file": "/a"})
    step = make_agent(Model(said(SHELL, half, stop_reason="max_tokens"))).next_step(())
    assert step.calls[0].problem is None
    assert step.calls[1].problem is not None
    assert "cut off" in step.calls[1].problem


@pytest.mark.parametrize("arguments", ["ls", ["ls"], None])
def test_arguments_that_are_no_object_are_the_models_to_mend(make_agent: MakeAgent, arguments: Any) -> None:
    step = make_agent(Model(said(ToolUseBlock("toolu_1", "shell_execute", arguments)))).next_step(())
    assert step.calls[0].arguments == {}
    assert step.calls[0].problem is not None


@pytest.mark.parametrize(
    ("reason", "code"), [("refusal", "refused"), ("model_context_window_exceeded", "context_window")]
)
def test_refusal_ends_the_task_with_its_tokens_counted(make_agent: MakeAgent, reason: str, code: str) -> None:
    step = make_agent(Model(said(TextBlock("I will not."), SHELL, stop_reason=reason))).next_step(())
    assert (step.failure.code, step.failure.retryable, step.calls) == (code, False, ())
    assert step.usage.total == 1_100_000


@pytest.mark.parametrize(
    ("code", "again"), [("llm_overloaded", True), ("llm_authentication", True), ("llm_bad_request", False)]
)
def test_failing_model_is_an_error_of_its_own(make_agent: MakeAgent, code: str, again: bool) -> None:
    with pytest.raises(AgentStepError, match="it is away") as caught:
        make_agent(Model(LLMError("it is away", code))).next_step(())
    assert (caught.value.code, caught.value.reason.retryable) == ("model_error", again)


def test_model_that_takes_too_long_is_left_at_the_deadline(make_agent: MakeAgent) -> None:
    with pytest.raises(AgentStepError, match="time for the task was over") as caught:
        make_agent(Model(30.0), task_context(seconds=0.2)).next_step(())
    assert caught.value.details["lost"] == 1


def test_what_an_attempt_without_an_answer_took_is_not_known(make_agent: MakeAgent) -> None:
    class LosingModel(Model):
        async def create(self, **request: Any) -> Any:
            count_wait(0.0, lost=1)
            return await super().create(**request)

    agent = make_agent(LosingModel(said(SHELL), LLMError("No answer", "llm_timeout")))
    step = agent.next_step(())
    assert (step.usage.uncounted, step.cost_usd) == (1, None)
    with pytest.raises(AgentStepError) as caught:
        agent.next_step((ToolResult(step.calls[0], "done"),))
    assert caught.value.details["lost"] == 1


def test_waiting_for_a_rate_limit_takes_none_of_the_tasks_time(make_agent: MakeAgent) -> None:
    class HeldBackModel(Model):
        async def create(self, **request: Any) -> Any:
            count_wait(1000.0)
            await asyncio.sleep(0.2)
            count_wait(1000.0)
            return await super().create(**request)

    context = task_context(seconds=100.0)
    make_agent(HeldBackModel(said(SHELL)), context).next_step(())
    assert context.deadline.remaining_s() > 2000


def test_connections_are_closed() -> None:
    model = Model(said(SHELL))
    agent = LlmAgent(task_context(), model, "claude-sonnet-4-6")
    agent.next_step(())
    agent.close()
    assert model.closed == 1
