import io

import pytest
from screen import Screen

from guarantee_email_agent.utils.terminal import Terminal


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

    @pytest.mark.parametrize("color", [True, False])
    def test_what_is_printed_controls_no_terminal_and_makes_no_line(self, color: bool) -> None:
        stream = io.StringIO()
        Terminal(stream, color=color).line("a\x1b[2J\r\n::error::b\u202ec\x07\x9b1m\ud800\u2028d")
        assert stream.getvalue() == "a\\x1b[2J\\r\\n::error::b\\u202ec\\x07\\x9b1m\\ud800\\u2028d\n"

    def test_signs_become_words_where_the_encoding_lacks_them(self) -> None:
        stream = io.TextIOWrapper(io.BytesIO(), encoding="latin-1", newline="")
        Terminal(stream).outcome("✗ für 日本 …")
        stream.seek(0)
        assert stream.read() == "[FAIL] für \\u65e5\\u672c ...\n"
