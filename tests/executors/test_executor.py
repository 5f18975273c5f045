from __future__ import annotations

import sys

import pytest

from guarantee_email_agent.executors.executor import chunk_size, connected
from guarantee_email_agent.utils.errors import ConfigurationError


@pytest.mark.parametrize(
    ("count", "slots", "size"), [(0, 2, 1), (7, 2, 1), (80, 2, 10), (1_000_000, 2, 200), (1_000_000, 5_000, 50)]
)
def test_chunks_keep_every_worker_busy(count: int, slots: int, size: int) -> None:
    assert chunk_size(count, slots, 200) == size


def test_local_is_no_cluster() -> None:
    with connected("local", 4) as executor:
        assert executor is None


def test_jobs_are_for_this_machine() -> None:
    with pytest.raises(ConfigurationError, match="--jobs is for this machine"), connected("ray", 2):
        pass


def test_without_ray_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'guarantee-email-agent\[ray\]'"), connected("ray", 1):
        pass


@pytest.mark.parametrize("address", ["127.0.0.1:9", "ray://127.0.0.1:9", "local"])
def test_a_variable_that_names_no_cluster(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("ray", reason="Ray has no wheel for this Python") if sys.version_info >= (3, 15) else None
    monkeypatch.setenv("RAY_ADDRESS", address)
    with pytest.raises(ConfigurationError, match=f"no cluster answers at {address}"), connected("ray", 1):
        pass


@pytest.mark.parametrize("address", ["ray://127.0.0.1:9", "ray://127.0.0.1:x"])
def test_an_address_without_a_cluster(address: str) -> None:
    pytest.importorskip("ray", reason="Ray has no wheel for this Python") if sys.version_info >= (3, 15) else None
    with pytest.raises(ConfigurationError, match=f"no cluster answers at {address}"), connected(address, 1):
        pass
