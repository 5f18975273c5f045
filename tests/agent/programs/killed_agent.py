"""An agent that kills itself with SIGKILL at the calls of its services that a plan names.

    python killed_agent.py PLAN run

A line of the plan is `<tool> <before|after>`: before the call has an effect, or after it, when the agent does not know
it yet. A line that was carried out is removed.
"""

import os
import signal
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

from guarantee_email_agent.cli import run
from guarantee_email_agent.services.blocking import BlockingService

PLAN = Path(sys.argv[1])
one_at_a_time = threading.Lock()
call_as_it_is = BlockingService.call


def die_if_planned(tool: str, phase: str) -> None:
    with one_at_a_time:
        lines = PLAN.read_text().splitlines()
        if (step := f"{tool} {phase}") in lines:
            lines.remove(step)
            PLAN.write_text("".join(f"{line}\n" for line in lines))
            os.kill(os.getpid(), signal.SIGKILL)


async def call(self: BlockingService[Any], tool: str, work: Callable[[Any], Any]) -> Any:
    def work_between_deaths(service: Any) -> Any:
        die_if_planned(tool, "before")
        answer = work(service)
        die_if_planned(tool, "after")
        return answer

    return await call_as_it_is(self, tool, work_between_deaths)


BlockingService.call = call
sys.exit(run(sys.argv[2:]))
