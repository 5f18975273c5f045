"""`--executor ray`: the pieces of a run as tasks of a Ray cluster that is there.

The cluster gets this package and the files that the work names, and nothing of our environment: no key, no password.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import warnings
from collections import deque
from collections.abc import Callable, Generator, Iterable
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple, Self
from urllib.parse import urlsplit

from guarantee_email_agent.executors.executor import RAY, Item, Result
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError, WorkersLostError
from guarantee_email_agent.utils.text import printable, truncate

_CONNECT_S: Final = 5.0
_GREET_S: Final = 10.0
_WATCH_S: Final = 10.0
_UNANSWERED: Final = 2
"""Times that the head node does not answer in a row until it counts as lost: once may be a busy one.

All of it takes less than the minute after which Ray ends our process, without a summary.
"""
_CLEAN_UP_S: Final = 10.0
_RETRIES: Final = 8
"""How often an item is begun again since its worker or node was lost."""
_AHEAD: Final = 3
"""Items given out for each processor of the cluster."""
_PACKAGE: Final = Path(__file__).parent.parent


class _Failed(NamedTuple):
    """What a worker returns in place of a result. Its errors would come with their source code otherwise."""

    error: AgentError


class RayExecutor:
    """An `Executor`, and a context manager that ends the connection."""

    def __init__(self, address: str) -> None:
        """address: `ray` for the cluster that Ray finds by itself, at $RAY_ADDRESS or running on this machine;
        `ray://host:port` for one that is reached through Ray Client.

        Raises ConfigurationError where Ray or the cluster is missing, or does not fit.
        """
        # Ray reports usage to its makers unless it is told not to.
        os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
        # Begun by `uv run`, Ray would have every worker install our project anew, which travels with the work anyway.
        os.environ.setdefault("RAY_ENABLE_UV_RUN_RUNTIME_ENV", "0")
        require_extra("ray", "--executor ray", "ray")
        import ray  # half a second

        self._ray: Any = ray
        place = address if address != RAY else os.environ.get("RAY_ADDRESS", "")
        if place not in ("", "auto"):
            _refuse_silence(place)
        handler = signal.getsignal(signal.SIGTERM)
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # they say in other words what the error says
                ray.init(
                    place or "auto",
                    runtime_env={"py_modules": [str(_PACKAGE)], "excludes": ["**/__pycache__"]},
                    configure_logging=False,
                    log_to_driver=False,
                )
            # Ray Client finds out for itself.
            self._head = "" if place.startswith("ray://") else ray.get_runtime_context().gcs_address
            self.slots = int(ray.cluster_resources().get("CPU", 0))
        except Exception as error:  # noqa: BLE001 - Ray has no family of errors for it
            raise _cannot_connect(place, error) from None
        finally:
            with suppress(ValueError):  # not the main thread
                signal.signal(signal.SIGTERM, handler)  # Ray's own would end us without a summary
        if self.slots < 1:
            self._ray.shutdown()
            problem = f"--executor {address}: the cluster has no processor for tasks. Add a node to it"
            raise ConfigurationError(problem, "executor_no_worker")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._ray.shutdown()

    def map_in_order(self, work: Callable[[Item], Result], items: Iterable[Item]) -> Generator[Result, None, None]:
        run = self._ray.remote(num_cpus=1, max_retries=_RETRIES, scheduling_strategy="SPREAD")(_run)
        shared = self._ray.put(work)
        upcoming = iter(items)
        under_way: deque[Any] = deque()
        try:
            under_way.extend(run.remote(shared, item) for item in islice(upcoming, _AHEAD * self.slots))
            while under_way:
                result = self._result(under_way[0])
                under_way.popleft()
                under_way.extend(run.remote(shared, item) for item in islice(upcoming, 1))
                yield result
        finally:
            self._give_up(list(under_way))

    def _give_up(self, tasks: list[Any]) -> None:
        """What has not begun never does; what has is interrupted as by Ctrl-C, so that it can clean up, then killed."""
        with suppress(Exception, KeyboardInterrupt):  # the cluster may be gone, and Ctrl-C may come again
            for each in tasks:
                self._ray.cancel(each)
            _, tasks = self._ray.wait(tasks, num_returns=len(tasks), timeout=_CLEAN_UP_S) if tasks else ([], [])
            for each in tasks:
                self._ray.cancel(each, force=True)

    def _result(self, task: Any) -> Any:
        try:
            unanswered = 0
            while not self._ray.wait([task], timeout=_WATCH_S)[0]:
                unanswered = unanswered + 1 if self._head and not _speaks_grpc(self._head) else 0
                if unanswered == _UNANSWERED:
                    raise ConnectionError(f"its head node at {self._head} does not answer any more")
            result = self._ray.get(task)
        except Exception as error:  # noqa: BLE001 - those of tasks are of any class
            raise _lost(error) from None
        if isinstance(result, _Failed):
            raise result.error
        return result


def connected(name: str, jobs: int) -> RayExecutor:
    """The executor for what `--executor` says. jobs: as `--jobs` has it.

    Raises ConfigurationError where it cannot be used.
    """
    if jobs > 1:
        problem = "--jobs is for this machine; a Ray cluster works on as many pieces as it has processors. Remove it"
        raise ConfigurationError(problem, "cli_bad_usage")
    return RayExecutor(name)


def _run(work: Callable[[Item], Result], item: Item) -> Result | _Failed:
    """On a worker, whose log is no place for what customers wrote."""
    logging.disable(logging.CRITICAL)
    try:
        return work(item)
    except AgentError as error:
        return _Failed(error)


def _refuse_silence(address: str) -> None:
    """Raises ConfigurationError where no cluster answers: Ray itself would wait for minutes."""
    parts = urlsplit(address if "://" in address else f"//{address}")
    try:
        host, port = parts.hostname or "", parts.port or 10001
        socket.create_connection((host, port), _CONNECT_S).close()
        if not _speaks_grpc(f"{host}:{port}"):
            raise ValueError("what listens there is no cluster")
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        problem = f"--executor ray: no cluster answers at {printable(truncate(address, 100))} ({reason})"
        raise ConfigurationError(f"{problem}. Correct the address, or start one", "executor_no_cluster") from None


def _speaks_grpc(address: str) -> bool:
    """Whether somebody there speaks as every part of Ray does; also where that cannot be told."""
    try:
        import grpc  # a tenth of a second
    except ImportError:
        return True
    if os.environ.get("RAY_USE_TLS", "0") != "0":
        return True
    with grpc.insecure_channel(address) as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_GREET_S)
        except grpc.FutureTimeoutError:
            return False
    return True


def _cannot_connect(place: str, error: Exception) -> ConfigurationError:
    """place: empty where Ray has looked for a cluster by itself."""
    if isinstance(error, ConnectionError) and place in ("", "auto"):
        remedy = "Start one with 'ray start --head', set RAY_ADDRESS, or name one: --executor ray://HOST:10001"
        return ConfigurationError(f"--executor ray: no Ray cluster is found. {remedy}", "executor_no_cluster")
    problem = f"--executor ray: the cluster at {printable(place or 'auto')} cannot be used: {_one_line(error)}"
    if isinstance(error, ConnectionError) and "RAY_AUTH_MODE" not in os.environ:
        problem += ". If it asks for a token, set RAY_AUTH_MODE=token, and RAY_AUTH_TOKEN or RAY_AUTH_TOKEN_PATH"
    return ConfigurationError(problem, "executor_cannot_connect")


def _lost(error: Exception) -> AgentError:
    cause = getattr(error, "cause", None)
    if type(cause).__name__ in ("ModuleNotFoundError", "ImportError") or "ModuleNotFoundError" in str(error):
        why = _one_line(cause if isinstance(cause, Exception) else error)
        problem = f"A worker of the cluster lacks what this package needs: {why}. Install it on every node"
        return ConfigurationError(problem, "executor_bad_worker")
    return WorkersLostError(f"the cluster failed ({type(error).__name__}): {_one_line(error)}", "executor_failed")


def _one_line(error: BaseException) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return printable(truncate(lines[0] if lines else type(error).__name__, 300)).rstrip(".")
