"""Who may ask, for what, and what every answer carries."""

from __future__ import annotations

from pathlib import Path

import pytest
from stored_runs import StoredRuns, result
from viewed_runs import PORT, ViewedRuns

PATHS = ("/", "/runs/last", "/runs/none", "/nothing", "/compare", "/runs/last/results/valid_warranty_001")


@pytest.fixture
def pages(tmp_path: Path) -> ViewedRuns:
    runs = StoredRuns(tmp_path / "runs.db")
    runs.write(1, [result(1)])
    return ViewedRuns(runs.file)


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LOCALHOST:{PORT}", f"[::1]:{PORT}"])
def test_our_own_names_are_answered(pages: ViewedRuns, host: str) -> None:
    assert pages.get("/", host=host).status == 200


@pytest.mark.parametrize(
    "host",
    [
        *("evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:80", f"127.0.0.2:{PORT}", ""),
        *(f"localhost.evil.example:{PORT}", f"127.0.0.1:{PORT}.evil.example", f"localhost:{PORT}@evil.example"),
    ],
)
def test_a_foreign_host_gets_one_line_and_no_page(pages: ViewedRuns, host: str) -> None:
    for path in PATHS:
        page = pages.get(path, host=host)
        assert (page.status, page.headers["content-type"]) == (421, "text/plain; charset=utf-8"), path
        assert page.content == "Open the address that 'view' printed: this one names another host.\n"


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "LOCK"])
def test_pages_are_only_read(pages: ViewedRuns, method: str) -> None:
    for path in PATHS:
        answer = pages.client.request(method, path)
        assert (answer.status_code, answer.headers["allow"]) == (405, "GET, HEAD"), path


def test_head_is_get_without_the_page(pages: ViewedRuns) -> None:
    head, get = pages.client.head("/runs/last"), pages.client.get("/runs/last")
    assert (head.status_code, head.content) == (200, b"")
    assert head.headers["content-length"] == get.headers["content-length"]


@pytest.mark.parametrize("path", PATHS)
def test_every_answer_carries_what_keeps_others_out(pages: ViewedRuns, path: str) -> None:
    for headers in (pages.get(path).headers, pages.get(path, host="evil.example").headers):
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


def test_pages_hold_no_script_and_no_style_of_their_own(pages: ViewedRuns) -> None:
    for path in PATHS[:-1]:
        page = pages.get(path)
        assert [each.get("src", "").split("/")[1] for each in page.all("script")] == ["static"]
        assert page.all("style") == []
        assert not [name for _, each in page.elements for name in each if name.startswith("on") or name == "style"]


def test_another_site_may_link_to_a_page_and_load_nothing(pages: ViewedRuns) -> None:
    assert pages.get("/", sec_fetch_site="cross-site", sec_fetch_mode="navigate").status == 200
    assert pages.get("/", sec_fetch_site="cross-site", sec_fetch_mode="no-cors").status == 403
    assert pages.get("/", sec_fetch_site="same-origin", sec_fetch_mode="cors").status == 200


def test_style_and_script_may_be_kept_by_the_digest_in_their_address(pages: ViewedRuns) -> None:
    page = pages.get("/")
    addresses = [each["src"] or "" for each in page.all("script")] + [each["href"] or "" for each in page.all("link")]
    for address in addresses:
        found = pages.client.get(address)
        assert (found.status_code, "immutable" in found.headers["cache-control"]) == (200, True)
        assert pages.client.get(address.replace("/static/", "/static/0")).status_code == 404
    assert pages.get("/static/x/..%2f..%2fguard.py").status == 404
