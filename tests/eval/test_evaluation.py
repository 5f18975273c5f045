import asyncio
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from mcp_by_hand import post
from scenario_folder import ScenarioFolder, broken, failing

import guarantee_email_agent
from guarantee_email_agent import EvalTestCase, Evaluation, evaluate, evaluate_async
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.utils.errors import ConfigurationError, EvalError, InstructionError

ROOT = Path(__file__).parents[2]


@pytest.fixture
def suite(tmp_path: Path, config: Config) -> ScenarioFolder:
    """Two scenarios, the second of which fails."""
    suite = ScenarioFolder(tmp_path / "scenarios", config)
    suite.write(1)
    suite.write(2, failing)
    return suite


@pytest.fixture
def evaluation(suite: ScenarioFolder) -> Evaluation:
    return evaluate(suite.folder, config=suite.config)


def reply(task: dict[str, Any]) -> None:
    arguments = {"to": task["email"]["from"], "subject": "Re", "body": "Hello", "message_id": "<1@example.com>"}
    post(task["mcp_servers"]["mail"]["url"], "tools/call", name="send_reply", arguments=arguments)


def checks(evaluation: Evaluation) -> list[list[str]]:
    """The names of the failed checks of each result."""
    return [[failure.partition(":")[0] for failure in result.failures] for result in evaluation.results]


class TestImport:
    def test_the_package_loads_nothing_of_its_own(self) -> None:
        script = "import sys; import guarantee_email_agent; print([n for n in sys.modules if 'email_agent.' in n])"
        assert subprocess.run([sys.executable, "-c", script], capture_output=True, check=True).stdout == b"[]\n"

    @pytest.mark.parametrize("name", guarantee_email_agent.__all__)
    def test_every_name_is_there(self, name: str) -> None:
        assert getattr(getattr(guarantee_email_agent, name), "__name__", name) == name
        assert name in dir(guarantee_email_agent)

    def test_no_other_name_is(self) -> None:
        with pytest.raises(AttributeError, match="has no attribute 'evaluat'"):
            _ = guarantee_email_agent.evaluat


class TestOutcome:
    def test_results_stand_in_the_order_of_the_files(self, evaluation: Evaluation) -> None:
        assert [result.test_case.scenario_id[-3:] for result in evaluation.results] == ["001", "002"]
        assert checks(evaluation) == [[], ["response_body_contains"]]

    def test_totals_gate_and_rate(self, evaluation: Evaluation) -> None:
        assert (evaluation.totals.passed, evaluation.totals.failed) == (1, 1)
        assert (evaluation.gate, evaluation.passed, bool(evaluation)) == ("failed", False, False)
        assert (evaluation.pass_rate, evaluation.threshold) == (50.0, 99.0)

    def test_the_threshold_decides(self, suite: ScenarioFolder) -> None:
        assert evaluate(suite.folder, config=suite.config, threshold=50).passed

    def test_a_required_proof_decides(self, suite: ScenarioFolder) -> None:
        options: dict[str, Any] = {"config": suite.config, "only": "valid_warranty_001"}
        assert evaluate(suite.folder, **options)
        assert not evaluate(suite.folder, **options, require_proof=True)

    def test_nothing_at_all_is_no_pass(self, config: Config) -> None:
        assert (evaluate([], config=config).passed, evaluate([], config=config).pass_rate) == (False, 0.0)

    def test_it_is_shown_as_eval_prints_it(self, evaluation: Evaluation, suite: ScenarioFolder) -> None:
        shown = evaluation.format_for_display().splitlines()
        assert [line for line in shown if not line.startswith("Duration: ")] == suite.evaluate()[1].splitlines()[1:]

    def test_nothing_is_printed(self, suite: ScenarioFolder) -> None:
        suite.write(3, broken)
        script = f"from guarantee_email_agent import evaluate; evaluate({str(suite.folder)!r})"
        done = subprocess.run([sys.executable, "-c", script], capture_output=True, check=True, cwd=suite.folder)
        assert (done.stdout, done.stderr) == (b"", b"")


class TestScenarios:
    def test_one_file(self, suite: ScenarioFolder) -> None:
        assert evaluate(str(suite.folder / "valid_warranty_001.yaml"), config=suite.config).passed

    def test_objects(self, config: Config, scenario: Callable[..., EvalTestCase]) -> None:
        made = scenario(file=None)  # whose mocks answer nothing
        assert evaluate([made], config=config).results[0].test_case is made

    def test_a_loaded_suite_keeps_its_invalid_files(self, suite: ScenarioFolder) -> None:
        suite.write(3, broken)
        assert evaluate(EvalLoader().discover_test_cases(suite.folder), config=suite.config).totals.invalid == 1

    def test_the_configured_folder(self, suite: ScenarioFolder) -> None:
        config = replace(suite.config, eval=replace(suite.config.eval, test_suite_path=suite.folder))
        assert evaluate(config=config).totals.total == 2

    def test_the_config_may_be_a_file(self, suite: ScenarioFolder) -> None:
        assert evaluate(suite.folder, config=ROOT / "config.yaml").totals.total == 2

    @pytest.mark.parametrize("scenarios", ["nowhere", "", [1]])
    def test_what_is_no_scenario_is_refused(self, scenarios: Any, config: Config) -> None:
        with pytest.raises(EvalError) as refused:
            evaluate(scenarios, config=config)
        assert refused.value.code == ("eval_wrong_type" if scenarios == [1] else "eval_file_not_found")

    def test_a_judge_beside_no_file_is_refused(self, config: Config, scenario: Callable[..., EvalTestCase]) -> None:
        with pytest.raises(EvalError, match=r"test names a file beside the scenario's, which has none\. Set file, too"):
            evaluate([scenario(file=None, test="judge.py")], config=config)

    @pytest.mark.parametrize(
        "options",
        [
            {"repeat": 1.5},
            {"jobs": -1},
            {"agent_timeout_s": "5"},
            *({"threshold": percent} for percent in (101, 0.99, "99")),
            {"llm": "real"},
            {"max_cost_usd": 1.0},
            {"llm": "live", "max_cost_usd": 0},
            {"agent_mcp": "http2"},
            {"only": "valid*"},
        ],
    )
    def test_a_senseless_option_is_refused(self, options: dict[str, Any], config: Config) -> None:
        with pytest.raises(ValueError, match=r"Pass (a (whole )?number above 0|a percentage above 1|one of|llm=)"):
            evaluate([], config=config, **options)

    def test_a_bad_instruction_file_is_refused(self, suite: ScenarioFolder, tmp_path: Path) -> None:
        bad = replace(suite.config.instructions, main=tmp_path / "nothing.md")
        with pytest.raises(InstructionError):
            evaluate(suite.folder, config=replace(suite.config, instructions=bad))


class TestAgent:
    def test_a_function_is_judged_by_what_the_mocks_captured(self, suite: ScenarioFolder) -> None:
        judged = evaluate(suite.folder, config=suite.config, agent=reply, only="valid_warranty_001")
        assert judged.results[0].actual_output["response_body"] == "Hello"
        assert {"response_body_contains", "ticket_created"} <= set(checks(judged)[0])

    def test_signals_are_left_alone(self, suite: ScenarioFolder) -> None:
        seen = []

        def agent(_: object) -> None:
            seen.append((signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM)))

        before = (signal.getsignal(signal.SIGINT), signal.getsignal(signal.SIGTERM))
        evaluate(suite.folder, config=suite.config, agent=agent)
        assert seen == [before, before]

    @pytest.mark.parametrize(("agent", "transport"), [(7, "http"), ("magic:wand", "http"), (reply, "stdio")])
    def test_what_is_no_agent_is_refused(self, agent: Any, transport: Any, suite: ScenarioFolder) -> None:
        pytest.importorskip("mcp", reason="mcp is not installed: uv sync --group ci")
        with pytest.raises(ConfigurationError) as refused:
            evaluate(suite.folder, config=suite.config, agent=agent, agent_mcp=transport)
        assert refused.value.code == "eval_bad_agent"

    def test_its_deadline(self, suite: ScenarioFolder) -> None:
        async def agent(_: object) -> None:
            while True:
                with suppress(asyncio.CancelledError):
                    await asyncio.Event().wait()

        judged = evaluate(suite.folder, config=suite.config, agent=agent, agent_timeout_s=0.05, jobs=2)
        reason = "agent: the time was over (0.05 s) before the agent was done"
        assert [result.failures[0] for result in judged.results] == [reason] * 2


class TestEventLoop:
    def test_an_async_agent_runs_in_the_callers_loop(self, suite: ScenarioFolder) -> None:
        loops = []

        async def agent(_: object) -> None:
            loops.append(asyncio.get_running_loop())

        async def main() -> asyncio.AbstractEventLoop:
            await evaluate_async(suite.folder, config=suite.config, agent=agent, jobs=2)
            return asyncio.get_running_loop()

        main_loop = asyncio.run(main())
        assert loops == [main_loop, main_loop]

    def test_evaluate_works_while_a_loop_runs(self, suite: ScenarioFolder) -> None:
        async def agent(_: object) -> None:
            """Does nothing."""

        async def main() -> int:
            return evaluate(suite.folder, config=suite.config, agent=agent).totals.total

        assert asyncio.run(main()) == 2

    def test_once_cancelled_nothing_more_begins(self, suite: ScenarioFolder) -> None:
        pytest.importorskip("mcp", reason="mcp is not installed: uv sync --group ci")
        begun = threading.Event()
        calls = []

        async def agent(_: object) -> None:
            calls.append(1)
            begun.set()
            await asyncio.Event().wait()

        async def main() -> None:
            task = asyncio.create_task(evaluate_async(suite.folder, config=suite.config, agent=agent))
            await asyncio.to_thread(begun.wait)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

        asyncio.run(main())
        assert calls == [1]
