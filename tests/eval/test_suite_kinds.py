"""What a suite shows of new mail, by the manifest in its folder."""

import hashlib
from errno import ENOSPC
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import BUILT_IN, ScenarioFolder, failing
from stored_runs import results_of

from guarantee_email_agent.eval.baseline import find_baseline
from guarantee_email_agent.eval.evaluation import evaluate
from guarantee_email_agent.eval.reuse import find_stale
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.files import report_files
from guarantee_email_agent.runlog.comparison import compare_runs
from guarantee_email_agent.runlog.database import StoreError
from guarantee_email_agent.runlog.records import KeptRun
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.statistics import upper_bound
from guarantee_email_agent.runlog.suite_manifest import DistinctMails, keep_opening
from guarantee_email_agent.utils.errors import ConfigurationError


@pytest.fixture
def suite(tmp_path: Path) -> ScenarioFolder:
    return ScenarioFolder(tmp_path / "suite", BUILT_IN)


SEALED = "kind: sealed\ndrawn_from: 4120\nperiod: May 2026\nrevision: abc1234\n"


def seal(suite: ScenarioFolder, more: str = "") -> str:
    """As `sha256sum [!_.]* | sha256sum` gives it."""
    files = sorted(file for file in suite.folder.iterdir() if file.name[0] not in "._")
    lines = "".join(f"{hashlib.sha256(file.read_bytes()).hexdigest()}  {file.name}\n" for file in files)
    digest = hashlib.sha256(lines.encode()).hexdigest()
    (suite.folder / "_manifest.yml").write_text(f"{SEALED}sha256: {digest}\n{more}", encoding="utf-8")
    return digest


def test_a_sealed_suite_proves_a_rate(suite: ScenarioFolder) -> None:
    suite.write(1)
    digest = seal(suite, "threshold: 5\nrule: proof\n")
    code, printed = suite.evaluate()
    assert code == 0
    assert printed.splitlines()[-1] == (
        f"1 of 1 scenario passes. 1 mail, drawn at random from the 4,120 received in May 2026, sealed (sha256 "
        f"{digest[:12]}…) before revision abc1234, not opened yet: 0 wrong. With 95 % confidence at most 95.0 % of "
        "mail like that period's goes wrong. Each for itself: at least 5.0 % of it is answered, of the answers at most "
        "95.0 % are wrong, at most 95.0 % of it is harmed."
    )
    seal(suite)
    report = suite.report(require_proof=True)
    assert (report["gate"], report["lower_bound_95"], report["suite_kind"]) == ("inconclusive", 5.0, "sealed")
    suite.write(2)  # the same mail once more
    seal(suite)
    report = suite.report()
    assert (report["totals"]["distinct"], report["lower_bound_95"]) == (1, 5.0)
    seal(suite, "openings: 5\n")  # each has its share of the doubt
    assert suite.report()["lower_bound_95"] == 1.0


@pytest.fixture
def sealed(suite: ScenarioFolder) -> ScenarioFolder:
    suite.write(1)
    suite.write(2, lambda text: failing(text).replace("SN12345", "SN67890").replace("Hi, I need", "Hello, I want"))
    seal(suite, "openings: 2\n")
    return suite


def test_a_mail_that_was_never_seen_answered_bounds_nothing(
    sealed: ScenarioFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    run = EvalRunner._run

    async def crashing(self: EvalRunner, case: Any, llm: Any) -> Any:
        return await run(self, case if case.scenario_id.endswith("1") else None, llm)

    monkeypatch.setattr(EvalRunner, "_run", crashing)
    assert "Each for itself" not in sealed.evaluate()[1]


def kept(suite: ScenarioFolder) -> KeptRun:
    return KeptRun(suite.folder.parent / "runs.sqlite3", None, lambda: "2026-01-18T10:00:01Z")


def test_nothing_but_totals_is_shown_of_a_sealed_suite(sealed: ScenarioFolder, tmp_path: Path) -> None:
    forms = ("json", "jsonl", "csv", "junit", "html", "markdown")
    files: dict[str, Any] = {f"{form}_file": tmp_path / f"report.{form}" for form in forms}
    code, printed = sealed.evaluate(kept=kept(sealed), run_id="run", started="2026-01-18T10:00:00Z", **files)
    assert code == 4
    assert "Answered: 2 of 2 mails, 1 of them rightly" in printed
    assert "2 mails, drawn at random" in printed
    with RunStore(kept(sealed).file) as store:
        stored = repr(results_of(store, run := store.find_run("run")))
        for held_against in (
            lambda: compare_runs(store, run, run),
            lambda: find_stale(store, "run", sealed.config, sealed.folder),
            lambda: find_baseline(kept(sealed).file, "run", run.key, set()),
        ):
            with pytest.raises(StoreError, match="nobody knows which result is of which mail"):
                held_against()
    said = [printed, stored, *(path.read_text(encoding="utf-8") for path in files.values())]
    for secret in ("valid_warranty_00", "SN67890", "no such phrase", "customer@", "is valid", "expiration_date"):
        assert [text for text in said if secret in text] == []
    assert not (sealed.folder / "_manifest.yml").read_text(encoding="utf-8").count("opened:")


def test_an_opening_shows_cases_counts_and_stays_in_the_log(sealed: ScenarioFolder) -> None:
    for number, times in (1, "opened once of 2 announced"), (2, "opened 2 times of 2 announced"):
        _, printed = sealed.evaluate(open=True, kept=kept(sealed), run_id=f"run{number}", started="2026-01-18")
        assert "✗ valid_warranty_002" in printed
        assert times in printed
    keep_opening(sealed.folder, DistinctMails(2, 2))  # a first run that was slower than the second
    manifest = (sealed.folder / "_manifest.yml").read_text(encoding="utf-8")
    assert "opened: 2\n" in manifest
    printed = sealed.evaluate()[1]  # as many as announced: from now on it is held out
    assert "1 of 2 passed when they were first opened" in printed
    assert "✗ valid_warranty_002" in printed
    with pytest.raises(ConfigurationError, match="opened as often as announced"):
        sealed.evaluate(open=True, kept=kept(sealed))
    for number in range(12):
        sealed.evaluate(kept=kept(sealed)._replace(keep_runs=1), run_id=f"later{number}", started="2026-01-19")
    with RunStore(kept(sealed).file) as store:
        assert [store.find_run(f"run{number}").facts["opened"] for number in (1, 2)] == [1, 2]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"only": ("valid_*",)}, "Remove --only"),
        ({"fail_fast": True}, "Remove --fail-fast"),
        ({"verbose": True}, "Remove --verbose"),
        ({"threshold": 80.0}, "Leave --threshold out"),
        ({"open": True}, "Remove --no-store"),
    ],
)
def test_what_would_open_a_sealed_suite_or_change_its_rule_is_refused(
    sealed: ScenarioFolder, options: dict[str, Any], said: str
) -> None:
    seal(sealed, "threshold: 95\n")
    with pytest.raises(ConfigurationError) as caught:
        sealed.evaluate(**options)
    assert said in caught.value.message


def test_an_opening_that_cannot_be_kept_shows_nothing(sealed: ScenarioFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*_: object) -> None:
        raise OSError(ENOSPC, "No space left on device")

    monkeypatch.setattr(report_files, "write_whole", full)
    with pytest.raises(ConfigurationError, match=r"_manifest.yml: the opening cannot be kept \(No space left"):
        sealed.evaluate(open=True, kept=kept(sealed))


def test_a_sealed_suite_is_no_part_of_another_and_has_none_that_runs(sealed: ScenarioFolder) -> None:
    outer = ScenarioFolder(sealed.folder.parent, sealed.config)
    outer.write(7)
    assert "1 of 1 scenario passes" in outer.evaluate()[1]
    for place in sealed.folder, sealed.folder / "valid_warranty_001.yaml":
        with pytest.raises(ConfigurationError, match="is sealed"):
            evaluate(place, config=sealed.config)


def test_a_suite_that_was_opened_proves_nothing(suite: ScenarioFolder) -> None:
    suite.write(1)
    manifest = "kind: held_out\nfirst_passed: 204\nfirst_total: 207\nopened_since: 4\n"
    (suite.folder / "_manifest.yml").write_text(manifest, encoding="utf-8")
    code, printed = suite.evaluate(require_proof=True)
    assert code == 4
    assert "inconclusive (a suite that was opened before proves no rate on new mail)" in printed
    assert "204 of 207 passed when they were first opened" in printed
    assert "at most 3.8 % went wrong then, with 95 % confidence), and they were opened 4 times since." in printed
    assert suite.report()["lower_bound_95"] is None


@pytest.mark.parametrize(
    ("manifest", "said"),
    [
        ("kind: sealed\n", "_manifest.yml: a sealed suite lacks drawn_from, period, sha256, revision. Add it"),
        (f"{SEALED}sha256: 00\n", "the seal is broken: the files of this folder have the digest "),
        ("kind: secret\n", "kind"),
        ("kind: [\n", "_manifest.yml: "),
        ("kind: held_out\nfirst_passed: 5\nfirst_total: 3\n", "_manifest.yml: first_passed is 5 of first_total 3"),
        ("", "_manifest.yaml: nobody reads a manifest of this name. Call it _manifest.yml"),
    ],
)
def test_a_manifest_that_cannot_be_used(suite: ScenarioFolder, manifest: str, said: str) -> None:
    suite.write(1)
    (suite.folder / f"_manifest.{'yml' if manifest else 'yaml'}").write_text(manifest, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="_manifest") as caught:
        suite.evaluate()
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("wrong", "total", "share"), [(0, 300, 0.009936), (3, 207, 0.037029), (5, 5, 1.0), (10, 20, 0.698046)]
)
def test_the_bound_is_that_of_clopper_and_pearson(wrong: int, total: int, share: float) -> None:
    assert upper_bound(wrong, total, 0.05) == pytest.approx(share, abs=1e-3)
