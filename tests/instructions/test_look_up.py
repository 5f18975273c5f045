"""What a look-up's description says of its facts and topics."""

from guarantee_email_agent.instructions.look_up import WARRANTY, Fact, LookUp, look_up_of

ORDERS = LookUp("orders", ("order", "return"), "order_number", "status", ("shipped",), (Fact("due", "date"),))


def test_serves_its_own_topics() -> None:
    assert look_up_of("return", (WARRANTY, ORDERS)) is ORDERS
    assert look_up_of("warranty", (WARRANTY, ORDERS)) is WARRANTY
    assert look_up_of("other", (WARRANTY, ORDERS)) is None
    assert look_up_of(None, (WARRANTY, ORDERS)) is None


def test_a_status_has_no_placeholder() -> None:
    asked = ("unreadable_serial_number", "unconfirmed_serial_number")
    assert WARRANTY.fact_names == ("serial_number", "warranty_status", "expiration_date", "coverage", *asked)
    assert WARRANTY.placeholders == ("serial_number", "expiration_date", "coverage", "unconfirmed_serial_number")


def test_facts_mean_nothing_where_the_service_does_not_know_the_number() -> None:
    assert ORDERS.facts_with("shipped") == ORDERS.facts
    assert ORDERS.facts_with("not_found") == ORDERS.facts_with("other") == ORDERS.facts_with("withheld") == ()


def test_a_coverage_is_the_valid_warrantys_alone() -> None:
    assert [fact.name for fact in WARRANTY.facts_with("valid")] == ["expiration_date", "coverage"]
    assert [fact.name for fact in WARRANTY.facts_with("expired")] == ["expiration_date"]
