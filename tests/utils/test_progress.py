"""How far a run has come: on a terminal, without one, and where the stream fails."""

import io
import os
import pty
import struct
import termios
from collections.abc import Callable
from fcntl import ioctl

import pytest
from screen import Screen
from virtual_time import SetTime

from guarantee_email_agent.utils.terminal import Progress


@pytest.fixture
def time() -> SetTime:
    return SetTime()


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")


def test_counts_on_one_line_and_is_gone_in_the_end() -> None:
    screen = Screen()
    progress = Progress(screen, 10, "judged")
    progress.show(3)
    progress.clear()
    assert screen.getvalue() == "\r\x1b[K3/10 judged\r\x1b[K"


def test_does_not_flicker(time: SetTime) -> None:
    screen = Screen()
    progress = Progress(screen, 1000, "judged", monotonic=time)
    for done in range(1000):
        progress.show(done)
        time.now += 0.01
    assert screen.getvalue().count("judged") == pytest.approx(95, abs=6)


def test_tells_rate_rest_and_detail(time: SetTime) -> None:
    screen = Screen()
    progress = Progress(screen, 100, "run", detail=lambda: "$0.0100", monotonic=time)
    time.now += 10
    progress.show(20, failed=2)
    assert screen.getvalue() == "\r\x1b[K20/100 run, 2 failed, 2.0/s, about 40 s left, $0.0100"


def test_what_was_done_before_says_nothing_of_the_speed(time: SetTime) -> None:
    screen = Screen()
    progress = Progress(screen, 100, "run", monotonic=time)
    progress.skip(80)
    time.now += 20
    progress.show(90)
    assert screen.getvalue() == "\r\x1b[K90/100 run, 30.0/min, about 20 s left"


def test_never_counts_back(time: SetTime) -> None:
    screen = Screen()
    progress = Progress(screen, 10, "run", monotonic=time)
    progress.count(passed=False)
    time.now += 0.5
    progress.show(0)
    assert screen.getvalue().endswith("\r\x1b[K1/10 run, 1 failed")


@pytest.mark.parametrize("dumb", [False, True])
def test_without_a_terminal_a_line_comes_every_five_seconds(
    time: SetTime, monkeypatch: pytest.MonkeyPatch, dumb: bool
) -> None:
    stream: io.StringIO = io.StringIO()
    if dumb:
        monkeypatch.setenv("TERM", "dumb")
        stream = Screen()
    progress = Progress(stream, 40, "run", monotonic=time)
    for _ in range(22):
        progress.count(passed=True)
        time.now += 0.5
    progress.clear()
    assert stream.getvalue() == "11/40 run, 2.2/s, about 13 s left\n21/40 run, 2.1/s, about 9 s left\n"


def test_a_run_that_is_over_soon_is_quiet(time: SetTime) -> None:
    screen = Screen()
    progress = Progress(screen, 40, "run", quiet_s=5, monotonic=time)
    time.now += 4.9
    progress.show(39)
    assert screen.getvalue() == ""
    time.now += 0.2
    progress.show(40)
    assert screen.getvalue().startswith("\r\x1b[K40/40 run")


def test_a_line_that_stays_takes_the_place_of_the_count() -> None:
    screen = Screen()
    progress = Progress(screen, 10, "run")
    progress.show(1)
    progress.announce("✗ one: calls")
    assert screen.getvalue() == "\r\x1b[K1/10 run\r\x1b[K✗ one: calls\n"


def test_fits_the_terminal_as_wide_as_it_is_now(time: SetTime) -> None:
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "w", encoding="utf-8") as stream:
        progress = Progress(stream, 1000, "run", detail=lambda: "x" * 300, monotonic=time)
        for columns in (20, 40):
            ioctl(stream.fileno(), termios.TIOCSWINSZ, struct.pack("HHHH", 25, columns, 0, 0))
            time.now += 1
            progress.show(7, failed=1)
            assert len(os.read(ours, 1000).removeprefix(b"\r\x1b[K")) == columns - 1
    os.close(ours)


class Gone(io.StringIO):
    def write(self, _text: str) -> int:
        raise BrokenPipeError


@pytest.mark.parametrize(
    "use", [lambda progress: progress.announce("✗ one"), lambda progress: progress.show(9)], ids=["announce", "show"]
)
def test_a_reader_that_has_gone_ends_no_run(time: SetTime, use: Callable[[Progress], None]) -> None:
    progress = Progress(Gone(), 10, "run", monotonic=time)
    time.now += 10
    use(progress)
    progress.announce("✗ two")
