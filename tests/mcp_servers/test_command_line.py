"""The command lines of all servers."""

from __future__ import annotations

import shlex
from importlib import import_module
from pathlib import Path

import pytest

from guarantee_email_agent.cli import run

FROM = "--from support@example.com"
IMAP = f"--imap-host imap.example.com {FROM}"


@pytest.mark.parametrize(
    ("server", "arguments", "message"),
    [
        ("mail", f"{IMAP} --maildir x", "name either --maildir or --imap-host; see --help\n"),
        ("mail", f"{IMAP} --mark-parent 'a*'", "--mark-parent must be a name without * and %, and without white"),
        (
            "mail",
            "--from 'S <s@example.com>' --maildir x",
            "--from must be a bare address such as support@example.com, not",
        ),
        ("mail", f"{IMAP} --imap-port 0", "--imap-port must be at least 1 and at most 65535, not 0\n"),
        ("mail", IMAP, "IMAP_PASSWORD is not set. Put the password of the IMAP user into the environment\n"),
        ("mail", f"{IMAP} --imap-security none", "--imap-security would send its password unencrypted"),
        ("mail", f"{IMAP} --ca-file {{folder}}/none", "--ca-file {folder}/none: No such file or directory\n"),
        ("mail", f"--maildir {{folder}}/none {FROM}", "the Maildir {folder}/none does not exist. Make it, with dir"),
        ("ticketing", "--database {folder}/none/t.db", "{folder}/none/t.db: the folder {folder}/none does not exist."),
        ("warranty", "--file x.csv --today soon", "argument --today: 'soon' is no date; write it as 2027-03-31; see "),
        ("table", "--file x.csv --key ' '", "--key is blank. Name the column with the number\n"),
        ("table", "--file {folder}/bad.csv --key id", "{folder}/bad.csv:1: has no column id. Begin the file with"),
    ],
)
def test_what_is_wrong_with_it_or_what_it_names_is_one_line_and_exit_code_2(
    server: str,
    arguments: str,
    message: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    (tmp_path / "bad.csv").write_text("serial_number,expiration_date\nSN-100,31.01.2030\n")
    if "is not set" not in message:
        monkeypatch.setenv("IMAP_PASSWORD", "secret")
    with pytest.raises(SystemExit) as stop:
        import_module(f"guarantee_email_agent.mcp_servers.{server}").main(
            shlex.split(arguments.format(folder=tmp_path))
        )
    told = capsys.readouterr()
    assert (stop.value.code, told.out, told.err.count("\n")) == (2, "", 1)
    assert told.err.startswith(message.format(folder=tmp_path))


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("mail", "IMAP_PASSWORD"),
        ("ticketing", "SQLite"),
        ("warranty", "serial_number,expiration_date"),
        ("table", "column with the number"),
    ],
)
def test_help_documents_it(server: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["mcp-server", server, "--help"]) == 0
    told = " ".join(capsys.readouterr().out.split())
    assert message in told
    assert "Exit code 2" in told
