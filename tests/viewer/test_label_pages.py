"""Labelling in the browser: what is shown, what is saved, and who may send a form."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from starlette.testclient import TestClient
from viewed_runs import OWN, PORT, Page

from guarantee_email_agent.runlog.labelling import LabelField, LabelItem
from guarantee_email_agent.utils.errors import EvalError
from guarantee_email_agent.viewer.pages import Site
from guarantee_email_agent.viewer.server import RequestGuard, create_application


@dataclass
class Sheet:
    title: str = "Mails of <sample>"
    saved: dict[str, str] = field(default_factory=dict)

    def items(self) -> list[LabelItem]:
        fields = (LabelField("outcome", "Outcome", (("good", "Good"), ("bad", "Bad"))), LabelField("number", "Number"))
        return [LabelItem(each, (("Mail", f"<b>{each}</b>\nx"),), fields, self.saved.get(each, "")) for each in "12"]

    def save(self, item: str, values: Mapping[str, str]) -> None:
        if values.get("outcome") not in ("good", "bad"):
            raise EvalError("Choose an outcome", "eval_label_invalid")
        self.saved[item] = values["outcome"]


@pytest.fixture
def sheet() -> Sheet:
    return Sheet()


@pytest.fixture
def client(sheet: Sheet, tmp_path: Path) -> TestClient:
    site = Site(tmp_path / "none.db", sheet)
    guard = RequestGuard(create_application(site), PORT, has_forms=True)
    return TestClient(guard, base_url=OWN, follow_redirects=False)


def test_a_mail_is_labelled_and_the_next_one_follows(client: TestClient, sheet: Sheet) -> None:
    page = Page(client.get("/label"))
    assert "0 of 2 labelled" in page.text
    page = Page(client.get(page.link("/label/1")))
    assert "<b>1</b>" in page.text  # as text
    answer = client.post("/label/1", data={"outcome": "good", "number": "1"}, headers={"origin": OWN})
    assert (answer.status_code, answer.headers["location"]) == (303, "/label/2")
    answer = client.post("/label/2", data={"outcome": "bad"}, headers={"origin": OWN})
    assert (answer.headers["location"], sheet.saved) == ("/label", {"1": "good", "2": "bad"})
    assert "2 of 2 labelled: 1 bad, 1 good." in Page(client.get("/label")).text
    answer = client.post("/label/1", data={"number": "<7>"}, headers={"origin": OWN})
    page = Page(answer)
    assert (answer.status_code, "Choose an outcome" in page.text) == (400, True)
    assert page.all("input")[0]["value"] == "<7>"
    assert client.get("/label/3").status_code == 404


@pytest.mark.parametrize("origin", [None, "null", "http://evil.example", f"https://127.0.0.1:{PORT}"])
def test_only_a_form_of_ours_is_taken(client: TestClient, sheet: Sheet, origin: str | None) -> None:
    headers = {} if origin is None else {"origin": origin}
    assert client.post("/label/1", data={"outcome": "good"}, headers=headers).status_code == 405
    assert client.post("/label/1", content=b"x" * 70_000, headers={"origin": OWN}).status_code == 413
    assert sheet.saved == {}


def test_without_labels_nothing_is_there_to_be_sent(tmp_path: Path) -> None:
    site = Site(tmp_path / "none.db")
    client = TestClient(RequestGuard(create_application(site), PORT), base_url=OWN)
    assert client.get("/label").status_code == 404
    assert client.post("/label/1", data={"outcome": "good"}, headers={"origin": OWN}).status_code == 405
