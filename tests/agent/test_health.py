"""When a probe is told that the agent lives, and when that mail can be answered."""

import asyncio
from collections.abc import Callable
from dataclasses import replace

import pytest
from mailbox_in_memory import integration_error
from virtual_time import VirtualClock, run_in_virtual_time

from guarantee_email_agent.agent.health import Health, HealthLimits, LoopWatchdog
from guarantee_email_agent.agent.standing import Standing
from guarantee_email_agent.config.settings import Config, Llm
from guarantee_email_agent.services.ports import InboxEntry

LIMITS = HealthLimits(stuck_s=360, silent_s=270)
ENTRY = InboxEntry("secret-name", 1000)


def problems_after(
    seconds: float, happens: Callable[[Standing], object] = lambda _: None, limits: HealthLimits = LIMITS
) -> list[str]:
    """The inbox is listed, time passes, something happens."""

    async def run() -> list[str]:
        clock = VirtualClock()
        watchdog, standing = LoopWatchdog(clock), Standing(now=clock.monotonic)
        standing.inbox_listed(3, 1.0)
        await asyncio.sleep(seconds)
        watchdog.beat()
        happens(standing)
        return Health(clock, watchdog, limits, standing).problems

    return run_in_virtual_time(run())


def fails(*services: str) -> Callable[[Standing], object]:
    return lambda standing: [standing.failed(integration_error(f"{name}_unavailable")) for name in services]


class TestReady:
    def test_an_agent_that_lists_its_inbox(self) -> None:
        assert problems_after(200) == []

    def test_not_before_the_inbox_was_listed(self) -> None:
        clock = VirtualClock()
        assert Health(clock, LoopWatchdog(clock), LIMITS, Standing()).problems == ["the inbox has not been listed yet"]

    def test_not_once_the_inbox_is_silent(self) -> None:
        assert problems_after(300) == ["the inbox was last listed 300 s ago"]

    def test_not_while_a_service_is_down(self) -> None:
        assert problems_after(1, fails("mail", "warranty_api")) == ["mail is down", "warranty_api is down"]

    @pytest.mark.parametrize(("when_down", "ready"), [("wait", False), ("template", True)])
    def test_without_the_model_only_where_templates_answer(self, when_down: str, *, ready: bool) -> None:
        limits = HealthLimits.of(Config(llm=Llm(when_down=when_down)))
        problems = problems_after(1, fails("llm"), limits)
        assert (problems == []) is ready

    def test_not_while_it_stops(self) -> None:
        clock = VirtualClock()
        standing = Standing(now=clock.monotonic)
        standing.inbox_listed(0, None)
        health = Health(clock, LoopWatchdog(clock), LIMITS, standing, lambda: True)
        assert health.problems == ["the agent is being stopped"]


class TestLives:
    @pytest.mark.parametrize(("seconds", "stuck"), [(300, None), (400, "the main loop has not got round for 400 s")])
    def test_as_long_as_the_main_loop_gets_round(self, seconds: float, stuck: str | None) -> None:
        async def run() -> str | None:
            clock = VirtualClock()
            watchdog = LoopWatchdog(clock)
            health = Health(clock, watchdog, LIMITS, Standing())
            await asyncio.sleep(seconds)
            return health.stuck

        assert run_in_virtual_time(run()) == stuck

    def test_slow_services_alone_do_not_make_it_look_stuck(self) -> None:
        """Whoever lets a call take ten minutes must not have the agent killed in the middle of one."""
        config = Config()
        slow = replace(config, agent=replace(config.agent, call_timeout_s=200))
        assert HealthLimits.of(slow).stuck_s > 2 * 600


def test_what_goes_beyond_is_late() -> None:
    async def wait() -> float:
        watchdog = LoopWatchdog(VirtualClock())
        watchdog.beat(30)
        await asyncio.sleep(100)
        return watchdog.overdue_s

    assert run_in_virtual_time(wait()) == 70
