from __future__ import annotations

import io

import pytest
from screen import Screen

from guarantee_email_agent.reporting.terminal import Progress, Terminal


@pytest.fixture(autouse=True)
def _plain_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    monkeypatch.setenv("TERM", "xterm")


class TestTerminal:
    def test_good_is_green_and_bad_is_red_in_the_first_line_alone(self) -> None:
        screen = Screen()
        terminal = Terminal(screen)
        terminal.outcome("✓ works")
        terminal.outcome("✗ does not\n    why")
        terminal.outcome("✗ Failed: 0", paint=False)
        terminal.line("plain")
        assert screen.getvalue() == ("\x1b[32m✓ works\x1b[0m\n\x1b[31m✗ does not\x1b[0m\n    why\n✗ Failed: 0\nplain\n")

    def test_signs_become_words_where_the_encoding_lacks_them(self) -> None:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", newline="")
        Terminal(stream).outcome("✗ für 日本 …")
        stream.seek(0)
        assert stream.read() == "[FAIL] für \\u65e5\\u672c ...\n"


class TestProgress:
    def test_counts_on_one_line_and_is_gone_in_the_end(self) -> None:
        screen = Screen()
        progress = Progress(screen, 10, "judged")
        progress.show(3)
        progress.clear()
        assert screen.getvalue() == "\r\x1b[K3/10 judged\r\x1b[K"

    def test_does_not_flicker(self) -> None:
        screen = Screen()
        progress = Progress(screen, 1000, "judged")
        for done in range(1000):
            progress.show(done)
        assert screen.getvalue().count("judged") < 100

    def test_is_silent_where_there_is_no_terminal(self) -> None:
        stream = io.StringIO()
        progress = Progress(stream, 10, "judged")
        progress.show(3)
        progress.clear()
        assert stream.getvalue() == ""

    def test_is_silent_on_a_dumb_terminal(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("TERM", "dumb")
        screen = Screen()
        Progress(screen, 10, "judged").show(3)
        assert screen.getvalue() == ""

    def test_clears_nothing_that_it_has_not_drawn(self) -> None:
        screen = Screen()
        Progress(screen, 10, "judged").clear()
        assert screen.getvalue() == ""
