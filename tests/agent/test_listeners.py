"""Where a running agent can be asked, and what stands in the way of it."""

from __future__ import annotations

import socket
import stat
from pathlib import Path

import pytest

from guarantee_email_agent.agent.listeners import (
    check_port,
    check_unix_socket,
    listen_on_port,
    listen_on_unix_socket,
    remove_unix_socket,
)
from guarantee_email_agent.utils.errors import ConfigurationError


def refusal(path: Path) -> str:
    with pytest.raises(ConfigurationError) as caught:
        listen_on_unix_socket(path)
    assert caught.value.code == "metrics_socket_unusable"
    return caught.value.message


class TestPort:
    @pytest.mark.parametrize(("address", "caller"), [("127.0.0.1", "127.0.0.1"), ("::1", "::1"), ("::", "127.0.0.1")])
    def test_it_can_be_reached(self, address: str, caller: str) -> None:
        if ":" in address and not has_ipv6():
            pytest.skip("no IPv6")
        with listen_on_port(address, 0) as listener, socket.create_connection((caller, listener.getsockname()[1])):
            pass

    def test_one_that_is_taken_is_named(self) -> None:
        with listen_on_port("127.0.0.1", 0) as listener:
            port = listener.getsockname()[1]
            with pytest.raises(
                ConfigurationError, match=rf"metrics\.port: port {port} of 127\.0\.0\.1 .*another"
            ) as caught:
                listen_on_port("127.0.0.1", port)
        assert caught.value.code == "metrics_port_unusable"

    def test_an_address_of_another_machine(self) -> None:
        with pytest.raises(ConfigurationError, match="this machine has no such address"):
            listen_on_port("192.0.2.1", 9464)  # RFC 5737: nobody has it


class TestUnixSocket:
    def test_only_its_own_user_may_ask(self, tmp_path: Path) -> None:
        with listen_on_unix_socket(tmp_path / "metrics.sock"):
            assert stat.filemode((tmp_path / "metrics.sock").stat().st_mode) == "srw-------"

    def test_what_a_crashed_agent_left_is_replaced(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.sock"
        listen_on_unix_socket(path).close()
        assert path.is_socket()
        with listen_on_unix_socket(path), socket.socket(socket.AF_UNIX) as caller:
            caller.connect(str(path))

    def test_that_of_another_agent_is_not_touched(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.sock"
        with listen_on_unix_socket(path), socket.socket(socket.AF_UNIX) as caller:
            assert "another agent listens there" in refusal(path)
            remove_unix_socket(path)
            caller.connect(str(path))

    def test_a_file_of_somebody_else_is_not_touched(self, tmp_path: Path) -> None:
        path = tmp_path / "notes.txt"
        path.write_text("mine")
        assert "a file that is no socket" in refusal(path)
        remove_unix_socket(path)
        assert path.read_text() == "mine"

    def test_it_is_gone_afterwards(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.sock"
        listen_on_unix_socket(path).close()
        remove_unix_socket(path)
        assert list(tmp_path.iterdir()) == []

    def test_a_folder_that_is_missing(self, tmp_path: Path) -> None:
        assert "No such file or directory" in refusal(tmp_path / "run" / "metrics.sock")

    def test_a_path_that_is_too_long(self, tmp_path: Path) -> None:
        assert "107 bytes" in refusal(tmp_path / ("x" * 107))


def has_ipv6() -> bool:
    try:
        with socket.socket(socket.AF_INET6) as tried:
            tried.bind(("::1", 0))
    except OSError:
        return False
    return True


class TestCheck:
    """Before a start, beside an agent that may run."""

    def test_an_agent_that_runs_is_not_in_the_way(self, tmp_path: Path) -> None:
        path = tmp_path / "metrics.sock"
        with (
            listen_on_port("127.0.0.1", 0) as listener,
            listen_on_unix_socket(path),
            socket.socket(socket.AF_UNIX) as caller,
        ):
            check_port("127.0.0.1", listener.getsockname()[1])
            check_unix_socket(path)
            caller.connect(str(path))
        assert [file.name for file in tmp_path.iterdir()] == ["metrics.sock"]

    def test_the_refusals_of_a_start_come_before_it(self, tmp_path: Path) -> None:
        (tmp_path / "notes.txt").write_text("mine")
        long = tmp_path / ("long" * 30)
        for path in (tmp_path / "notes.txt", tmp_path / "missing" / "metrics.sock", long):
            with pytest.raises(ConfigurationError) as caught:
                check_unix_socket(path)
            assert caught.value.message == refusal(path)

    def test_an_address_of_another_machine_is_told_with_its_port(self) -> None:
        with pytest.raises(ConfigurationError, match=r"port 9464 of 192\.0\.2\.1 .* this machine has no such address"):
            check_port("192.0.2.1", 9464)
