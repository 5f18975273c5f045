from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.email.processor_models import ProcessingResult
from guarantee_email_agent.eval.checks import (
    AtMost,
    check_at_most,
    check_completed,
    check_recipients,
    find_phrase,
    unobservable_output,
)
from guarantee_email_agent.eval.models import EvalExpectedOutput, ExpectedAnswer
from guarantee_email_agent.llm.port import NO_TOKENS, TokenUsage
from guarantee_email_agent.llm.usage import ModelUsage
from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.utils.errors import AgentError

_SIGNS = "aB1 \n\t\u00a0ß*_`~\u00ad\u0301\u200b\u2019"
REMEDY = "expect the words, with response_body_contains"
GOOD: dict[str, Any] = {
    "email_sent": True,
    "response_body": "Your warranty is valid until 2025-12-31.",
    "ticket_created": True,
    "ticket_fields": {"serial_number": "SN12345", "priority": "normal"},
    "scenario_used": "valid-warranty",
}


def expected(**changes: Any) -> EvalExpectedOutput:
    return EvalExpectedOutput(
        **{"email_sent": True, "ticket_created": True, "scenario_instruction_used": "valid-warranty"} | changes
    )


class TestMatches:
    def test_lists_and_tuples_serve_alike(self) -> None:
        for phrases in (["valid"], ("valid",)):
            (failure,) = expected(response_body_contains=phrases, response_body_excludes=phrases).matches(GOOD)[1]
            assert failure == (
                "response_body_excludes: found phrase 'valid'\n"
                "  expected: no 'valid'\n"
                "  actual:   'Your warranty is valid until 2025-12-31.'"
            )

    def test_what_is_left_out_is_not_judged(self) -> None:
        assert EvalExpectedOutput().matches({}) == (True, [])
        wanted = EvalExpectedOutput(email_sent=True, response_body_contains=["absent"], ticket_fields=None)
        assert [each.partition("\n")[0] for each in wanted.matches({**GOOD, "email_sent": False})[1]] == [
            "email_sent: no mail was sent",
            "response_body_contains: missing phrase 'absent'",
        ]

    @pytest.mark.parametrize(
        ("said", "failures"),
        [
            ({"a": "Your warranty is valid", "b": "until {ticket_number}2025-12-31."}, []),
            ({"a": "Your warranty", "b": "was never said"}, ["missing sentence 'b'\n  expected: b\n  actual:   a"]),
            ({}, [f"missing sentence '{each}'\n  expected: {each}\n  actual:   (none)" for each in "ab"]),
            (None, [f"only sentences of our own agent have ids; {REMEDY}\n  expected: a, b\n  actual:   not known"]),
        ],
    )
    def test_a_sentence_counts_where_its_words_are_in_the_reply(
        self, said: dict[str, str] | None, failures: list[str]
    ) -> None:
        report = None if said is None else ProcessingResult(True, "m1", reply_sentences=said)
        actual = GOOD | unobservable_output(report, GOOD["response_body"]) | {"scenario_used": "valid-warranty"}
        found = expected(reply_sentences=["a", "b"]).matches(actual)[1]
        assert [each.removeprefix("reply_sentences: ") for each in found] == failures

    def test_none_means_the_default(self) -> None:
        names = EvalExpectedOutput.__dataclass_fields__
        assert EvalExpectedOutput(**dict.fromkeys(names)) == EvalExpectedOutput()

    def test_the_result_of_our_agent_may_be_given(self) -> None:
        report = ProcessingResult(
            True,
            "m1",
            "valid-warranty",
            email_sent=True,
            response_body=GOOD["response_body"],
            ticket_created=True,
            ticket_fields=GOOD["ticket_fields"],
            processing_time_ms=11,
        )
        wanted = expected(response_body_contains=["2025"], ticket_fields={"priority": "normal"})
        assert wanted.matches(report) == (True, [])
        misses = expected(email_sent=False, processing_time_ms=10).matches(report)[1]
        assert [each.partition(":")[0] for each in misses] == ["email_sent", "processing_time_ms"]

    def test_where_our_agent_crashed_nothing_matches(self) -> None:
        report = ProcessingResult(False, "m1", failed_step="parse", error=AgentError("No", "processing_unexpected"))
        wanted = expected(email_sent=False, ticket_created=False, scenario_instruction_used="none")
        assert wanted.matches(report) == (False, ["crash: stopped in step parse: No"])

    def test_a_check_that_crashes_is_a_miss_and_stops_no_other(self) -> None:
        wanted = expected(response_body_contains=[5], ticket_fields="SN12345", processing_time_ms=10)
        assert wanted.matches({**GOOD, "processing_time_ms": 11})[1] == [
            "crash: check_body_contains raised AttributeError: 'int' object has no attribute 'isprintable'",
            "crash: check_ticket_fields raised AttributeError: 'str' object has no attribute 'items'",
            "processing_time_ms: took too long\n  expected: at most 10\n  actual:   11",
        ]

    def test_every_check_runs_and_every_miss_is_listed_in_order(self) -> None:
        wanted = expected(
            response_body_contains=["one", "two"],
            response_body_excludes=["warranty", "valid"],
            ticket_fields={"serial_number": "SN9", "colour": "red"},
            processing_time_ms=10,
        )
        actual = {**GOOD, "email_sent": False, "ticket_created": False, "scenario_used": "x", "processing_time_ms": 11}
        passed, failures = wanted.matches(actual)
        assert not passed
        assert [failure.partition("\n")[0] for failure in failures] == [
            "email_sent: no mail was sent",
            "response_body_contains: missing phrase 'one'",
            "response_body_contains: missing phrase 'two'",
            "response_body_excludes: found phrase 'warranty'",
            "response_body_excludes: found phrase 'valid'",
            "ticket_created: no ticket was created",
            "ticket_fields: wrong value of 'serial_number'",
            "ticket_fields: missing field 'colour'",
            "scenario_instruction_used: another instruction was used",
            "processing_time_ms: took too long",
        ]

    def test_a_long_reply_is_cut(self) -> None:
        (failure,) = expected(response_body_contains=["absent"]).matches({**GOOD, "response_body": "word " * 999})[1]
        shown = failure.rpartition("actual:   ")[2]
        assert shown.endswith("word …'")
        assert len(shown) < 210

    def test_an_excluded_phrase_is_shown_where_it_stands(self) -> None:
        body = "so much text " * 99 + "Your warranty has EXPIRED, we are sorry." + " more" * 99
        (failure,) = expected(response_body_excludes=["expired"]).matches({**GOOD, "response_body": body})[1]
        assert "EXPIRED" in failure

    @pytest.mark.parametrize(
        ("phrase", "body"),
        [
            ("warranty is valid", "Your WARRANTY\n  Is\tvalid."),
            ("warranty\n is   valid", "your warranty is valid"),
            ("100 €", "costs 100\u00a0€"),
            ("100\u202f€", "costs 100 €"),
            ("straße", "STRASSE"),
            ("STRASSE", "Straße"),
            (" valid ", "is valid now"),
            ("valid\n", "is valid now"),
            ("warranty is valid", "war\u00adranty\u2060 is va\u200blid\ufeff"),
            ("warranty is valid", "war\u202aranty is va\x01lid\ufe0f\U000e0041"),
            ("war\u200branty", "warranty"),
            ("warranty is valid", "**Warranty** _is_ `valid`"),
            ("warranty is valid.", "your *warranty* is* **valid.**"),
            ("warranty is valid", "war**rant**y ~~is~~ __valid__"),
            ("**is** valid", "is valid"),
            ("don't", "don\u2019t"),
            ('a "mere" scratch', "a \u201emere\u201c scratch"),
            ("follow-up - today", "follow\u2011up \u2014 today"),
            ("11\u201312", "11-12"),
            ("Gerät", "Gera\u0308t"),
            ("e\u0301", "É"),
            ("\u1112\u1161\u11ab", "한"),
            ("**", "is **valid**"),
            ("*", "a *b*"),
            ("5 * 3", "5 * 3"),
            ("SN_1", "sn_1"),
        ],
    )
    def test_what_people_would_not_tell_apart_is_the_same(self, phrase: str, body: str) -> None:
        actual = {**GOOD, "response_body": body}
        assert expected(response_body_contains=[phrase]).matches(actual)[0]
        assert not expected(response_body_excludes=[phrase]).matches(actual)[0]

    @pytest.mark.parametrize(
        ("phrase", "body"),
        [
            *[("notfound", "not found"), ("not found", "notfound"), (" valid", "invalid")],
            *[("SN1", "SN_1"), ("SN_1", "SN1"), ("53", "5*3"), ("**", "a b"), ("is-valid", "is valid")],
        ],
    )
    def test_what_people_would_tell_apart_is_not(self, phrase: str, body: str) -> None:
        actual = {**GOOD, "response_body": body}
        assert not expected(response_body_contains=[phrase]).matches(actual)[0]
        assert expected(response_body_excludes=[phrase]).matches(actual)[0]

    @given(st.lists(st.text(_SIGNS, min_size=1), max_size=4), st.text(_SIGNS))
    def test_a_phrase_is_either_contained_or_excluded(self, phrases: list[str], body: str) -> None:
        actual = {**GOOD, "response_body": body}
        missing = expected(response_body_contains=phrases).matches(actual)[1]
        found = expected(response_body_excludes=phrases).matches(actual)[1]
        assert len(missing) + len(found) == len(phrases)
        for phrase in phrases:
            if (span := find_phrase(phrase, body)) is not None:
                assert find_phrase(phrase, body[slice(*span)]) is not None

    def test_without_a_mail_phrases_are_missing_and_none_is_found(self) -> None:
        wanted = expected(email_sent=False, response_body_contains=["a"], response_body_excludes=["b"])
        assert wanted.matches({**GOOD, "email_sent": False, "response_body": None})[1] == [
            "response_body_contains: missing phrase 'a'\n  expected: 'a'\n  actual:   None"
        ]

    @pytest.mark.parametrize(
        ("check", "what"), [("email_sent", "a mail was sent"), ("ticket_created", "a ticket was created")]
    )
    def test_what_must_not_happen(self, check: str, what: str) -> None:
        (failure,) = expected(**{check: False}).matches(GOOD)[1]
        assert failure == f"{check}: {what}\n  expected: False\n  actual:   True"

    def test_an_empty_record_is_nothing_but_misses(self) -> None:
        wanted = expected(response_body_contains=["a"], ticket_fields={"priority": "normal"})
        assert [failure.partition(":")[0] for failure in wanted.matches({})[1]] == [
            "email_sent",
            "response_body_contains",
            "ticket_created",
            "ticket_fields",
            "scenario_instruction_used",
        ]

    @pytest.mark.parametrize("value", [1, "true", None])
    def test_only_a_true_is_true(self, value: object) -> None:
        assert not expected().matches({**GOOD, "email_sent": value})[0]

    @pytest.mark.parametrize(
        ("found", "passes"),
        [
            ("5", True),
            (5, True),
            ("5\u200b", True),
            ("**5**", True),
            ("5 ", False),
            ("05", False),
            (None, False),
            (True, False),
        ],
    )
    def test_ticket_fields_are_compared_as_text(self, found: object, passes: bool) -> None:
        assert expected(ticket_fields={"count": "5"}).matches({**GOOD, "ticket_fields": {"count": found}})[0] is passes

    @pytest.mark.parametrize("fields", [None, "text", []])
    def test_a_ticket_that_is_no_mapping_has_no_fields(self, fields: object) -> None:
        wanted = expected(ticket_fields={"priority": "normal"})
        (failure,) = wanted.matches({**GOOD, "ticket_fields": fields})[1]
        assert failure.startswith("ticket_fields: missing field 'priority'")

    @pytest.mark.parametrize(
        ("wanted", "used", "passes"),
        [("none", None, True), ("none", "no-reply", False), ("no-reply", None, False), ("no-reply", "no-reply", True)],
    )
    def test_none_means_that_no_instruction_was_used(self, wanted: str, used: str | None, passes: bool) -> None:
        assert expected(scenario_instruction_used=wanted).matches({**GOOD, "scenario_used": used})[0] is passes

    @pytest.mark.parametrize(("took", "passes"), [(0, True), (100, True), (101, False), ("fast", False), (None, False)])
    def test_the_time_limit_holds_its_own_value(self, took: object, passes: bool) -> None:
        assert expected(processing_time_ms=100).matches({**GOOD, "processing_time_ms": took})[0] is passes


class TestPassedChecks:
    WANTED = expected(
        response_body_contains=["WARRANTY is valid", "2025"],
        response_body_excludes=["expired"],
        ticket_fields={"priority": "normal"},
    )

    def test_every_one_is_listed_with_what_came(self) -> None:
        assert [(each.name, each.expected, each.actual) for each in self.WANTED.checks(GOOD) if each.passed] == [
            ("email_sent", "True", "True"),
            ("response_body_contains", "'WARRANTY is valid'", "Your warranty is valid until 2025-12-31."),
            ("response_body_contains", "'2025'", "Your warranty is valid until 2025-12-31."),
            ("response_body_excludes", "no 'expired'", "it is not in the reply"),
            ("ticket_created", "True", "True"),
            ("ticket_fields", "priority: 'normal'", "priority: 'normal'"),
            ("scenario_instruction_used", "'valid-warranty'", "'valid-warranty'"),
        ]

    @pytest.mark.parametrize(
        ("body", "shown"),
        [
            (
                "so much text " * 9 + "the warranty  is\nvalid, 2025" + " more" * 9,
                "… so much text so much text the warr",
            ),
            ("Straße: the warranty is valid, 2025", "strasse: the warranty is valid, 2025"),
        ],
    )
    def test_a_phrase_shows_as_it_stands_in_the_reply(self, body: str, shown: str) -> None:
        found = self.WANTED.checks(GOOD | {"response_body": body})[1]
        assert found.passed
        assert str(found.actual).startswith(shown[:20])
        assert "warranty is valid" in str(found.actual)


class TestWhatHoldsForEveryScenario:
    def test_recipients(self) -> None:
        assert list(check_recipients("email_sent", "jane@example.com", ["Jane@Example.com"])) == []
        assert list(check_recipients("email_sent", None, ["anybody@example.net"])) == []
        found = check_recipients("email_sent", "jane@example.com", ["a@example.net"] * 2)
        assert [check.reason for check in found] == ["2 mails were sent", *["a mail went to somebody else"] * 2]

    @pytest.mark.parametrize(
        ("code", "others_failed", "check"),
        [
            ("warranty_timeout", False, None),
            ("warranty_timeout", True, "agent"),
            ("llm_timeout", False, "agent"),
            ("processing_unexpected", False, "crash"),
        ],
    )
    def test_an_agent_that_stopped(self, code: str, others_failed: bool, check: str | None) -> None:
        report = ProcessingResult(False, "m", failed_step="draft", error=AgentError("no answer", code))
        found = [] if check is None else [Check(check, "stopped in step draft: no answer")]
        assert list(check_completed(report, others_failed)) == found
        assert list(check_completed(ProcessingResult(True, "m"), others_failed=True)) == []


@pytest.mark.parametrize(
    ("at_most", "used", "failed"),
    [
        (AtMost(2, 1.5, 30, 0.1), ModelUsage(1, TokenUsage(20, 10), 0.1, 5), []),
        (
            AtMost(1, 1.4, 29, 0.09),
            ModelUsage(1, TokenUsage(20, 10), 0.1, 5),
            ["calls: 2", "seconds: 1.5", "tokens: 30", "usd: 0.1"],
        ),
        (AtMost(tokens=0, usd=0), ModelUsage(1, NO_TOKENS, 0.0, 5), []),
        (
            AtMost(tokens=99, usd=99),
            ModelUsage(1, TokenUsage(20, 10, uncounted=1), None, 5),
            ["tokens: not known", "usd: not known"],
        ),
        (AtMost(tokens=99, usd=99), ModelUsage(1, TokenUsage(20, 10), None, 5), ["usd: not known"]),
        (AtMost(2, 1.5, 99, 99), None, ["tokens: not known", "usd: not known"]),
    ],
)
def test_what_a_run_may_take(at_most: AtMost, used: ModelUsage | None, failed: list[str]) -> None:
    checks = list(check_at_most(at_most, {"calls": [{}, {}], "processing_time_ms": 1500}, used))
    assert [f"{each.name.removeprefix('at_most.')}: {each.actual}" for each in checks if not each.passed] == failed
    assert len(checks) == len(at_most.limits())
    assert not any("1.5" in str(each.actual) for each in checks if each.passed)


@pytest.mark.parametrize(
    ("expected", "answer", "failed"),
    [
        ({"contains": ("is  valid",), "excludes": ("expired",)}, "It IS\nvalid.", []),
        ({"contains": ("valid",), "excludes": ("over",)}, "It is over.", ["contains", "excludes"]),
        ({"equals": "42"}, " 42\n", []),
        ({"equals": "42"}, "42.", ["equals"]),
        ({"equals": "42"}, 42, ["equals"]),
        ({"equals": 42}, "42", []),
        ({"equals": 1}, True, ["equals"]),
        ({"equals": {"a": [1, None]}}, '{"a": [1, null]}', []),
        ({"equals": {"a": 1}}, "no JSON", ["equals"]),
        ({"json": {"a.b[0]": "x", ".": {"a": {"b": ["x"]}}}}, {"a": {"b": ["x"]}}, []),
        ({"json": {"a.b[1]": "x"}}, {"a": {"b": ["x"]}}, ["json"]),
        ({"json": {"a": None}}, {"a": None}, []),
        ({"json": {"a": None}}, {}, ["json"]),
        ({"json": {"a": True}}, '{"a": 1}', ["json"]),
        ({"json": {"a": {"approx": 2, "tolerance": 1}, "b": {"contains": "x"}}}, {"a": 1, "b": "y"}, ["json"]),
        ({"matches": r"B-\d+"}, "It is B-17.", []),
        ({"matches": r"^B-\d+$"}, "It is B-17.", ["matches"]),
        ({"excludes": ("sorry",), "matches": ".*", "json": {"a": None}}, None, ["excludes", "json", "matches"]),
        ({"excludes": ("sorry",)}, "", []),
    ],
)
def test_the_answer_of_an_agent(expected: dict[str, Any], answer: object, failed: list[str]) -> None:
    checks = EvalExpectedOutput(answer=ExpectedAnswer(**expected)).checks({"answer": answer})
    assert [each.name.removeprefix("answer.") for each in checks if not each.passed] == failed
    if answer is None:
        assert {each.reason for each in checks} == {
            'the agent gave none: its last line, response or return value has no "task_result"'
        }
