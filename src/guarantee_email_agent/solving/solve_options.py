"""What the command line decides of `solve`, and what makes the runner of tasks that it asks for."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.config.task_allowance import NOTHING_MORE, TaskAllowance
from guarantee_email_agent.runlog.views.run_report import RunOptions
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.sandbox.sandbox import SandboxKind, usual_limits
from guarantee_email_agent.sandbox.sandbox_factory import open_sandbox as open_real_sandbox
from guarantee_email_agent.solving.agents.agent import AgentFactory
from guarantee_email_agent.solving.agents.human_agent import human_agent_factory
from guarantee_email_agent.solving.agents.program_agent import program_agent_factory
from guarantee_email_agent.solving.agents.script_agent import script_agent_factory
from guarantee_email_agent.solving.run_limits import Interruption, RunLimits
from guarantee_email_agent.solving.task_runner import OpenSandbox, TaskRunner
from guarantee_email_agent.solving.tools import SandboxApi
from guarantee_email_agent.utils.errors import ConfigurationError

if TYPE_CHECKING:
    from guarantee_email_agent.runlog.records import KeptRun

AgentKind = Literal["llm", "script", "command", "human"]
JUDGE_MARGIN_S: Final = 3600.0
"""Seconds that a sandbox may live on for its judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SolveOptions(RunOptions):
    """What the command line decides.

    directory: a task or a folder of tasks. script: for the agent `script`, a file, or a folder with one for each task.
    command: for the agent `command`. model: for the agent `llm`, if not the configured one. judge_timeout_s: seconds
    for each judge, None as the task says. allowed: the most that a task may ask for.
    kept: where the run is kept; None for nowhere.
    """

    output_dir: Path
    agent: AgentKind = "llm"
    script: Path | None = None
    command: str | None = None
    model: str | None = None
    sandbox: SandboxKind = "embedded"
    run_all: bool = False
    limits: RunLimits = field(default_factory=RunLimits)
    judge_timeout_s: float | None = None
    allowed: TaskAllowance = NOTHING_MORE
    kept: KeptRun | None = None


def task_runner(
    options: SolveOptions,
    load_config: Callable[[], Config],
    interruption: Interruption,
    *,
    started: Callable[[], str],
    open_sandbox: OpenSandbox | None = None,
    connect: Callable[[str], SandboxApi] | None = None,
) -> TaskRunner:
    """Raises ConfigurationError for an agent that cannot be used."""
    return TaskRunner(
        _agent_factory(options, load_config),
        options.agent,
        open_sandbox or _sandbox_opener(options, interruption),
        options.limits,
        options.output_dir,
        started=started,
        connect=connect or SandboxClient,
        sandbox_kind=options.sandbox,
        judge_timeout_s=options.judge_timeout_s,
        allowed=options.allowed,
        interruption=interruption,
    )


def _sandbox_opener(options: SolveOptions, interruption: Interruption) -> OpenSandbox:
    usual = usual_limits(options.allowed)
    # The judge looks into it after the agent's time is over.
    lasting = replace(usual, time_s=max(usual.time_s, options.limits.wall_time_s + JUDGE_MARGIN_S))
    hidden = (options.directory, options.output_dir)
    return lambda task: open_real_sandbox(
        task, options.sandbox, lasting, interruption.requested, options.allowed, hidden
    )


def _agent_factory(options: SolveOptions, load_config: Callable[[], Config]) -> AgentFactory:
    """Raises ConfigurationError where something that the agent needs is missing, or given for another kind."""
    for name, value, kind in (
        ("--script", options.script, "script"),
        ("--command", options.command, "command"),
        ("--model", options.model, "llm"),
    ):
        if value is not None and options.agent != kind:
            raise ConfigurationError(f"{name} goes with --agent {kind}, not {options.agent}", "cli_bad_usage")
    match options.agent:
        case "llm":
            from guarantee_email_agent.solving.agents.llm_agent import llm_agent_factory  # loads asyncio

            has_cost_limit = options.limits.max_cost_usd is not None
            return llm_agent_factory(load_config(), options.model, has_cost_limit=has_cost_limit)
        case "script":
            return script_agent_factory(options.script)
        case "command":
            return program_agent_factory(options.command)
        case "human":
            return human_agent_factory(sys.stdin, options.jobs)
