"""Two runs side by side."""

from __future__ import annotations

import pytest
from stored_runs import StoredRuns, result
from viewed_runs import ViewedRuns

from guarantee_email_agent.runlog.records import Input, InputSet


@pytest.fixture
def pages(runs: StoredRuns) -> ViewedRuns:
    return ViewedRuns(runs.file)


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
