"""The mailbox in `examples/orders`, which has no line of code: its suite, and the agent on it."""

import json
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from email import message_from_bytes
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[1] / "examples" / "orders"


def run(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "guarantee_email_agent", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120, check=False)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    shutil.copytree(EXAMPLE, tmp_path / "orders")
    return tmp_path / "orders"


def test_its_suite_passes(folder: Path) -> None:
    done = run(folder, "eval")
    assert "asked back: 7; not answered: 1; stopped at a fault: 1\nPass rate: 39/39 (100%)" in done.stdout
    assert (done.returncode, done.stderr) == (0, "")


def test_a_german_sentence_that_is_gone_fails_a_scenario(folder: Path) -> None:
    reply = folder / "instructions" / "scenarios" / "order-cancelled.de.md"
    reply.write_text(reply.read_text().replace("Das Geld geht auf das Konto zurück, von dem es kam.", "Danke."))
    done = run(folder, "eval")
    assert "order_cancelled_003" in done.stdout
    assert done.returncode == 4


def test_an_edited_table_of_words_changes_the_answers(folder: Path) -> None:
    config = folder / "config.yaml"
    config.write_text(config.read_text().replace("[processing, shipped, delivered, cancelled]", "[processing]"))
    done = run(folder, "eval")
    assert done.returncode == 2
    assert (
        "order-shipped.md:5: trigger[0].status: is 'shipped', which is none. Known are: processing, not_" in done.stderr
    )


@pytest.mark.slow
def test_the_agent_answers_from_the_table(folder: Path) -> None:
    for name in ("new", "cur", "tmp"):
        (folder / "mailbox" / name).mkdir(parents=True)
    asked = {"jane": "AB-10001", "ada": "ab10003", "eve": "AB-10001", "tom": "AB-99999"}
    for index, (name, number) in enumerate(asked.items()):
        (folder / "mailbox" / "new" / f"170000000{index}.M1P1.host").write_text(
            f"From: {name}@example.com\nTo: orders@example.com\nSubject: My order\nMessage-ID: <{name}@example.com>\n"
            f"\nWhere is my order {number}?\n"
        )
    assert run(folder, "eval", "--quiet").returncode == 0
    done = run(folder, "run", "--once")
    assert done.returncode == 0, done.stderr

    files = (folder / "mailbox" / ".Sent").glob("[cn]*/*")
    replies = {
        mail["To"]: mail.get_payload(decode=True) for mail in map(message_from_bytes, map(Path.read_bytes, files))
    }
    texts = {to: body.decode() for to, body in replies.items() if isinstance(body, bytes)}
    assert "AB-10001 is on its way with Parcel Post" in texts["jane@example.com"]
    assert "AB10003 was handed over by Parcel Post" in " ".join(texts["ada@example.com"].split())
    assert "AB-10001" not in texts["eve@example.com"]
    assert "our\nlist does not have it" in texts["tom@example.com"]
    with closing(sqlite3.connect(folder / "tickets.db")) as tickets:
        ((email, details),) = tickets.execute("SELECT customer_email, details FROM tickets").fetchall()
    assert (email, json.loads(details)["order"]) == ("ada@example.com", "AB10003")
