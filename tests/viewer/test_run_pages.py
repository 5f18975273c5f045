"""The list of runs, and one run with its results."""

from collections.abc import Iterator

from stored_runs import StoredRuns, ended, result
from viewed_runs import Page, ViewedRuns

from guarantee_email_agent.runlog.records import Check


def walk(pages: ViewedRuns, path: str, relation: str) -> Iterator[Page]:
    """A page, and those that its link of that relation leads to."""
    while True:
        page = pages.get(path)
        yield page
        following = [each["href"] for each in page.all("a") if each.get("rel") == relation]
        if not following:
            return
        path = following[0] or ""


def run_links(page: Page) -> list[str]:
    """Of the list, and not of the drawing."""
    links = [each["href"] or "" for each in page.all("a") if each.get("class") == "name"]
    return [link.removeprefix("/runs/") for link in links if link.startswith("/runs/")]


def test_runs_are_listed_newest_first_with_counts(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [result(1), result(2)])
    runs.write(2, [result(1), result(2, "failed")], "failed", 4)
    page = pages.get("/")
    assert run_links(page) == ["20260118T100002-00000002", "20260118T100001-00000001"]
    assert "✗ Failed 1 of 2 (50.0%) eval evals/scenarios" in page.text
    assert "✓ Passed 2 of 2 (100%) eval evals/scenarios" in page.text


def test_the_history_of_the_newest_suite_is_drawn(runs: StoredRuns, pages: ViewedRuns) -> None:
    for number in range(1, 5):
        runs.write(number, [result(1), result(2)])
    page = pages.get("/")
    assert "Pass rates of 4 runs, from 100 % on 2026-01-18" in page.text
    assert [each["class"] for each in page.all("path")][:2] == ["threshold", "line"]


def test_a_run_of_eval_is_linked_to_its_page_for_the_board(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [result(1)])
    runs.write(2, [result(1)], command="solve")
    (address,) = [link for link in pages.get("/").links if link.endswith("/board")]
    page = pages.get(address)
    assert (page.status, "It passed its test: 1 of 1 cases" in page.text) == (200, True)
    assert pages.get(address.replace("00000001", "00000002").replace("100001", "100002")).status == 404


def test_a_store_without_a_run_says_how_to_get_one(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.begin(1).finish(ended("passed", 0))
    assert run_links(pages.get("/")) != []
    assert "No run fits" in pages.get("/?command=solve").text


def test_runs_are_filtered(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [result(1)])
    runs.write(2, [result(1, "failed")], "failed", 4, suite="other")
    runs.write(3, [result(1)], command="grade", suite="tasks", llm="")
    assert run_links(pages.get("/?command=grade")) == ["20260118T100003-00000003"]
    assert run_links(pages.get("/?suite=other&command=")) == ["20260118T100002-00000002"]
    assert run_links(pages.get("/?outcome=failed")) == ["20260118T100002-00000002"]
    assert run_links(pages.get("/?outcome=going+on")) == []
    assert {"evals/scenarios", "other", "tasks"} <= {each.get("value") for each in pages.get("/").all("option")}


def test_runs_are_paged_in_both_directions(runs: StoredRuns, pages: ViewedRuns) -> None:
    for number in range(1, 66):
        runs.write(number, [result(1)])
    forward = [run_links(page) for page in walk(pages, "/", "next")]
    assert [len(each) for each in forward] == [30, 30, 5]
    assert len({link for each in forward for link in each}) == 65
    last = list(walk(pages, "/", "next"))[-1]
    back = [run_links(page) for page in walk(pages, last.link("page=2"), "prev")]
    assert back == [forward[1], forward[0]]


def test_a_run_shows_gate_groups_and_results(runs: StoredRuns, pages: ViewedRuns) -> None:
    check = Check("email_sent", "no mail was sent", "True", "False")
    runs.write(
        1,
        [result(1, language="en"), result(2, "failed", category="missing-info", language="de", checks=(check,))],
        "failed",
        4,
        threshold=99.0,
        require_proof=True,
        facts={"must_failed": ["valid_warranty_002"], "regressions": ["valid_warranty_009"]},
        planned=4,  # as after --fail-fast
    )
    page = pages.get("/runs/last")
    assert "Must failed valid_warranty_002 Regressions valid_warranty_009" in page.text
    assert "Failed: 2 of 4 have a result. Result" in page.text
    assert pages.get("/compare?baseline=last&run=last").status == 400
    assert "Pass rate 50.0%" in page.text
    assert "failed, at a threshold of 99 % that is to be proven" in page.text
    assert "missing-info de 0 of 1 0.0% ✗ 1" in page.text
    assert "valid_warranty_002 Customer 2 email_sent: no mail was sent" in page.text


def names(page: Page) -> list[str]:
    return [link.rpartition("/")[2] for link in page.links if "/results/" in link]


def test_results_are_filtered(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(
        1,
        [
            result(1, description="A kettle", language="en"),
            result(2, "failed", category="missing-info", description="Ein Herd", language="de"),
            result(3, "error", language="en"),
        ],
        "failed",
        4,
    )
    page = "/runs/last?text={}&verdict={}&category={}&language={}"
    assert names(pages.get(page.format("KETTLE", "", "", ""))) == ["valid_warranty_001"]
    assert names(pages.get(page.format("", "not+passed", "", ""))) == ["valid_warranty_002", "valid_warranty_003"]
    assert names(pages.get(page.format("", "error", "", ""))) == ["valid_warranty_003"]
    assert names(pages.get(page.format("", "", "missing-info", ""))) == ["valid_warranty_002"]
    assert names(pages.get(page.format("", "", "", "en"))) == ["valid_warranty_001", "valid_warranty_003"]
    nothing = pages.get(page.format("%25", "passed", "", "en"))
    assert (names(nothing), "0 results fit" in nothing.text) == ([], True)


def test_what_was_searched_for_stands_in_the_form_and_is_no_markup(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [result(1)])
    page = pages.get('/runs/last?text="><script>alert(1)</script>')
    assert '"><script>alert(1)</script>' in [each.get("value") for each in page.all("input")]
    assert len(page.all("script")) == 1


def test_results_are_paged_in_both_directions(runs: StoredRuns, pages: ViewedRuns) -> None:
    runs.write(1, [result(position, repetition=each) for position in range(1, 71) for each in (1, 2)], repeat=2)
    forward = [names(page) for page in walk(pages, "/runs/last", "next")]
    assert [len(each) for each in forward] == [50, 50, 40]
    last = list(walk(pages, "/runs/last", "next"))[-1]
    back = [names(page) for page in walk(pages, last.link("page=2"), "prev")]
    assert back == [forward[1], forward[0]]


def test_a_run_under_way_shows_how_far_it_is(runs: StoredRuns, pages: ViewedRuns) -> None:
    writer = runs.begin(1, at_once=True, planned=4)
    writer.add(result(1), result(2, "failed", checks=(Check("email_sent", "no mail was sent"),)))
    page = pages.get("/runs/last")
    assert "▸ Going on" in page.text
    assert "Going on: 2 of 4 have a result. The gate is not decided." in page.text
    writer.finish(ended("failed", 4, facts={"fail_fast": True}))
    page = pages.get("/runs/last")
    assert ("Failed: 2 of 4 have a result." in page.text, "not decided" in page.text) == (True, False)
    assert pages.get("/compare?baseline=last&run=last").status == 400


def test_a_run_that_was_killed_is_no_run_under_way(runs: StoredRuns, pages: ViewedRuns) -> None:
    writer = runs.begin(1, at_once=True, planned=4)
    writer.add(result(1))
    writer._owners.release(writer.number)  # as the end of its process does
    writer._database.close()
    page = pages.get("/runs/last")
    assert "… Interrupted" in page.text
    assert "Interrupted: 1 of 4 have a result. The gate is not decided." in page.text
    assert "… Interrupted 1 of 1" in pages.get("/").text
    assert run_links(pages.get("/?outcome=interrupted")) == ["20260118T100001-00000001"]
    assert run_links(pages.get("/?outcome=going+on")) == []


def test_hostile_names_are_text(runs: StoredRuns, pages: ViewedRuns) -> None:
    name = 'a/b?c#d&e"<img src=x onerror=alert(1)>\x1b[31m\u202e\x00'
    runs.write(1, [result(1, name=name, description=name, category=name, language=name)], suite=name, model=name)
    for path in ("/", "/runs/last"):
        page = pages.get(path)
        assert page.all("img") == []
        assert not {"\x1b", "\u202e", "\x00"} & set(page.text)
    assert pages.get(pages.get("/runs/last").link("/results/")).status == 200
    assert names(pages.get(pages.get("/runs/last").link("category="))) != []
