"""Which faults are tried: the same every time, and none that nothing can show without a reason."""

from __future__ import annotations

import pytest
from faults.fault import equivalent_faults
from faults.known_faults import known_faults
from faults.sampling import all_faults, sample
from faults.softened_phrases import softened_phrases
from faults.trial import ROOT


def test_the_sample_is_the_same_every_time_and_no_fault_is_in_it_twice() -> None:
    first, second = (sample(all_faults(ROOT), 212) for _ in range(2))
    assert first == second
    assert len({fault.key for fault in first}) == len(first)
    assert sum(fault.file.endswith(".py") for fault in first) == 212


def test_translations_are_planted_in_like_their_originals() -> None:
    files = {fault.file for fault in all_faults(ROOT)}
    assert {path.relative_to(ROOT).as_posix() for path in (ROOT / "instructions/scenarios").glob("*.??.md")} <= files


def test_the_places_of_the_known_faults_are_there() -> None:
    known = known_faults(ROOT)
    assert len({each.name for each in known}) == len(known)
    assert all((ROOT / path).exists() for each in known for path in each.tests)


def test_a_fault_that_nothing_can_show_has_a_reason() -> None:
    assert all(reason.strip() for reason in equivalent_faults().values())


@pytest.mark.parametrize(
    ("firm", "soft"),
    [
        ("Ihre Garantie\nist gültig.", "Ihre Garantie\nsollte gültig sein."),
        ("su garantía es\nválida.", "su garantía debería ser válida."),
        ("votre garantie est valable.", "votre garantie devrait être valable."),
        ("gwarancja jest\nważna.", "gwarancja powinna być ważna."),
        ("numeru seryjnego urządzenia.", "numeru urządzenia."),
    ],
)
def test_firm_phrases_of_translations_are_softened(firm: str, soft: str) -> None:
    text = f"<reply>\n{firm}\n</reply>\n"
    assert f"<reply>\n{soft}\n</reply>\n" in [each.planted_in(text) for each in softened_phrases("x.md", text)]
