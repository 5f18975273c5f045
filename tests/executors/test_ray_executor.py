"""Whole commands on a cluster of two nodes, of which one is killed."""

import json
import signal
import socket
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from command_line import MODULE, TIMEOUT_S, environment, run_program
from scenario_folder import BUILT_IN, ScenarioFolder, broken, failing

from guarantee_email_agent.executors import ray_executor
from guarantee_email_agent.executors.ray_executor import RayExecutor
from guarantee_email_agent.utils.errors import ConfigurationError

pytestmark = pytest.mark.slow

SCENARIOS = 160
NODE: dict[str, Any] = {"object_store_memory": 100 << 20}


@pytest.fixture
def cluster(monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """Its head does no work, so that either of the others can go."""
    monkeypatch.setenv("RAY_USAGE_STATS_ENABLED", "0")
    monkeypatch.setenv("RAY_AUTH_MODE", "disabled")
    cluster_utils = pytest.importorskip("ray.cluster_utils", reason="Ray has no wheel for this Python")
    cluster = cluster_utils.Cluster(
        initialize_head=True, head_node_args={"num_cpus": 0, "include_dashboard": False, **NODE}
    )
    try:
        cluster.add_node(num_cpus=1, **NODE)
        monkeypatch.setenv("RAY_ADDRESS", cluster.address)
        yield cluster
    finally:
        cluster.shutdown()


def suite(folder: Path) -> ScenarioFolder:
    scenarios = ScenarioFolder(folder / "scenarios", BUILT_IN)
    for number in range(1, SCENARIOS + 1):
        scenarios.write(number, broken if number == 7 else failing if number % 50 == 0 else str)
    return scenarios


def timeless(file: Path) -> Any:
    report = json.loads(file.read_bytes())
    for name in ("run_id", "started", "duration_s"):
        del report[name]
    for result in report["results"]:
        result["actual_output"].pop("processing_time_ms", None)
        del result["processing_time_ms"]
    return report


def stored(folder: Path) -> list[tuple[Any, ...]]:
    with closing(sqlite3.connect(folder / "runs.db")) as store:
        return store.execute(
            "SELECT outcome, total, count(*), count(DISTINCT case_id), max(position) FROM runs JOIN results "
            "ON results.run = runs.number GROUP BY runs.number ORDER BY runs.number"
        ).fetchall()


def begin(folder: Path, scenarios: Path, *options: str) -> subprocess.Popen[str]:
    """An `eval` on the cluster of which the first results are there."""
    command = [*MODULE, "eval", "--eval-dir", str(scenarios), "--executor", "ray", "--verbose", *options]
    process = subprocess.Popen(command, cwd=folder, env=environment(), stderr=subprocess.PIPE, encoding="utf-8")
    for line in process.stderr:
        if "Executing 1/" in line:
            return process
    raise AssertionError(f"no result came, exit code {process.wait()}")


def test_runs_survive_the_loss_of_a_node_and_can_be_interrupted(tmp_path: Path, cluster: Any) -> None:
    scenarios = suite(tmp_path)
    (tmp_path / "config.yaml").touch()

    # Another node is killed while it works: nothing is missing, nothing is there twice.
    node = cluster.add_node(num_cpus=1, **NODE)
    process = begin(tmp_path, scenarios.folder, "--json", "elsewhere.json")
    cluster.remove_node(node, allow_graceful=False)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 4, errors
    here = run_program(tmp_path, "eval", "--eval-dir", scenarios.folder, "--json", "here.json", "--no-store")
    assert here.returncode == 4
    assert timeless(tmp_path / "elsewhere.json") == timeless(tmp_path / "here.json")
    assert stored(tmp_path) == [("failed", SCENARIOS, SCENARIOS, SCENARIOS, SCENARIOS)]

    # Ctrl-C leaves a run that goes on.
    process = begin(tmp_path, scenarios.folder)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=TIMEOUT_S)
    assert process.returncode == 130, errors
    arguments = ("eval", "--eval-dir", scenarios.folder, "--executor", "ray", "--resume", "--json", "resumed.json")
    resumed = run_program(tmp_path, *arguments)
    assert resumed.returncode == 4, resumed.stderr
    assert "results are taken over" in resumed.stderr
    assert timeless(tmp_path / "resumed.json") == timeless(tmp_path / "here.json")
    assert stored(tmp_path)[1:] == [("failed", SCENARIOS, SCENARIOS, SCENARIOS, SCENARIOS)]


def test_a_cluster_that_is_not_there(tmp_path: Path) -> None:
    pytest.importorskip("ray", reason="Ray has no wheel for this Python")
    done = run_program(tmp_path, "eval", "--executor", "ray", env={"RAY_ADDRESS": "127.0.0.1:9"})
    assert done.returncode == 2
    assert done.stderr.startswith("guarantee-email-agent: --executor ray: no cluster answers at 127.0.0.1:9")
    assert done.stderr.count("\n") == 1


def test_something_else_that_listens_is_no_cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray has no wheel for this Python")
    monkeypatch.setattr(ray_executor, "_GREET_S", 0.1)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        address = f"127.0.0.1:{silent.getsockname()[1]}"
        monkeypatch.setenv("RAY_ADDRESS", address)
        with pytest.raises(ConfigurationError, match=f"no cluster answers at {address} .what listens there is no"):
            RayExecutor("ray")
