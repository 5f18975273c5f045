"""One result from mail to checks with its history, and two runs side by side."""

import json
from pathlib import Path
from typing import Any

import pytest
from stored_runs import StoredRuns, result
from viewed_runs import ViewedRuns

from guarantee_email_agent.judging.record_files import Extent, RecordPlace, SingleRecordFile
from guarantee_email_agent.judging.record_reference import refer_to
from guarantee_email_agent.runlog.records import Check, Input, InputSet, Usage

MAIL = {"from": "jane@example.com", "subject": "Kettle", "body": "Is SN12345 under warranty?"}
RESPONSE = {
    "email_sent": True,
    "recipients": ["jane@example.com"],
    "response_body": "The warranty is valid.",
    "ticket_created": True,
    "ticket_fields": {"serial_number": "SN12345"},
    "scenario_used": "valid-warranty",
}
TRACE = {
    "read": {"topic": "warranty", "number_kind": "serial_number", "numbers": ["SN12345"], "status": "valid"},
    "execution_trace": [
        {
            "action": {"action_type": "check_warranty", "serial_number": "SN12345"},
            "feedback": {"done": False, "message": '{"status": "valid"}'},
            "duration_ms": 12.5,
        }
    ],
}
PAGE = "/runs/last/results/valid_warranty_001"


def scenario(verdict: Any = "passed", **changes: Any) -> Any:
    phrase = Check("response_body_contains", "missing phrase 'covered'", "'covered'", "The warranty is valid.")
    checks = (Check("email_sent", "", "True", "True", passed=True), phrase._replace(passed=verdict == "passed"))
    values = {"request": MAIL, "response": RESPONSE, "trace": TRACE, "checks": checks}
    return result(1, verdict, **values | changes)


def test_it_tells_what_happened_in_its_order(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [scenario()])
    text = pages.get(PAGE).text
    places = [
        text.index(part)
        for part in (
            *("Mail from jane@example.com subject Kettle", "Is SN12345 under warranty?", "Read topic warranty"),
            "serial number SN12345, in 'Is SN12345 under warranty?'",
            "scenario valid-warranty, by topic warranty, 1 serial number, status valid",
            *("Calls (1) check_warranty 12 ms serial_number SN12345", 'answer {"status": "valid"}'),
            *("Reply to jane@example.com", "The warranty is valid.", "Ticket serial_number SN12345"),
            *("Checks (2 of 2 passed)", "Over the runs"),
        )
    ]
    assert places == sorted(places)


def test_what_an_agent_that_is_not_ours_said_and_what_was_refused(runs: StoredRuns, pages: ViewedRuns) -> None:
    steps = [
        {"action": {"action_type": "orders.a"}, "feedback": {"message": "no such tool", "refused": True}},
        {"action": {"action_type": "orders.b"}, "feedback": {"message": "", "answered": False}},
    ]
    runs.write(1, [scenario(trace={"execution_trace": steps, "task_result": "done", "stdout": "out", "stderr": "err"})])
    text = pages.get(PAGE).text
    said = ("Answer of the agent done", "Printed on stdout out", "Printed on stderr err")
    assert all(part in text for part in (*said, "orders.a answer refused: no such tool", "orders.b answer (no answer)"))


def test_a_check_that_failed_stands_first_with_both_sides(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [scenario("failed")], "failed", 4)
    text = pages.get(PAGE).text
    missed = "response_body_contains: missing phrase 'covered' expected 'covered' actual The warranty is valid."
    assert text.index(missed) < text.index("Mail from")


def test_the_work_on_a_task_is_read_from_its_record(runs: StoredRuns, pages: ViewedRuns, tmp_path: Path) -> None:
    file = tmp_path / "valid_warranty_001.json"
    messages = [{"role": "user", "content": "Count <b>them</b>."}]
    file.write_text(json.dumps({"instruction": "Count.", "task_result": "42 in all", "conversation": messages}))
    record = refer_to(RecordPlace(SingleRecordFile(file, "valid_warranty_001"), Extent()), "")
    graded = result(1, request=None, response=None, trace={"record": record._asdict()})
    runs.write(1, [graded], command="solve")
    page = pages.get("/runs/last/results/valid_warranty_001").text
    assert "user: Count <b>them</b>." in page
    assert "42 in all" in page
    file.unlink()
    assert "valid_warranty_001.json is not there any more" in pages.get("/runs/last/results/valid_warranty_001").text


def test_each_repetition_and_how_many_passed(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [scenario(repetition=1), scenario("failed", repetition=2)], "failed", 4, repeat=2)
    page = pages.get(PAGE)
    assert "1 of 2 runs passed" in page.text
    assert [each["id"] for each in page.all("article")] == ["repetition-1", "repetition-2"]


def test_the_history_of_a_case_leads_to_its_other_runs(runs: StoredRuns, pages: ViewedRuns) -> None:
    for number in range(1, 61):
        runs.write(number, [scenario("failed" if number % 2 else "passed")])
    assert pages.get(PAGE).link("20260118T100059") == "/runs/20260118T100059-0000003b/results/valid_warranty_001"
    assert len([link for link in pages.get(PAGE).links if "/results/" in link]) == 50


def test_five_megabytes_are_cut(runs: StoredRuns, pages: ViewedRuns) -> None:
    body = "<b>&" * 1_250_000
    runs.write(1, [scenario(request=MAIL | {"body": body}, response=RESPONSE | {"response_body": body})])
    page = pages.get(PAGE)
    assert len(page.content) < 500_000
    assert page.text.count("4,980,000 characters more, left out here") == 2


def test_what_strangers_write_is_text(runs: StoredRuns, pages: ViewedRuns) -> None:
    bad = "<script>alert(1)</script><img src=x onerror=alert(1)>\x1b]0;owned\x07\u202e\x00{{ 7 * 7 }}\ud800"
    judgement = {"verdict": "failed", "feedback": bad, "output": bad, "details": {bad: bad}}
    trace = {
        "read": {"topic": bad, "numbers": [bad]},
        "conversation": [{"role": "user", "content": bad}],
        "execution_trace": [{"action": {"action_type": bad, bad: bad}, "feedback": {"message": bad}}],
    }
    mail = {"from": bad, "subject": bad, "body": bad, "headers": {bad: bad}, "attachments": [bad]}
    response = {"email_sent": True, "response_body": bad, "recipients": [bad], "ticket_created": True, bad: bad}
    checks = (Check(bad, bad, bad, bad),)
    kept = scenario("failed", request=mail, response=response, trace=trace, judgement=judgement, checks=checks)
    runs.write(1, [kept], "failed", 4)
    page = pages.get(PAGE)
    assert (len(page.all("script")), page.all("img")) == (1, [])
    assert not {"\x1b", "\u202e", "\x00", "\x07"} & set(page.content)
    assert "{{ 7 * 7 }}" in page.text
    assert pages.get("/runs/last").all("img") == []


@pytest.mark.parametrize(
    "odd", [None, "text", 5, ["a"], {"calls": "x"}, {"execution_trace": {"a": 1}, "conversation": "x"}]
)
def test_transcripts_of_another_shape_are_shown_all_the_same(runs: StoredRuns, pages: ViewedRuns, odd: Any) -> None:
    runs.write(1, [result(1, request=odd, response=odd, trace=odd)])
    assert pages.get(PAGE).status == 200


def test_what_is_not_known_to_have_been_taken_is_not_nothing(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [result(1, usage=Usage(cost_usd=None))])
    assert all("tokens not known, cost not known" in pages.get(page).text for page in (PAGE, "/runs/last"))


def test_it_names_what_fails_what_was_changed_and_marks_the_words(runs: StoredRuns, pages: ViewedRuns) -> None:
    old = InputSet([Input.of("instruction", "main.md", b"be kind\n")])
    new = InputSet([Input.of("instruction", "main.md", b"be short\n")])
    runs.write(1, [result(1, inputs=old), result(2, "failed", inputs=old), result(3, inputs=old)])
    changed = {"response": {"response_body": "Reply one & <all>"}, "inputs": new}
    runs.write(
        2, [result(1, "failed", **changed), result(2, inputs=new), result(4, inputs=new)], "failed", 4, model="m2"
    )
    page = pages.get("/compare")
    assert "✗ 2 regressions" in page.text
    for words in ("Newly failing: 1", "Newly passing: 1", "Added: 1", "Removed, which counts as a regression: 1"):
        assert words in page.text
    assert "<del>-be kind</del>" in page.content
    assert "<ins>+be short</ins>" in page.content
    assert "Reply <del>1</del> <ins>one &amp; &lt;all&gt;</ins>" in page.content
    assert page.link("/results/valid_warranty_003").startswith("/runs/20260118T100001")


def test_without_names_it_takes_the_green_run_before_the_last(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [result(1)])
    runs.write(2, [result(1, "failed")], "failed", 4)
    runs.write(3, [result(1, "failed")], "failed", 4)
    page = pages.get("/compare")
    chosen = [each["value"] for each in page.all("option") if "selected" in each]
    assert chosen == ["20260118T100001-00000001", "20260118T100003-00000003"]
    other = pages.get("/compare?baseline=20260118T100002-00000002&run=last")
    assert "✓ No regression" in other.text


def test_without_a_green_run_it_takes_the_one_before(runs: StoredRuns, pages: ViewedRuns) -> None:
    assert runs.file.exists() is False
    runs.write(1, [result(1, "failed")], "failed", 4)
    assert "That takes two runs" in pages.get("/compare").text
    runs.write(2, [result(1)])
    assert "Newly passing: 1" in pages.get("/compare").text
    assert "Newly failing: 1" in pages.get("/compare?run=20260118T100001-00000001").text


def test_a_run_that_did_not_reach_a_case_decides_nothing(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [result(1), result(2)])
    runs.write(2, [result(1)], "interrupted", 130, planned=2)
    page = pages.get("/compare")
    assert "✗ Not decided: 1 of 2 were not reached" in page.text
    assert "No regression" not in page.text
    runs.write(3, [result(9)], selection=("*9",))
    page = pages.get("/compare?baseline=20260118T100001-00000001&run=last")
    assert "✗ Not decided: nothing can be compared" in page.text


def test_many_changes_are_cut_and_it_says_so(runs: StoredRuns, pages: ViewedRuns) -> None:
    before = [result(each, source=b"a") for each in range(1, 201)]
    after = [
        result(each, "failed", response={"response_body": f"New reply {each}"}, source=b"b %d" % each)
        for each in range(1, 201)
    ]
    runs.write(1, before, planned=200)
    runs.write(2, after, "failed", 4, planned=200)
    page = pages.get("/compare")
    assert "Newly failing: 200" in page.text
    assert "… and 100 more" in page.text
    assert "The first 20 are shown" in page.text


def test_what_a_judge_says_otherwise_is_marked_and_escaped(runs: StoredRuns, pages: ViewedRuns) -> None:
    for number, said in ((1, "said 42"), (2, "said <b>43</b>")):
        judged = result(1, judgement={"verdict": "passed", "feedback": said})
        runs.write(number, [judged], command="grade", suite="tasks")
    page = pages.get("/compare")
    assert "Changed feedback" in page.text
    assert "said <del>42</del> <ins>&lt;b&gt;43&lt;/b&gt;</ins>" in page.content
