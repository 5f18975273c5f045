"""`health` as a container's health check runs it."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest
from processes import free_port

from guarantee_email_agent.agent.monitoring import open_monitoring
from guarantee_email_agent.agent.sd_notify import ServiceNotifier
from guarantee_email_agent.cli import run
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.utils.clock import SystemClock


@pytest.fixture
def config_file(tmp_path: Path) -> Path:
    file = tmp_path / "config.yaml"
    file.write_text(f"metrics: {{listen: 127.0.0.1:{free_port()}}}\n")
    return file


def asked(config_file: Path, *options: str) -> int:
    """The exit code, while an agent runs that has not listed its inbox yet."""

    async def ask() -> int:
        config = load_config(config_file, {})
        async with open_monitoring(config, SystemClock(), ServiceNotifier(None), asyncio.Event()):
            return await asyncio.to_thread(run, ["health", "--config", str(config_file), *options])

    return asyncio.run(ask())


def test_an_agent_that_lives(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(config_file) == 0
    assert capsys.readouterr().out == "ok\n"


def test_one_that_cannot_answer_mail(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert asked(config_file, "--ready") == 1
    assert capsys.readouterr().out == "the inbox has not been listed yet\n"


def test_nobody_there(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["health", "--config", str(config_file)]) == 1
    assert capsys.readouterr().out.startswith("no agent answers at 127.0.0.1 port ")


def test_nobody_to_ask(config_file: Path, capsys: pytest.CaptureFixture[str]) -> None:
    config_file.write_text("{}\n")
    assert run(["health", "--config", str(config_file)]) == 2
    assert "metrics.listen is not set" in capsys.readouterr().err


def test_nobody_to_ask_is_fine_where_a_container_may_have_metrics_off(
    config_file: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config_file.write_text("{}\n")
    assert run(["health", "--if-configured", "--config", str(config_file)]) == 0
    assert capsys.readouterr().out == "metrics are off, so that there is nobody to ask\n"


def test_but_neither_a_silent_agent_nor_a_mistake_in_the_configuration_is(config_file: Path) -> None:
    assert run(["health", "--if-configured", "--config", str(config_file)]) == 1
    config_file.write_text("metrics: {listen: no}\n")
    assert run(["health", "--if-configured", "--config", str(config_file)]) == 2
