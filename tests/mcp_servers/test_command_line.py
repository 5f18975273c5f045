"""The command lines of all servers."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest
from mcp_program import run_program

SERVERS = "guarantee_email_agent.mcp_servers"
FROM = "--from support@example.com"
IMAP = f"--imap-host imap.example.com {FROM}"


@pytest.mark.parametrize(
    ("server", "arguments", "message"),
    [
        ("mail", "", "the following arguments are required: --from; see --help\n"),
        ("mail", FROM, "name either --maildir or --imap-host; see --help\n"),
        ("mail", f"{IMAP} --maildir x", "name either --maildir or --imap-host; see --help\n"),
        (
            "mail",
            f"{FROM} --maildir x --marks folders",
            "--marks folders is for IMAP: a Maildir keeps its marks itself. Leave it out; see --help\n",
        ),
        (
            "mail",
            f"{IMAP} --mark-parent 'a*'",
            "--mark-parent must be a name without * and %, and without white space around it; see --help\n",
        ),
        (
            "mail",
            f"{IMAP} --mark-unknown ANSWERED",
            "a folder of --mark-answered to --mark-unknown has one name for two outcomes; give each a name of its own",
        ),
        ("mail", f"{FROM} --maildri x", "unrecognized arguments: --maildri x; see --help\n"),
        (
            "mail",
            "--from 'Support <s@example.com>' --maildir x",
            "--from is not one bare address like support@example.com\n",
        ),
        ("mail", f"{IMAP} --imap-port 0", "argument --imap-port: '0' is no port; see --help\n"),
        (
            "mail",
            f"{IMAP} --copy-wait -1",
            "argument --copy-wait: '-1' is no number of seconds from 0 to 600; see --help\n",
        ),
        (
            "mail",
            f"{IMAP} --imap-security none",
            "--imap-security none is for servers on this machine: imap.example.com would get the password\n",
        ),
        ("mail", f"{IMAP} --ca-file {{folder}}/none", "--ca-file {folder}/none: No such file or directory\n"),
        ("mail", f"{IMAP} --ca-file {{folder}}/empty", "--ca-file {folder}/empty: "),
        (
            "mail",
            f"--maildir {{folder}}/none {FROM}",
            "the Maildir {folder}/none does not exist. Make it, with directories cur, new and tmp in it\n",
        ),
        ("ticketing", "", "the following arguments are required: --database; see --help\n"),
        (
            "ticketing",
            "--database {folder}/none/tickets.db",
            "{folder}/none/tickets.db: the folder {folder}/none does not exist. Create it, or name another file\n",
        ),
        (
            "ticketing",
            "--database /",
            "/: cannot be written (Is a directory). Name a file in a folder that can be written\n",
        ),
        ("warranty", "", "the following arguments are required: --file; see --help\n"),
        ("warranty", "--flie x.csv", "the following arguments are required: --file; see --help\n"),
        (
            "warranty",
            "--file x.csv --today soon",
            "argument --today: 'soon' is no date; write it as 2027-03-31; see --help\n",
        ),
        (
            "warranty",
            "--file {folder}/none",
            "{folder}/none: cannot be read (No such file or directory). Create it, or name another file\n",
        ),
        (
            "warranty",
            "--file {folder}/bad.csv",
            "{folder}/bad.csv:2: expiration_date '31.01.2030' is no date. Write it as 2027-03-31\n",
        ),
        ("table", "--file x.csv", "the following arguments are required: --key; see --help\n"),
        ("table", "--file x.csv --key ' '", "--key is blank. Name the column with the number\n"),
        ("table", "--file {folder}/bad.csv --key id", "{folder}/bad.csv:1: has no column id. Begin the file with"),
    ],
)
def test_what_is_wrong_with_it_or_what_it_names_is_one_line_and_exit_code_2(
    server: str, arguments: str, message: str, tmp_path: Path
) -> None:
    (tmp_path / "empty").touch()
    (tmp_path / "bad.csv").write_text("serial_number,expiration_date\nSN-100,31.01.2030\n")
    given = shlex.split(arguments.format(folder=tmp_path))
    done = run_program(f"{SERVERS}.{server}", *given, IMAP_PASSWORD="secret")
    assert (done.returncode, done.stdout, done.stderr.count("\n")) == (2, "", 1)
    assert done.stderr.startswith(message.format(folder=tmp_path))


def test_so_is_a_password_that_is_not_set() -> None:
    done = run_program(f"{SERVERS}.mail", *shlex.split(IMAP))
    message = "IMAP_PASSWORD is not set. Put the password of the IMAP user into the environment\n"
    assert (done.returncode, done.stdout, done.stderr) == (2, "", message)


@pytest.mark.parametrize(
    ("server", "message"),
    [
        ("mail", "IMAP_PASSWORD"),
        ("ticketing", "SQLite"),
        ("warranty", "serial_number,expiration_date"),
        ("table", "column with the number"),
    ],
)
def test_help_documents_it(server: str, message: str) -> None:
    done = run_program(f"{SERVERS}.{server}", "--help")
    assert (done.returncode, done.stderr) == (0, "")
    assert message in " ".join(done.stdout.split())
    assert "Exit code 2" in " ".join(done.stdout.split())
