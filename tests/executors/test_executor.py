import os
import signal
import sys
import time
from collections.abc import Iterator
from contextlib import suppress

import pytest

from guarantee_email_agent.executors.executor import LocalProcesses
from guarantee_email_agent.executors.ray_executor import connected
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError, WorkersLostError
from guarantee_email_agent.utils.process import signals_as_ctrl_c


def test_jobs_are_for_this_machine() -> None:
    with pytest.raises(ConfigurationError, match="--jobs is for this machine"), connected("ray", 2):
        pass


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match="--extra ray"), connected("ray", 1):
        pass


@pytest.mark.parametrize(
    ("variable", "address"),
    [
        *(("RAY_ADDRESS", address) for address in ("127.0.0.1:9", "ray://127.0.0.1:9", "local")),
        *(("", address) for address in ("ray://127.0.0.1:9", "ray://127.0.0.1:x")),
    ],
)
def test_an_address_without_a_cluster(variable: str, address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray has no wheel for this Python") if sys.version_info >= (3, 15) else None
    if variable:
        monkeypatch.setenv(variable, address)
    executor = "ray" if variable else address
    with pytest.raises(ConfigurationError, match=f"no cluster answers at {address}"), connected(executor, 1):
        pass


def double(item: int) -> int:
    return 2 * item


def die(item: int) -> bytes:
    """The first; the other has more to tell than a pipe holds, which nobody reads then."""
    if item == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    with suppress(KeyboardInterrupt):
        time.sleep(1)
    return bytes(1 << 20)


def fail(item: int) -> int:
    raise AgentError(f"no {item}", "test_code", {"item": item})


def test_results_come_in_the_order_of_the_items() -> None:
    assert list(LocalProcesses(2).map_in_order(double, range(30))) == list(range(0, 60, 2))
    assert list(LocalProcesses(2).map_in_order(double, [])) == []


def test_items_are_taken_as_they_are_needed() -> None:
    taken = []

    def items() -> Iterator[int]:
        for number in range(1_000):
            taken.append(number)
            yield number

    results = LocalProcesses(2).map_in_order(double, items())
    assert [next(results) for _ in range(3)] == [0, 2, 4]
    results.close()
    assert len(taken) == 8 + 3


def test_an_error_keeps_its_code() -> None:
    with pytest.raises(AgentError, match="no 1") as raised:
        list(LocalProcesses(2).map_in_order(fail, [1]))
    assert (raised.value.code, raised.value.details) == ("test_code", {"item": 1})


def test_a_process_that_dies_ends_the_run_in_one_line() -> None:
    with pytest.raises(WorkersLostError, match=r"A worker process died .+ --jobs 1") as raised, signals_as_ctrl_c():
        list(LocalProcesses(2).map_in_order(die, [1, 2]))  # and the other process with it
    assert raised.value.code == "eval_worker_died"
