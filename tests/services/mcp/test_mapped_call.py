from typing import Any

import pytest

from guarantee_email_agent.config.mcp_server import (
    TICKETING_TOOLS,
    WARRANTY_TOOLS,
    AnswerSource,
    ArgumentTarget,
    NotFound,
    ToolMapping,
)
from guarantee_email_agent.services.mcp.mapped_call import (
    UnmappedArgumentError,
    UnreadableAnswerError,
    answer_content,
    build_arguments,
    is_empty,
    read_answer,
)
from guarantee_email_agent.utils.field_path import MISSING

CHECK = WARRANTY_TOOLS["check_warranty"]
CREATE = TICKETING_TOOLS["create_ticket"]
TICKET = {"serial_number": "SN-1", "customer_email": "a@example.org", "priority": "normal", "idempotency_key": "mail-1"}


def mapping(**fields: Any) -> ToolMapping:
    return ToolMapping(tool="theirs", **fields)


class TestArguments:
    def test_each_goes_where_its_path_leads_beside_constants(self) -> None:
        one = mapping(arguments={"serial_number": "filter.serials[0]"}, constants={"filter.limit": 2, "fields": ["a"]})
        built = build_arguments(one, CHECK, {"serial_number": "SN-1"})
        assert built == {"filter": {"serials": ["SN-1"], "limit": 2}, "fields": ["a"]}

    def test_several_that_go_to_one_become_the_lines_of_a_text(self) -> None:
        names = {"serial_number": ["title", "text"], "customer_email": "text", "idempotency_key": "text"}
        priority = ArgumentTarget("urgency", values={"normal": 3})
        targets = {name: tuple(to) if isinstance(to, list) else to for name, to in names.items()}
        built = build_arguments(mapping(arguments={**targets, "priority": priority}), CREATE, TICKET)
        text = "serial_number: SN-1\ncustomer_email: a@example.org\nidempotency_key: mail-1"
        assert built == {"title": "SN-1", "text": text, "urgency": 3}

    def test_value_cannot_pass_for_a_line_of_its_own(self) -> None:
        one = mapping(arguments={"serial_number": "text", "customer_email": "text"})
        forged = {"serial_number": "SN-1\nidempotency_key: mail-2", "customer_email": "a@example.org"}
        assert build_arguments(one, CREATE, forged)["text"].count("\n") == 1

    def test_further_fields_go_where_details_do(self) -> None:
        one = mapping(arguments={"customer_email": "text", "details": "text"})
        built = build_arguments(one, CREATE, {"customer_email": "a@example.org", "order_number": "AB-1"})
        assert built["text"].splitlines() == ["customer_email: a@example.org", "order_number: AB-1"]

    @pytest.mark.parametrize(
        ("arguments", "given"),
        [
            ({"customer_email": "text"}, {"order_number": "AB-1"}),
            ({"priority": ArgumentTarget("urgency", values={"low": 1})}, {"priority": "normal"}),
            ({"serial_number": ArgumentTarget("number", form="number")}, {"serial_number": "SN-1"}),
        ],
    )
    def test_what_has_no_place_is_never_lost_in_silence(self, arguments: dict[str, Any], given: dict[str, str]) -> None:
        with pytest.raises(UnmappedArgumentError) as caught:
            build_arguments(mapping(arguments=arguments), CREATE, given)
        assert not any(value in str(caught.value) for value in given.values())

    @pytest.mark.parametrize(("form", "given", "written"), [("number", "17", 17), ("text", 17, "17")])
    def test_values_are_written_in_another_form(self, form: Any, given: object, written: object) -> None:
        one = mapping(arguments={"serial_number": ArgumentTarget("serial", form=form)})
        assert build_arguments(one, CHECK, {"serial_number": given}) == {"serial": written}


DEVICE = mapping(
    result={
        "status": AnswerSource("rows[only].state", values={"active": "valid", "true": "expired"}),
        "expiration_date": "rows[only].ends",
        "owner_email": "rows[only].owner",
        "serial_number": "rows[only].serial",
    },
    not_found=NotFound(empty="rows"),
)


def device(**fields: Any) -> dict[str, Any]:
    return {"rows": [{"state": "active", "ends": "2030-01-31", "owner": None, "serial": "sn 1", **fields}]}


class TestAnswers:
    def test_fields_are_found_and_their_words_translated(self) -> None:
        answer = read_answer(DEVICE, CHECK, device(), {"serial_number": "SN-1"})
        assert answer == {"status": "valid", "expiration_date": "2030-01-31", "serial_number": "sn 1"}

    @pytest.mark.parametrize(("state", "status"), [("ACTIVE", "valid"), (True, "expired"), ("valid", "other")])
    def test_word_that_nobody_said_the_meaning_of_is_none_of_ours(self, state: object, status: str) -> None:
        assert read_answer(DEVICE, CHECK, device(state=state), {"serial_number": "SN1"})["status"] == status

    @pytest.mark.parametrize(
        ("content", "problem"),
        [
            ({"rows": [{"owner": None}]}, "has no rows[only].state, which is its status"),
            ({"data": []}, "has no rows[only].state"),
            ({"rows": [{"state": "active"}]}, "has no rows[only].owner"),
            ({"rows": [*device()["rows"], *device()["rows"]]}, "holds several items"),
            (device(serial="SN-2"), "is about another serial_number"),
            (device(state={"deep": 1}), "has an unusable rows[only].state"),
            (device(ends="2030\x1b[31m"), "has an unusable rows[only].ends"),
            (device(ends="9" * 20_000), "has an unusable rows[only].ends"),
            (device(ends=float("nan")), "has an unusable rows[only].ends"),
            (device(ends=10**400), "has an unusable rows[only].ends"),
            (device(serial=None), "has no rows[only].serial, which is its serial_number"),
            ({"rows": [{"state": "active", "owner": None}]}, "has no rows[only].serial, which is its serial_number"),
            ([], "has no rows[only].state"),
            (7, "has no rows[only].state"),
        ],
    )
    def test_answer_of_another_shape_is_told_by_its_field(self, content: object, problem: str) -> None:
        with pytest.raises(UnreadableAnswerError) as caught:
            read_answer(DEVICE, CHECK, content, {"serial_number": "SN-1"})
        assert problem in str(caught.value)

    @pytest.mark.parametrize("status", ["not_found", "Not found"])
    def test_answer_that_nothing_was_found_needs_no_number(self, status: str) -> None:
        one = mapping(result={"status": AnswerSource("state", values={"none": status}), "serial_number": "serial"})
        assert read_answer(one, CHECK, {"state": "none"}, {"serial_number": "SN-1"}) == {"status": status}

    @pytest.mark.parametrize(("answered", "asked"), [(123456, "00123456"), ("0123456", "123456"), (0, "000")])
    def test_number_of_digits_is_the_same_with_zeros_before_it(self, answered: object, asked: str) -> None:
        one = mapping(
            arguments={"serial_number": ArgumentTarget("id", form="number")},
            result={"status": "state", "serial_number": "id"},
        )
        assert read_answer(one, CHECK, {"state": "valid", "id": answered}, {"serial_number": asked})

    @pytest.mark.parametrize("number", [2**64 - 1, -(2**63)])
    def test_number_of_64_bits_may_be_an_id(self, number: int) -> None:
        assert read_answer(mapping(result={"ticket_id": "id"}), CREATE, {"id": number}, {}) == {
            "ticket_id": str(number)
        }

    @pytest.mark.parametrize(
        "content",
        [
            {"rows": [], "error": "the database is locked"},
            {"rows": None, "errors": [{"message": "the database is locked"}]},
            {"data": {"rows": []}, "errors": ["the database is locked"]},
            {"data": {"rows": [], "error": {"code": 7}}},
        ],
    )
    def test_nothing_beside_an_error_is_no_answer(self, content: dict[str, Any]) -> None:
        not_found = NotFound(empty="data.rows" if "data" in content else "rows", text='no "device"')
        with pytest.raises(UnreadableAnswerError, match="and an error beside it"):
            is_empty(mapping(not_found=not_found), content)

    @pytest.mark.parametrize("error", ['No "device" there', None, "", []])
    def test_nothing_beside_the_words_for_it_is_nothing_found(self, error: object) -> None:
        assert is_empty(mapping(not_found=NotFound(empty="rows", text='no "device"')), {"rows": [], "error": error})

    def test_nothing_found_is_what_is_empty_and_not_what_is_missing(self) -> None:
        assert is_empty(DEVICE, {"rows": []})
        assert not is_empty(DEVICE, device())
        with pytest.raises(UnreadableAnswerError):
            is_empty(DEVICE, {"records": []})

    def test_items_are_read_one_by_one_and_one_without_a_text_is_passed_over_but_not_all_of_them(self) -> None:
        one = mapping(result={"tickets": AnswerSource(".", each={"ticket_id": "id", "idempotency_key": "text"})})
        find = TICKETING_TOOLS["find_ticket"]
        content = [{"id": 7, "text": "line\nmail-1"}, {"id": 1}, {"id": "x", "text": None}]
        assert read_answer(one, find, content, {})["tickets"] == [
            {"ticket_id": "7", "idempotency_key": "line\nmail-1"},
            {"ticket_id": "1", "idempotency_key": ""},
            {"ticket_id": "x", "idempotency_key": ""},
        ]
        with pytest.raises(UnreadableAnswerError, match="has no item with text"):
            read_answer(one, find, [{"id": 1, "body": "mail-1"}], {})

    @pytest.mark.parametrize(
        ("structured", "text", "content"),
        [({"a": 1}, "x", {"a": 1}), (None, "[1]", [1]), (None, "prose", MISSING), (None, "NaN", MISSING)],
    )
    def test_content_is_structured_or_json(self, structured: object, text: str, content: object) -> None:
        assert answer_content(structured, text) == content
