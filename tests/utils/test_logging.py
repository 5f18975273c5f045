import io
import json
import logging
from pathlib import Path

import pytest

from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.logging import ROOT, add_log_fields, configure_logging, log_fields

logger = logging.getLogger(f"{ROOT}.somewhere")


def set_up(
    level: str = "INFO", console_level: str = "WARNING", file: Path | None = None, as_json: bool = False
) -> None:
    configure_logging(level, console_level, file, as_json)


def test_control_characters_are_written_out(capsys: pytest.CaptureFixture[str]) -> None:
    set_up()
    logger.warning("From a stranger: %s", "one\ntwo\r\x1b[2Jgone\u202eevil")
    assert capsys.readouterr().err.endswith("From a stranger: one\\ntwo\\r\\x1b[2Jgone\\u202eevil\n")


def test_a_traceback_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    set_up()
    try:
        raise ZeroDivisionError("\x1b[2J\n::error::x\udce9")
    except ZeroDivisionError:
        logger.exception("Broken")

    written = capsys.readouterr().err.splitlines()
    assert written[1] == "Traceback (most recent call last):"
    assert written[-2:] == ["ZeroDivisionError: \\x1b[2J", "::error::x\\udce9"]


def test_json_has_the_fields_of_the_block_and_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    set_up(as_json=True)
    with log_fields():
        add_log_fields(mail_key="a1", level="forged")
        with log_fields():
            add_log_fields(scenario="inner")
            logger.warning("Inner")
        logger.warning("Outer", extra={"fields": {"outcome": "answered", "cost_usd": None}})
    add_log_fields(mail_key="nobody's")
    logger.warning("Outside")
    inner, outer, outside = map(json.loads, capsys.readouterr().err.splitlines())
    assert (inner["scenario"], "mail_key" in inner) == ("inner", False)
    assert (outer["mail_key"], outer["outcome"], outer["cost_usd"]) == ("a1", "answered", None)
    assert outer["level"] == "WARNING"
    assert set(outside) == {"time", "level", "message", "logger"}


def test_the_console_shows_warnings_and_the_file_all_from_its_level(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    set_up(file=tmp_path / "agent.log")
    logger.debug("too little")
    logger.info("for the file")
    logger.warning("for both")

    written = (tmp_path / "agent.log").read_text(encoding="utf-8")
    assert [line[20:] for line in written.splitlines()] == ["INFO for the file", "WARNING for both"]
    assert [line[20:] for line in capsys.readouterr().err.splitlines()] == ["WARNING for both"]


def test_a_split_console_has_results_on_stdout_and_trouble_on_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    configure_logging("INFO", "INFO", None, as_json=False, split_console=True)
    logger.debug("unseen")
    logger.info("answered")
    logger.warning("slow")
    logger.error("broken")

    written = capsys.readouterr()
    assert [line[20:] for line in written.out.splitlines()] == ["INFO answered"]
    assert [line[20:] for line in written.err.splitlines()] == ["WARNING slow", "ERROR broken"]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full, the device that is always full")
def test_a_log_on_a_full_disk_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    set_up(file=Path("/dev/full"))
    logger.info("one")
    logger.info("two")
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("logging.file: cannot write /dev/full (No space left on device)")


def test_a_log_that_was_moved_away_is_begun_anew(tmp_path: Path) -> None:
    log = tmp_path / "agent.log"
    set_up(file=log)
    logger.info("before")
    log.rename(tmp_path / "agent.log.1")
    logger.info("after")

    assert (tmp_path / "agent.log.1").read_text().endswith("INFO before\n")
    assert log.read_text().endswith("INFO after\n")


def test_a_log_that_cannot_be_begun_anew_says_so_and_stops_nobody(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = tmp_path / "logs" / "agent.log"
    log.parent.mkdir()
    set_up(file=log)
    log.unlink()
    log.parent.rmdir()
    logger.info("one")
    logger.info("two")

    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith(f"logging.file: cannot write {log} (No such file or directory)")


@pytest.mark.parametrize("name", ["nowhere/agent.log", "."])
def test_a_file_that_cannot_be_written_is_a_configuration_error(name: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"logging\.file: cannot write .*\. Name a file in a folder") as caught:
        set_up(file=tmp_path / name)
    assert caught.value.code == "config_log_file"


def test_what_a_console_cannot_hold_is_written_out(monkeypatch: pytest.MonkeyPatch) -> None:
    written = io.BytesIO()
    monkeypatch.setattr("sys.stdout", io.TextIOWrapper(written, encoding="ascii", write_through=True))
    configure_logging("INFO", "INFO", None, as_json=False, split_console=True)
    logger.info("Cannot write Müller.md")
    assert written.getvalue().endswith(b"INFO Cannot write M\\xfcller.md\n")
