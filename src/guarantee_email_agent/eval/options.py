"""What a run of the suite begins with."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from guarantee_email_agent.runlog.views.run_report import RunOptions

if TYPE_CHECKING:
    from guarantee_email_agent.eval.agents.command_agent import McpTransport
    from guarantee_email_agent.eval.scenario_model import LlmMode
    from guarantee_email_agent.runlog.records import KeptRun


@dataclass(frozen=True, slots=True, kw_only=True)
class EvalOptions(RunOptions):
    """What the command line decides.

    threshold: percent. require_proof: as `decide_gate` has it. only: what `select_scenarios`
    takes; empty for all. repeat: runs of each scenario. records_dir: a
    folder for the record of every run. run_id, started: what a JSON report calls this run, and when it began (ISO
    8601). llm: who answers as the language model. agent: who is judged in place of our own agent in this process, as
    `agents.evaluation.find_agent` reads it; agent_mcp: how it reaches the mocks; agent_timeout: seconds for a scenario.
    max_cost_usd: what the run may take of the API, in US dollars; None for no limit.
    kept: where the run is kept; None for nowhere. resume: the run that goes on, empty for the last interrupted one.
    changed: run only what is not as it was at its last verdict, and take the other verdicts over.
    baseline: the run that it is held against; no_regressions: whether the gate is passed only where nothing is worse.
    last_failed: only what failed when it ran last. fail_fast: end at the first failure. quiet: say nothing of what
    passed but its count. verbose: name what passed in a large suite, too. caution_curve: print what each
    caution comes to, in place of results and gate. open: show the cases of a sealed suite, which counts.
    """

    threshold: float
    require_proof: bool = False
    only: tuple[str, ...] = ()
    repeat: int = 1
    records_dir: Path | None = None
    run_id: str = ""
    started: str = ""
    llm: LlmMode = "offline"
    agent: str | None = None
    agent_mcp: McpTransport = "http"
    agent_timeout: float = 60.0
    max_cost_usd: float | None = None
    kept: KeptRun | None = None
    resume: str | None = None
    changed: bool = False
    baseline: str | None = None
    no_regressions: bool = False
    last_failed: bool = False
    fail_fast: bool = False
    quiet: bool = False
    verbose: bool = False
    caution_curve: bool = False
    open: bool = False

    @property
    def is_deterministic(self) -> bool:
        """Whether the same mail gets the same answer each time: our own agent, and no live model."""
        return self.agent is None and self.llm in ("offline", "replay")
