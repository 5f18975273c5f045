"""From mail that came to a sealed suite: drawn, labelled by a person, sealed, and run."""

import io
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import BUILT_IN, ScenarioFolder

from guarantee_email_agent.eval.past_mails import Period
from guarantee_email_agent.eval.sealing.mail_labels import MailLabels
from guarantee_email_agent.eval.sealing.sample_and_seal import SampleOptions, SealOptions, sample_mails, seal_suite
from guarantee_email_agent.utils.errors import AgentError, ConfigurationError

TEXTS = (
    "Is my dryer with serial number SN-48213 still under warranty?\n\nIda Lund",
    "I want to speak to a person about my dryer.\n\nIda Lund",
    "My dryer leaks. Is it covered?\n\nIda Lund",
)


@pytest.fixture
def mails(tmp_path: Path) -> Path:
    folder = tmp_path / "mails"
    folder.mkdir()
    for number in range(9):
        head = f"From: Ida Lund <ida@firm.de>\nSubject: Dryer {number}\nDate: Mon, {number + 1} Jun 2026 10:00:00 +0000"
        (folder / f"{number}.eml").write_text(f"{head}\n\n{TEXTS[number % 3]}\n", encoding="utf-8")
    (folder / "outlook.msg").write_bytes(bytes.fromhex("d0cf11e0a1b11ae1"))
    (folder / "undated.eml").write_text("From: ida@firm.de\nSubject: x\n\nHello\n", encoding="utf-8")
    return folder


def draw(mails: Path, to: Path, **more: Any) -> str:
    stream = io.StringIO()
    options = {"count": 9, "to": to, "seed": 3, "today": "2026-07-01", "folder": mails} | more
    assert sample_mails(SampleOptions(**options), BUILT_IN, stream, lambda _: None) == 0
    return stream.getvalue()


def bodies(folder: Path) -> list[str]:
    return [path.read_text(encoding="utf-8") for path in sorted(folder.glob("*.yaml"))]


def label_all(folder: Path) -> MailLabels:
    labels = MailLabels(folder, BUILT_IN)
    for item in labels.items():
        mail = dict(item.texts)["Mail"]
        word = next((word for word in mail.split() if word.startswith("SN-")), "")
        outcome = "hand-over" if "a person" in mail else "missing-info"
        values = {"outcome": "valid-warranty warranty_api valid" if word else outcome, "number": word}
        labels.save(item.id, values | {"severity": "ordinary" if word else "critical"})
    return labels


def seal(folder: Path, **more: Any) -> None:
    options: dict[str, Any] = {"directory": folder, "threshold": 90.0, "rule": "rate"} | more
    assert seal_suite(SealOptions(**options), BUILT_IN, io.StringIO()) == 0


def test_a_draw_is_pseudonymised_and_known_by_its_seed_and_frame(mails: Path, tmp_path: Path) -> None:
    printed = draw(mails, tmp_path / "a", count=5)
    assert "drew 5 mails at random from 9 mails received 2026-06-01 to 2026-06-09 (seed 3)" in printed
    assert "Left out: 1 mail that cannot be read" in printed
    assert "Left out: 1 mail of which nobody knows when it came" in printed
    manifest = (tmp_path / "a" / "_manifest.yml").read_text(encoding="utf-8")
    assert {"drawn_from: 9", "seed: 3"} <= set(manifest.splitlines())
    drawn = bodies(tmp_path / "a")
    assert [text for text in drawn for secret in ("Ida", "Lund", "firm.de", "48213") if secret in text] == []
    draw(mails, tmp_path / "b", count=5)
    assert bodies(tmp_path / "b") == drawn
    draw(mails, tmp_path / "c", count=5, seed=4)
    assert bodies(tmp_path / "c") != drawn
    since = Period(datetime(2026, 6, 3, tzinfo=UTC), datetime(2026, 6, 5, tzinfo=UTC))
    assert "from 2 mails received 2026-06-03 to 2026-06-04" in draw(mails, tmp_path / "d", count=2, period=since)


def test_a_labelled_and_sealed_sample_bounds_what_goes_wrong(mails: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sealed"
    draw(mails, folder)
    labels = label_all(folder)
    seal(folder, rule="proof", openings=2)
    code, printed = ScenarioFolder(folder, BUILT_IN).evaluate()
    assert "9 of 9 scenarios pass." in printed
    assert "drawn at random from the 9 received in 2026-06-01 to 2026-06-09" in printed
    assert (code, "inconclusive (proven is a rate of" in printed) == (4, True)
    with pytest.raises(AgentError, match="is sealed"):
        MailLabels(folder, BUILT_IN)
    with pytest.raises(ConfigurationError, match="is sealed already"):
        seal(folder)
    item = labels.items()[0]
    labels.save(item.id, {"outcome": "no-reply", "severity": "ordinary"})
    with pytest.raises(ConfigurationError, match="the seal is broken"):
        ScenarioFolder(folder, BUILT_IN).evaluate()


def test_a_label_expects_the_outcome_the_number_and_what_it_is_worth(mails: Path, tmp_path: Path) -> None:
    folder = tmp_path / "sealed"
    draw(mails, folder)
    label_all(folder)
    suite = ScenarioFolder(folder, BUILT_IN)
    with pytest.raises(ConfigurationError, match="'seal' it before anybody sees a result"):
        suite.evaluate()
    (folder / "_manifest.yml").unlink()
    assert suite.evaluate(only=("valid_*",))[0] == 0
    item = next(each for each in MailLabels(folder, BUILT_IN).items() if "SN-" in dict(each.texts)["Mail"])
    assert [field.value for field in item.fields][::2] == ["valid-warranty warranty_api valid", "ordinary"]
    number = item.fields[1].value
    path = next(folder.glob(f"valid_warranty_{item.id}.yaml"))
    path.write_text(path.read_text(encoding="utf-8").replace(number, "SN-60327"), encoding="utf-8")
    code, printed = suite.evaluate(only=(path.stem,))
    assert code == 4
    assert "warranty.check_warranty was not called with these arguments" in printed
    assert "Harmful: 1" in printed


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({"outcome": "valid-warranty warranty_api valid", "number": "SN-99999"}, "Give the number"),
        ({"outcome": "hand-over", "number": "SN-1"}, "rests on no single number"),
        ({"outcome": "", "number": ""}, "Choose what should become of the mail"),
    ],
)
def test_a_label_that_makes_no_sense_is_refused(mails: Path, tmp_path: Path, values: dict[str, str], said: str) -> None:
    draw(mails, tmp_path / "a", count=1)
    with pytest.raises(AgentError, match=said):
        MailLabels(tmp_path / "a", BUILT_IN).save("001", values | {"severity": "ordinary"})


MAIL = "input: {email: {subject: a, body: b}}\n"


@pytest.mark.parametrize(
    "text", ["[]", "input: {email: none}", "input: {email: {body: b}}", f"{MAIL}expected_output: {{}}"]
)
def test_a_file_that_sample_did_not_write_so_is_refused(mails: Path, tmp_path: Path, text: str) -> None:
    draw(mails, tmp_path / "a", count=1)
    (tmp_path / "a" / "unlabelled_001.yaml").write_text(text, encoding="utf-8")
    with pytest.raises(AgentError, match="was not written by 'sample'"):
        MailLabels(tmp_path / "a", BUILT_IN).items()


def test_what_cannot_be_drawn_or_sealed_is_refused(mails: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match=r"9 mails found, and 10 needed\. Left out: 1 mail"):
        draw(mails, tmp_path / "a", count=10)
    assert not (tmp_path / "a").exists()
    with pytest.raises(ConfigurationError, match="not empty"):
        draw(mails, mails)
    draw(mails, tmp_path / "b", count=2)
    with pytest.raises(ConfigurationError, match="has 2 mails without a label"):
        seal(tmp_path / "b")
    with pytest.raises(ConfigurationError, match="was not drawn by 'sample'"):
        seal(mails)
    label_all(tmp_path / "b")
    next((tmp_path / "b").glob("*_002.yaml")).unlink()
    with pytest.raises(ConfigurationError, match="has 1 mail, and 2 were drawn, so they are no random sample"):
        seal(tmp_path / "b")
