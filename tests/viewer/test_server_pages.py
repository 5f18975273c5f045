"""Addresses that lead nowhere, and a store that changes while its pages are read."""

import sqlite3
from pathlib import Path

import pytest
from stored_runs import StoredRuns, result
from viewed_runs import PORT, ViewedRuns

from guarantee_email_agent.viewer.pages import result_url


@pytest.fixture
def runs(tmp_path: Path) -> StoredRuns:
    runs = StoredRuns(tmp_path / "runs.db")
    runs.write(1, [result(1)])
    return runs


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("/runs/..%2f..%2fetc%2fpasswd", "There is no such page"),
        ("/runs/..%2f..%2fetc%2fpasswd/results/x", "There is no such page"),
        ("/runs/%2e%2e", "'..' is no id of a run"),
        ("/runs/20260118T109999", "there is no run 20260118T109999"),
        ("/runs/a%0ab%00%1b[31m", "is no id of a run"),
        ("/runs/%ff%fe", "is no id of a run"),
        ("/runs/last/results/../../../etc/passwd", "There is no such page"),
        ("/runs/last/results/..%2f..%2fetc%2fpasswd", "there is no '../../etc/passwd' in the run"),
        ("/runs/last/results/%3Cscript%3Ealert(1)%3C%2Fscript%3E", "<script>alert(1)</script>"),
        ("/compare?baseline=..%2f..%2fetc%2fpasswd", "'../../etc/passwd' is no id of a run"),
        ("/wp-login.php", "There is no such page"),
        ("/runs/last/", "There is no such page"),
    ],
)
def test_what_there_is_not_is_a_page_that_says_so(pages: ViewedRuns, path: str, words: str) -> None:
    page = pages.get(path)
    assert page.status == 404
    assert words in page.text
    assert len(page.all("script")) == 1
    assert "\x1b" not in page.content


@pytest.mark.parametrize("name", ["a\nb", "a\n", "\r\n::error::x", "a/b?c#d"])
def test_a_name_leads_to_its_pages_whatever_it_holds(runs: StoredRuns, pages: ViewedRuns, name: str) -> None:
    runs.write(2, [result(1)._replace(name=name)])
    assert pages.get(result_url("last", name)).status == 200


@pytest.mark.parametrize(
    "query", ["page=x", "page=-1", "page=99999999999999999999", "outcome=great", "suite=" + "x" * 1000]
)
def test_an_address_that_asks_for_nonsense_is_told_so(pages: ViewedRuns, query: str) -> None:
    page = pages.get(f"/?{query}")
    assert (page.status, page.text.count("in the address is not")) == (400, 1)


def test_a_store_that_is_written_to_shows_what_is_new(runs: StoredRuns, pages: ViewedRuns) -> None:
    before = pages.get("/")
    runs.write(2, [result(1), result(2)])
    assert "2 of 2" in pages.get("/").text
    assert "2 of 2" not in before.text


def test_a_store_that_is_replaced_is_read_anew(runs: StoredRuns, pages: ViewedRuns, tmp_path: Path) -> None:
    other = StoredRuns(tmp_path / "other.db")
    other.write(7, [result(1), result(2), result(3, "failed")], "failed", 4)
    other.file.replace(runs.file)
    assert "2 of 3" in pages.get("/").text


def test_a_store_that_is_damaged_is_one_line_on_the_page(runs: StoredRuns, pages: ViewedRuns) -> None:
    content = bytearray(runs.file.read_bytes())
    content[100:] = b"\xff" * (len(content) - 100)
    runs.file.write_bytes(content)
    page = pages.get("/")
    assert (page.status, "it is damaged" in page.text) == (503, True)


def test_a_store_that_nobody_may_read_meanwhile_is_told_after_a_moment(runs: StoredRuns, pages: ViewedRuns) -> None:
    holder = sqlite3.connect(runs.file, isolation_level=None)
    holder.execute("PRAGMA locking_mode = EXCLUSIVE")
    holder.execute("PRAGMA journal_mode = DELETE")
    holder.execute("BEGIN EXCLUSIVE")
    page = pages.get("/")
    assert (page.status, "is locked" in page.text or "another program" in page.text) == (503, True)
    holder.close()
    assert pages.get("/").status == 200


def test_nothing_is_written_by_reading(runs: StoredRuns, pages: ViewedRuns, tmp_path: Path) -> None:
    before = runs.file.read_bytes()
    for path in ("/", "/runs/last", "/runs/last/results/valid_warranty_001", "/compare"):
        assert pages.get(path).status == 200
    assert runs.file.read_bytes() == before


PATHS = ("/", "/runs/last", "/runs/none", "/nothing", "/compare", "/runs/last/results/valid_warranty_001")


@pytest.fixture
def guarded(tmp_path: Path) -> ViewedRuns:
    runs = StoredRuns(tmp_path / "runs.db")
    runs.write(1, [result(1)])
    return ViewedRuns(runs.file)


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_our_own_names_are_answered(guarded: ViewedRuns, host: str) -> None:
    assert guarded.get("/", host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", f"127.0.0.2:{PORT}", ""),
        *(f"localhost.evil.example:{PORT}", f"127.0.0.1:{PORT}.evil.example", f"localhost:{PORT}@evil.example"),
    ],
)
def test_a_foreign_host_gets_one_line_and_no_page(guarded: ViewedRuns, host: str) -> None:
    for path in PATHS:
        page = guarded.get(path, host=host)
        assert (page.status, page.headers["content-type"]) == (421, "text/plain; charset=utf-8"), path
        assert page.content == "Open the address that 'view' printed: this one names another host.\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "LOCK"])
def test_pages_are_only_read(guarded: ViewedRuns, method: str) -> None:
    for path in PATHS:
        answer = guarded.client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD"), path


def test_head_is_get_without_the_page(guarded: ViewedRuns) -> None:
    head, get = guarded.client.head("/runs/last"), guarded.client.get("/runs/last")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_carries_what_keeps_others_out(guarded: ViewedRuns, path: str) -> None:
    for headers in (guarded.get(path).headers, guarded.get(path, host="evil.example").headers):
        policy = headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; ")
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert headers["x-content-type-options"] == "nosniff"
        assert headers["x-frame-options"] == "DENY"
        assert headers["referrer-policy"] == "same-origin"
        assert headers["cross-origin-opener-policy"] == "same-origin"
        assert headers["cross-origin-resource-policy"] == "same-origin"
        assert headers["cache-control"] == "no-store"


def test_pages_hold_no_script_and_no_style_of_their_own(guarded: ViewedRuns) -> None:
    for path in PATHS[:-1]:
        page = guarded.get(path)
        assert [each.get("src", "").split("/")[1] for each in page.all("script")] == ["static"]
        assert page.all("style") == []
        assert not [name for _, each in page.elements for name in each if name.startswith("on") or name == "style"]


def test_another_site_may_link_to_a_page_and_load_nothing(guarded: ViewedRuns) -> None:
    assert guarded.get("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 200
    assert guarded.get("/", sec_fetch_site="cross-site", sec_fetch_mode="no-cors").status == 403
    assert guarded.get("/", sec_fetch_site="same-origin", sec_fetch_mode="cors").status == 200


def test_style_and_script_may_be_kept_by_the_digest_in_their_address(guarded: ViewedRuns) -> None:
    page = guarded.get("/")
    addresses = [each["src"] or "" for each in page.all("script")] + [each["href"] or "" for each in page.all("link")]
    for address in addresses:
        found = guarded.client.get(address)
        assert (found.status_code, "immutable" in found.headers["cache-control"]) == (200, True)
        assert guarded.client.get(address.replace("/static/", "/static/0")).status_code == 404
    assert guarded.get("/static/x/..%2f..%2fguard.py").status == 404
