"""A Prometheus of the tests' own: temporary data, on loopback, scraping one agent."""

from __future__ import annotations

import ctypes
import json
import shutil
import signal
import socket
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from waiting import wait_until

JOB = "guarantee-email-agent"
_PR_SET_PDEATHSIG = 1


def program(name: str) -> str:
    """`prometheus` or `promtool`. Skips where it is missing."""
    if (path := shutil.which(name)) is None:
        pytest.skip(f"{name} is not installed (Debian: prometheus)")
    return path


def free_port() -> int:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port: int = unused.getsockname()[1]
    return port


def asked(place: str, page: str = "/healthz") -> tuple[int, str]:
    """Status and text of what an agent answers there."""
    try:
        with urllib.request.urlopen(f"http://{place}{page}", timeout=30) as answer:
            return answer.status, answer.read().decode()
    except urllib.error.HTTPError as refusal:
        return refusal.code, refusal.read().decode()
    except OSError as error:
        return 0, str(error)


class RunningPrometheus:
    def __init__(self, port: int) -> None:
        self._url = f"http://127.0.0.1:{port}"

    def query(self, expression: str) -> list[Any]:
        """Labels and value of each series, as the API gives them."""
        data: list[Any] = self._get("/api/v1/query", query=expression)["result"]
        return data

    def rules(self) -> list[Any]:
        groups = self._get("/api/v1/rules")["groups"]
        return [rule for group in groups for rule in group["rules"]]

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"{self._url}/-/ready", timeout=60) as answer:
                return bool(answer.status == 200)
        except OSError:
            return False

    def _get(self, path: str, **parameters: str) -> Any:
        with urllib.request.urlopen(f"{self._url}{path}?{urlencode(parameters)}", timeout=60) as answer:
            return json.load(answer)["data"]


@contextmanager
def running_prometheus(folder: Path, rules: Path, agent_port: int) -> Iterator[RunningPrometheus]:
    """It asks the agent twice a second. Skips where Prometheus is missing."""
    prometheus, port = program("prometheus"), free_port()
    settings = {
        "global": {"scrape_interval": "500ms", "evaluation_interval": "500ms"},
        "rule_files": [str(rules)],
        "scrape_configs": [{"job_name": JOB, "static_configs": [{"targets": [f"127.0.0.1:{agent_port}"]}]}],
    }
    (folder / "prometheus.yml").write_text(json.dumps(settings))  # JSON is YAML
    with (folder / "prometheus.log").open("w") as log:
        process = subprocess.Popen(
            [
                prometheus,
                f"--config.file={folder}/prometheus.yml",
                f"--storage.tsdb.path={folder}/prometheus",
                f"--web.listen-address=127.0.0.1:{port}",
            ],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            preexec_fn=_end_with_the_tests,
        )
        try:
            running = RunningPrometheus(port)
            wait_until(
                lambda: process.poll() is not None or running.is_ready(),
                problem=(folder / "prometheus.log").read_text,
            )
            assert process.poll() is None, (folder / "prometheus.log").read_text()
            yield running
        finally:
            process.kill()
            process.wait()


def _end_with_the_tests() -> None:
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
