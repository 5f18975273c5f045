import pytest

from guarantee_email_agent.services.ports import parse_ticket_id
from guarantee_email_agent.utils.errors import IntegrationError


@pytest.mark.parametrize("number", ["T-1", "MOCK-TICKET-001", "#4711", "JIRA/88"])
def test_gives_the_number_of_a_ticket(number: str) -> None:
    assert parse_ticket_id({"ticket_id": number, "status": "created"}) == number


BAD_NUMBERS = (None, 7, "", "T 1", "T-1\n", "T-1\nBcc: c@example.com", "x" * 65, "<b>T-1</b>", "{T-1}", "T-１", "Т-1")


@pytest.mark.parametrize("raw", [None, "T-1", {}, *({"ticket_id": number} for number in BAD_NUMBERS)])
def test_an_answer_without_a_usable_ticket_number_is_malformed(raw: object) -> None:
    with pytest.raises(IntegrationError, match="no usable ticket_id") as caught:
        parse_ticket_id(raw)
    assert caught.value.code == "ticketing_malformed"
