"""What a suite shows of new mail, by the manifest in its folder."""

from __future__ import annotations

import hashlib
from pathlib import Path

import pytest
from scenario_folder import BUILT_IN, ScenarioFolder

from guarantee_email_agent.eval.evaluation import evaluate
from guarantee_email_agent.runlog.statistics import upper_bound
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
    digest = seal(suite)
    code, printed = suite.evaluate(require_proof=True, threshold=5.0)
    assert code == 0
    assert printed.splitlines()[-1] == (
        f"1 of 1 scenario passes. 1 mail, drawn at random from the 4,120 received in May 2026, sealed (sha256 "
        f"{digest[:12]}…) before revision abc1234, opened once: 0 wrong. With 95 % confidence at most 95.0 % of mail "
        "like that period's goes wrong. Each for itself: at least 5.0 % of it is answered, of the answers at most "
        "95.0 % are wrong, at most 95.0 % of it is harmed."
    )
    assert evaluate(suite.folder, config=suite.config, require_proof=True, threshold=5)
    report = suite.report(require_proof=True)
    assert (report["gate"], report["lower_bound_95"], report["suite_kind"]) == ("inconclusive", 5.0, "sealed")
    assert suite.report(only=("valid_*",), require_proof=True, threshold=5.0)["lower_bound_95"] is None
    seal(suite, "openings: 5\n")  # each has its share of the doubt
    assert suite.report()["lower_bound_95"] == 1.0


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
    ],
)
def test_a_manifest_that_cannot_be_used(suite: ScenarioFolder, manifest: str, said: str) -> None:
    suite.write(1)
    (suite.folder / "_manifest.yml").write_text(manifest, encoding="utf-8")
    with pytest.raises(ConfigurationError, match="_manifest") as caught:
        suite.evaluate()
    assert said in caught.value.message


@pytest.mark.parametrize(
    ("wrong", "total", "share"), [(0, 300, 0.009936), (3, 207, 0.037029), (5, 5, 1.0), (10, 20, 0.698046)]
)
def test_the_bound_is_that_of_clopper_and_pearson(wrong: int, total: int, share: float) -> None:
    assert upper_bound(wrong, total, 0.05) == pytest.approx(share, abs=1e-3)
