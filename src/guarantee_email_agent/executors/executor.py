"""The port that `--jobs` and `--executor ray` have in common, and what they know of each other."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterable
from contextlib import contextmanager
from typing import Final, Protocol, TypeVar

from guarantee_email_agent.utils.errors import AgentError, ConfigurationError

LOCAL: Final = "local"
RAY: Final = "ray"

Item = TypeVar("Item")
Result = TypeVar("Result")


class WorkersLostError(AgentError):
    """No worker can go on. What came until then is good, and a run may go on from there."""


class Executor(Protocol):
    """Works on independent items, several at a time."""

    @property
    def slots(self) -> int:
        """How many items are worked on at a time."""

    def map_in_order(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        """`work` done on each item, the results in the order of the items; items are taken as they are needed.

        Both are pickled. An item may be worked on again where a worker was lost, so `work` may change nothing but what
        it returns. Once the generator is closed, what is under way is given up. Raises AgentError as `work` does, and
        WorkersLostError.
        """


@contextmanager
def connected(name: str, jobs: int) -> Generator[Executor | None, None, None]:
    """The executor for what `--executor` says, connected; None for `local`, which each command has in its own way.

    jobs: as `--jobs` has it. Raises ConfigurationError where it cannot be used.
    """
    if name == LOCAL:
        yield None
        return
    if jobs > 1:
        problem = "--jobs is for this machine; a Ray cluster works on as many pieces as it has processors. Remove it"
        raise ConfigurationError(problem, "cli_bad_usage")
    from guarantee_email_agent.executors.ray_executor import RayExecutor  # Ray takes half a second to load

    with RayExecutor(name) as executor:
        yield executor


def chunk_size(count: int, slots: int, largest: int) -> int:
    """How many of `count` items are handed over at a time.

    So many that the hand-over is cheap, at most `largest`, and so few that every worker is busy until near the end.
    """
    return max(1, min(largest, count // (slots * 4)))
