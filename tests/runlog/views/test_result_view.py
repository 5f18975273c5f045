"""One stored result as people and machines see it."""

import io
import json
from typing import Any

import pytest
from stored_runs import StoredRuns, ended, result, stored_run

from guarantee_email_agent.runlog.records import CaseResult, Check, Usage
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.views.result_view import json_result, print_result, print_run, print_runs
from guarantee_email_agent.runlog.views.stored_report import stored_report
from guarantee_email_agent.utils.terminal import Terminal

MAIL = {
    "from": "ada@example.com",
    "subject": "Dryer",
    "body": "Hello,\nit is SN12345, I think.",
    "headers": {"X-A": "b"},
}
READ = {"topic": "warranty", "language": "en", "number_kind": "serial_number", "numbers": ["SN12345"]}
LOOKED_UP = {"look_up": "warranty_api", "number": "SN12345", "status": "valid"}
STEP = {"action": {"action_type": "check_warranty", "serial_number": "SN12345"}, "feedback": {"message": "{}"}}
RESPONSE = {
    "recipients": ["ada@example.com"],
    "response_subject": "Re: Dryer",
    "response_body": "It is valid.",
    "ticket_fields": {"priority": "normal"},
    "scenario_used": "valid-warranty",
}
CHECKS = (
    Check("email_sent", "", "True", "True", passed=True),
    Check("ticket_created", "no ticket was created", "True", "False"),
)


def shown(*results: CaseResult, color: bool = False) -> str:
    stream = io.StringIO()
    print_result(stored_run(), results, Terminal(stream, color=color, ascii_only=False))
    return stream.getvalue()


def test_everything_that_happened_is_shown() -> None:
    trace = {"read": READ | LOOKED_UP, "execution_trace": [STEP]}
    usage = Usage(calls=2, input_tokens=1_200, output_tokens=30, cost_usd=0.0042, latency_ms=900)
    whole = result(
        1,
        "failed",
        request=MAIL,
        response=RESPONSE,
        trace=trace,
        checks=CHECKS,
        usage=usage,
        duration_ms=12.0,
    )
    assert (
        shown(whole)
        == """\
✗ valid_warranty_001: Customer 1 - FAILED
Mail:
    from: ada@example.com
    subject: Dryer
    X-A: b

    Hello,
    it is SN12345, I think.
Read:
    language: en
    topic: warranty
    serial number: SN12345, in 'it is SN12345, I think.'
    look-up: warranty_api of SN12345 → valid
    scenario: valid-warranty, by topic warranty, 1 serial number, status valid
Calls (1):
    check_warranty(serial_number='SN12345')
      → {}
Reply:
    to: ada@example.com
    subject: Re: Dryer

    It is valid.
Ticket:
    priority: normal
Outcome:
    scenario_used: valid-warranty
Checks (1 of 2 passed):
    ✓ email_sent: True
    ✗ ticket_created: no ticket was created
        expected: True
        actual:   False
Took:
    12 ms; 2 answers of the model after 900 ms, 1,200 tokens sent, 30 received, $0.0042
"""
    )


def test_each_repetition_is_shown_and_equal_ones_once() -> None:
    other = {"response_body": "Another"}
    text = shown(
        result(1),
        result(1, repetition=2),
        result(1, "failed", repetition=3, response=other, checks=(Check("a", "b"),)),
    )
    lines = text.splitlines()
    assert lines.count("    the same as the one before") == 1
    assert "✓ valid_warranty_001 (run 2): Customer 1" in lines
    assert "✗ valid_warranty_001 (run 3): Customer 1 - FAILED" in lines
    assert "    ✗ a: b" in lines
    assert lines[-1] == "2 of 3 runs passed"


def test_a_verdict_of_a_task_shows_what_the_judge_said_and_printed() -> None:
    judged = {
        "verdict": "failed",
        "feedback": "two\nlines",
        "details": {"score": 3},
        "error": None,
        "output": "printed",
    }
    text = shown(result(1, "failed", response=None, judgement=judged), color=False)
    assert (
        "Judge:\n    verdict: failed\n    feedback: two\n      lines\n    score: 3\n"
        "Printed by the judge:\n    printed\n" in text
    )


@pytest.mark.parametrize(
    "place",
    [
        {"request": {"subject": "\x1b[2J", "body": "\x1b]0;title\x07"}},
        {"response": {"response_body": "\x1b[31mred", "recipients": ["\u202eevil"]}},
        {
            "trace": {
                "execution_trace": [
                    {"action": {"action_type": "\x1b[1m", "x\x1b": "\x1b"}, "feedback": {"message": "\x1b"}}
                ]
            }
        },
        {"judgement": {"verdict": "failed", "feedback": "\x1b[2J", "output": "\r\x1b[K"}},
        {"checks": (Check("\x1b", "\x1b", "\x1b", "\x9b"),)},
        {"description": "\x1b[2J"},
    ],
)
def test_nothing_that_others_wrote_reaches_the_terminal_as_an_escape(place: dict[str, Any]) -> None:
    text = shown(result(1, **place))
    assert not {"\x1b", "\x9b", "\x07", "\r", "\u202e"} & set(text)


def test_colours_show_on_a_terminal_alone() -> None:
    assert "\x1b[32m✓ email_sent: True\x1b[0m" in shown(result(1, checks=CHECKS), color=True)


def test_json_holds_the_whole_transcript() -> None:
    whole = result(
        1, request=MAIL, source=b"scenario", checks=CHECKS, judgement={"feedback": "no"}, step_ms=(1.5, None)
    )
    report = json.loads(json.dumps(json_result(run := stored_run(), whole)))
    assert (report["request"], report["source"], report["step_ms"]) == (MAIL, "scenario", [1.5, None])
    assert report["judgement"] == {"feedback": "no", "checks": [each.as_dict() for each in CHECKS]}
    assert (report["run_id"], report["verdict"]) == (run.id, "passed")


def test_each_step_says_what_it_took_where_that_is_known() -> None:
    trace = {"execution_trace": [STEP, STEP, STEP]}
    text = shown(result(1, trace=trace, step_ms=(0.0123, None, 4.25)))
    calls = [line.rpartition(")")[2] for line in text.splitlines() if "check_warranty(" in line]
    assert calls == [" 0.01 ms", "", " 4.2 ms"]


def run_shown(runs: StoredRuns) -> list[str]:
    stream = io.StringIO()
    with RunStore(runs.file) as store:
        print_run(store, store.find_run("last"), Terminal(stream, color=False, ascii_only=False))
    return stream.getvalue().splitlines()


def test_a_run_shows_what_of_it_failed_and_why(runs: StoredRuns) -> None:
    checks = tuple(Check("response_body_contains", f"missing phrase {number}") for number in range(5))
    runs.write(1, [result(1), result(2, "failed", checks=checks)], "failed", 4)
    assert run_shown(runs) == [
        "Run: 20260118T100001-00000001, eval of evals/scenarios, 2026-01-18T10:00:00Z, failed, 1/2 (50.0%)",
        "Version: 0.1.0, git 0123abc",
        "✗ valid_warranty_002: Customer 2 - FAILED",
        "    response_body_contains: missing phrase 0",
        "    response_body_contains: missing phrase 1",
        "    response_body_contains: missing phrase 2",
        "    … and 2 more",
        "✓ Passed: 1",
        "✗ Failed: 1",
    ]


def test_of_repetitions_the_first_that_failed_gives_the_reason(runs: StoredRuns) -> None:
    runs.write(1, [result(1), result(1, "failed", repetition=2, checks=(Check("a", "why"),)), result(1, repetition=3)])
    lines = run_shown(runs)
    assert "✗ valid_warranty_001: Customer 1 - FAILED (2 of 3 runs passed)" in lines
    assert "    a: why" in lines


def test_a_run_that_goes_on_says_so_with_what_ran_until_now(runs: StoredRuns) -> None:
    writer = runs.begin(1, at_once=True)
    writer.add(result(1))
    assert run_shown(runs)[0].endswith(", going on, 1/1 (100%), 1 of 2 ran")
    writer.finish(ended("interrupted", 130))


@pytest.mark.parametrize(
    ("usage", "said"),
    [
        (Usage(0, 10, 5, cost_usd=0.5), "Model: not known, at least 15 tokens, $0.5000"),
        (Usage(1, 10, 5, cost_usd=None), "Model: not known, at least 15 tokens, cost not known"),
        (Usage(cost_usd=None), "Model: not known, tokens not known, cost not known"),
    ],
)
def test_what_is_not_known_to_have_been_taken_is_not_nothing(runs: StoredRuns, usage: Usage, said: str) -> None:
    writer = runs.begin(1, at_once=True)
    writer.add(paid := result(1, usage=usage))
    assert run_shown(runs)[2] == said  # what is under way comes on top
    writer.finish(ended("passed", 0))
    assert run_shown(runs)[2] == said.replace("at least ", "")
    told, text = json_result(stored_run(), paid)["usage"], shown(paid)
    assert (told["calls"], told["input_tokens"]) == (usage.calls or None, usage.input_tokens or None)
    assert ("tokens not known, cost" in text, "answer of" in text) == (not usage.input_tokens, bool(usage.calls))


def test_what_did_not_run_is_named_until_it_has(runs: StoredRuns) -> None:
    announced = [f"valid_warranty_{number:03}" for number in (1, 2, 3)]
    writer = runs.begin(1, at_once=True, announced=announced, planned=3)
    writer.add(result(2))
    assert "Did not run: valid_warranty_001, valid_warranty_003" in run_shown(runs)
    writer.finish(ended("interrupted", 130, facts={"fail_fast": True}))
    with RunStore(runs.file) as store:
        report = stored_report(store, store.find_run("last"))
    assert report.summary["missing"] == ["valid_warranty_001", "valid_warranty_003"]
    whole = runs.begin(2, announced=announced[:1], planned=1)
    whole.add(result(1))
    whole.finish(ended("passed", 0))
    with RunStore(runs.file) as store:
        assert store.find_run("last").facts == {}


def test_the_list_has_a_line_a_run_with_its_count_and_rate(runs: StoredRuns) -> None:
    runs.write(1, [result(1), result(2)])
    repeated = [result(1, repetition=number) for number in (1, 2, 3)]
    runs.write(2, [*repeated, result(2, "failed")], "failed", 4, selection=("valid_*",), repeat=3)
    stream = io.StringIO()
    with RunStore(runs.file) as store:
        print_runs(store.runs(), Terminal(stream, color=False, ascii_only=False))
    assert stream.getvalue().splitlines() == [
        (
            "20260118T100002-00000002  2026-01-18T10:00:00Z  failed  1/2 (50.0%)  "
            "eval evals/scenarios (1 pattern of it), 3 times"
        ),
        "20260118T100001-00000001  2026-01-18T10:00:00Z  passed  2/2 (100%)  eval evals/scenarios",
    ]
