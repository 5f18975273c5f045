"""A service whose answers have another form than ours: whose fault that is, what waits, and what is done once."""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import pytest
from company import Company

pytestmark = pytest.mark.slow

PROGRAM = Path(__file__).parent / "programs" / "foreign_service.py"
GOOD = {"status": "valid", "expiration_date": "2099-12-31", "coverage": "full"}
GOOD_TICKET = {"ticket_id": "T-{number}", "status": "created"}


class Desk:
    """The company with services of somebody else's, whose answers a test chooses."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.file = company.folder / "answers.json"
        server = {"command": sys.executable, "args": [str(PROGRAM), "answers.json"]}
        company.configure(
            mcp={"warranty_api": server, "ticketing_system": server},
            agent={"poll_interval_s": 0.2, "mail_budget_s": 10, "max_attempts": 1},
        )
        self.answer()

    def answer(
        self, warranty: object = GOOD, ticket: object = GOOD_TICKET, special: dict[str, object] | None = None
    ) -> None:
        """warranty, ticket: every answer from now on; special: the warranties of single serial numbers."""
        answers = {
            "check_warranty": {"*": warranty, **(special or {})},
            "create_ticket": {"*": ticket},
        }
        self.file.write_text(json.dumps(answers))

    def receive(self, count: int) -> None:
        for number in range(count):
            self.company.receive(f"mail{number:02d}", f"Is SN{20_000 + number} under warranty?")

    def counts(self) -> dict[str, int]:
        return {name: count for name, count in self.company.inbox_counts().items() if count}

    def tickets(self) -> int:
        return len(self.file.with_name("answers.json.tickets").read_text().split())


@pytest.fixture
def desk(company: Company) -> Desk:
    return Desk(company)


def test_mails_wait_while_a_warranty_system_answers_in_another_form(desk: Desk) -> None:
    desk.answer(warranty={**GOOD, "expiration_date": "2099-12-31 " * 500_000})
    desk.receive(8)
    done = desk.company.run("run", "--once")
    assert done.returncode == 1
    assert re.search("WARNING warranty_api: the answer of check_warranty .* Check the server", done.stderr)
    assert desk.counts() == {"to answer": 8}
    desk.answer()
    assert desk.company.run("run", "--once").returncode == 0
    assert desk.counts() == {"answered": 8}


def test_tickets_that_were_opened_are_found_again_once_their_numbers_can_be_read(desk: Desk) -> None:
    desk.answer(ticket={"ticket_id": "{integer}"})
    desk.receive(8)
    done = desk.company.run("run", "--once")
    assert done.returncode == 1
    assert "WARNING ticketing: the answer of create_ticket has no usable ticket_id. Check the server" in done.stderr
    assert desk.counts() == {"to answer": 8}
    desk.answer()
    assert desk.company.run("run", "--once").returncode == 0
    assert desk.counts() == {"answered": 8}
    numbers = {re.findall(r"T-\d+", reply)[0] for reply in desk.company.replies()}
    assert len(numbers) == desk.tickets() == 8


def test_an_odd_record_is_the_fault_of_the_one_mail_that_asks_for_it(desk: Desk) -> None:
    """Also where it comes first, so that nothing is known yet of the service."""
    desk.answer(special={"SN20000": {**GOOD, "expiration_date": "soon"}})
    desk.receive(6)
    done = desk.company.run("run", "--once")
    assert "mail00 failed 1 times (warranty_api_malformed); it is left for a person" in done.stderr
    assert desk.counts() == {"answered": 5, "quarantined": 1}
