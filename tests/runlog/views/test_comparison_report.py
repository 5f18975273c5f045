"""A comparison as people and machines get it."""

import io
from typing import Any

from stored_runs import StoredRuns, result

from guarantee_email_agent.runlog.comparison import Comparison, compare_runs
from guarantee_email_agent.runlog.records import CaseResult, Input, InputSet, Usage
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.views.comparison_report import json_comparison, print_comparison
from guarantee_email_agent.utils.terminal import Terminal


def compare(runs: StoredRuns, before: list[CaseResult], after: list[CaseResult], **changes: Any) -> Comparison:
    runs.write(1, before)
    runs.write(2, after, "failed", 4, **changes)
    with RunStore(runs.file) as store:
        now, then = store.runs()
        return compare_runs(store, then, now)


def printed(comparison: Comparison) -> list[str]:
    stream = io.StringIO()
    print_comparison(comparison, Terminal(stream, color=False, ascii_only=False))
    return stream.getvalue().splitlines()


def test_it_says_what_fails_now_and_what_was_changed(runs: StoredRuns) -> None:
    before = InputSet([Input.of("instruction", "main.md", b"one\ntwo\n")])
    after = InputSet([Input.of("instruction", "main.md", b"one\nthree\n")])
    found = compare(
        runs,
        [result(1, inputs=before), result(2)],
        [result(1, "failed", inputs=after, response={"response_body": "Reply one"})],
    )
    assert printed(found) == [
        "Baseline: 20260118T100001-00000001, eval of evals/scenarios, 2026-01-18T10:00:00Z, passed, 2/2 (100%)",
        "Run: 20260118T100002-00000002, eval of evals/scenarios, 2026-01-18T10:00:00Z, failed, 0/1 (0.0%)",
        "Changed instruction: main.md (1 result depends on it)",
        "    -two",
        "    +three",
        "Newly failing: 1",
        "    valid_warranty_001: Customer 1",
        "Removed, which counts as a regression: 1",
        "    valid_warranty_002: Customer 2",
        "Still passing: 0",
        "Changed replies: 1",
        "    valid_warranty_001:",
        "      Reply [-1-] {+one+}",
        "Together the 1 of both took 0.0s, now 0.0s",
        "✗ 2 regressions",
    ]


def test_replies_that_changed_alike_are_shown_once(runs: StoredRuns) -> None:
    def replies(text: str) -> list[CaseResult]:
        return [result(number, response={"response_body": text, "number": number}) for number in (1, 2, 3)]

    lines = printed(compare(runs, replies("Good day"), replies("Good evening")))
    assert lines[-5:-2] == [
        "Changed replies: 3",
        "    valid_warranty_001 and 2 more alike:",
        "      Good [-day-] {+evening+}",
    ]


def test_runs_of_other_suites_are_compared_and_it_says_so(runs: StoredRuns) -> None:
    found = compare(runs, [result(1)], [result(2)], suite="elsewhere", selection=("*2",))
    lines = printed(found)
    assert "Changed suite: evals/scenarios → elsewhere" in lines
    assert lines[-2:] == ["The runs have no result in common", "✗ Not decided: nothing can be compared"]
    assert (found.regressions, found.shows_no_regression) == ([], False)


def test_nothing_of_a_mail_reaches_the_terminal_as_an_escape(runs: StoredRuns) -> None:
    before = [result(1, description="\x1b[2J", response={"response_body": "Hello"}, source=b"a")]
    after = [result(1, "failed", description="\x1b[2J", response={"response_body": "\x1b]0;x\x07"}, source=b"\x1b[2J")]
    lines = printed(compare(runs, before, after))
    assert "    valid_warranty_001: \\x1b[2J" in lines
    assert "      [-Hello-] {+\\x1b]0;x\\x07+}" in lines
    assert "\x1b" not in "".join(lines)


def test_a_reply_of_megabytes_is_compared_up_to_a_limit(runs: StoredRuns) -> None:
    long = [result(1, response={"response_body": letter * 5_000_000}) for letter in "ab"]
    lines = printed(compare(runs, [long[0]], [long[1]]))
    assert max(map(len, lines)) < 3_000
    assert "      (compared up to 4,000 characters)" in lines


def test_tokens_that_are_not_known_are_no_zero(runs: StoredRuns) -> None:
    unknown = result(1, usage=Usage(calls=1, cost_usd=None))
    report = json_comparison(compared := compare(runs, [result(1)], [unknown]))
    assert "they cost $0.0000, now not known" in printed(compared)[-2]
    assert [report[run]["tokens"] for run in ("baseline", "run")] == [0, None]
