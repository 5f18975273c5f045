from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from guarantee_email_agent.reporting.statistics import (
    clean_runs_needed,
    format_percentage,
    lower_bound_95,
    meets_threshold,
    rounded_bound,
    rounded_percentage,
    threshold_fraction,
    threshold_text,
)

counts = st.integers(1, 3000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))
thresholds = st.decimals(0, 100, places=3, allow_nan=False)


def _tail(passed: int, total: int, rate: float) -> float:
    """P(X ≥ passed), straight from the definition."""
    return math.fsum(
        math.exp(
            math.lgamma(total + 1)
            - math.lgamma(count + 1)
            - math.lgamma(total - count + 1)
            + count * math.log(rate)
            + (total - count) * math.log1p(-rate)
        )
        for count in range(passed, total + 1)
    )


class TestThreshold:
    @pytest.mark.parametrize("written", [99.9, "99.9", "99.9%", " 99.90 ", Decimal("99.9")])
    def test_is_read_as_the_exact_decimal(self, written: float | str | Decimal) -> None:
        assert threshold_fraction(written) == Fraction(999, 1000)

    @pytest.mark.parametrize(
        "written",
        ["", "all", "-0.1", "100.01", "nan", "inf", "sNaN", "1e-999999999", "0e-999999999", "1e999999999", True, None,
         float("nan"), "99,5"],
    )  # fmt: skip
    def test_refuses_what_is_no_percentage(self, written: object) -> None:
        with pytest.raises(ValueError, match="from 0 to 100"):
            threshold_fraction(written)  # type: ignore[arg-type]

    @pytest.mark.parametrize(
        ("threshold", "text"), [(99.0, "99"), ("99.50", "99.5"), (100, "100"), (0, "0"), (10, "10"), ("0.001", "0.001")]
    )
    def test_is_written_without_needless_zeros(self, threshold: float | str, text: str) -> None:
        assert threshold_text(threshold) == text


class TestGate:
    @pytest.mark.parametrize(
        ("passed", "total", "threshold", "open_"),
        [
            (99, 100, 99.0, True),
            (9899, 10000, 99.0, False),
            (999, 1000, 99.9, True),
            (9989, 10000, 99.9, False),
            (29, 29, 100, True),
            (28, 29, 100, False),
            (0, 0, 99, False),
            (0, 1, 0, True),
            # As floats, 100 * 7 / 10 and 100 * 0.7 differ.
            (7, 10, 70.0, True),
            (10**18 - 1, 10**18, 100, False),
        ],
    )
    def test_compares_exactly(self, passed: int, total: int, threshold: float, open_: bool) -> None:
        assert meets_threshold(passed, total, threshold) is open_

    @pytest.mark.parametrize(("passed", "total"), [(2, 1), (-1, 1), (1, 0)])
    def test_refuses_counts_that_are_no_share(self, passed: int, total: int) -> None:
        with pytest.raises(ValueError, match="no share"):
            meets_threshold(passed, total, 99)


class TestPercentage:
    @pytest.mark.parametrize(
        ("passed", "total", "threshold", "text"),
        [
            (35, 35, 99, "100%"),
            (34, 35, 99, "97.1%"),
            (0, 35, 99, "0.0%"),
            (0, 0, 99, "0.0%"),
            (1, 2, 99, "50.0%"),
            (2, 3, 99, "66.7%"),
            (1, 16, 99, "6.3%"),  # 6.25 rounds half up, not half to even
            (9896, 10000, 99, "98.9%"),  # 98.96 would read 99.0
            (98999, 100000, 99, "98.9%"),
            (99, 100, 99, "99.0%"),
            (9996, 10000, 99, "99.9%"),  # 99.96 would read 100.0
            (9998, 10000, 100, "99.9%"),
            (9993, 10000, 99.95, "99.9%"),
            (99951, 100000, 99.95, "99.95%"),  # 99.9 would read as below, though it passes
            (9902, 10000, 99.01, "99.02%"),
        ],
    )
    def test_known(self, passed: int, total: int, threshold: float, text: str) -> None:
        assert format_percentage(passed, total, threshold) == text

    @given(counts, thresholds)
    def test_reads_on_the_side_of_the_threshold_that_it_is_on(self, count: tuple[int, int], limit: Decimal) -> None:
        shown = Decimal(format_percentage(*count, limit).rstrip("%"))
        assert (shown >= limit) is meets_threshold(*count, limit)

    @given(counts, thresholds)
    def test_reads_100_only_where_all_passed(self, count: tuple[int, int], limit: Decimal) -> None:
        passed, total = count
        text = format_percentage(passed, total, limit)
        assert (text == "100%") is (passed == total)
        assert (Decimal(text.rstrip("%")) == 100) is (passed == total)

    @given(counts, thresholds)
    def test_is_off_by_less_than_one_step(self, count: tuple[int, int], limit: Decimal) -> None:
        passed, total = count
        shown = Fraction(Decimal(format_percentage(passed, total, limit).rstrip("%")))
        assert abs(shown - Fraction(100 * passed, total)) < Fraction(1, 10)

    @given(counts, thresholds)
    def test_for_machines_keeps_the_same_rules(self, count: tuple[int, int], limit: Decimal) -> None:
        passed, total = count
        value = rounded_percentage(passed, total, limit)
        assert (Fraction(str(value)) >= Fraction(limit)) is meets_threshold(passed, total, limit)
        assert (value == 100) is (passed == total)

    @pytest.mark.parametrize(
        ("passed", "total", "value"), [(34, 35, 97.14), (98999, 100000, 98.99), (2, 3, 66.67), (0, 0, 0.0), (5, 5, 100)]
    )
    def test_for_machines_has_two_decimals(self, passed: int, total: int, value: float) -> None:
        assert rounded_percentage(passed, total, 99) == value


class TestLowerBound:
    @pytest.mark.parametrize(
        ("passed", "total", "bound"),
        [
            # n clean runs: 0.05 ** (1 / n), the exact form of the rule of three.
            (1, 1, 5.0),
            (10, 10, 74.1134),
            (59, 59, 95.0494),
            (299, 299, 99.0031),
            # Printed tables of one-sided exact binomial limits.
            (9, 10, 60.5838),
            (8, 10, 49.3099),
            (19, 20, 78.3895),
            (5, 10, 22.2441),
            (1, 10, 0.5116),
            (34, 35, 87.1499),
        ],
    )
    def test_known(self, passed: int, total: int, bound: float) -> None:
        assert lower_bound_95(passed, total) == pytest.approx(bound, abs=1e-3)

    @pytest.mark.parametrize("total", [0, 1, 10_000])
    def test_nothing_passed_proves_nothing(self, total: int) -> None:
        assert lower_bound_95(0, total) == 0.0

    @settings(max_examples=60)
    @given(counts)
    def test_is_where_the_tail_holds_five_percent(self, count: tuple[int, int]) -> None:
        passed, total = count
        assume(passed > 0)
        assert _tail(passed, total, lower_bound_95(passed, total) / 100) == pytest.approx(0.05, rel=1e-7)

    @given(counts)
    def test_lies_below_the_rate_that_was_seen(self, count: tuple[int, int]) -> None:
        passed, total = count
        assert 0 <= lower_bound_95(passed, total) <= 100 * passed / total

    @settings(max_examples=30)
    @given(st.integers(0, 10_000))
    def test_grows_with_each_pass_in_a_large_suite(self, passed: int) -> None:
        assume(passed < 10_000)
        assert lower_bound_95(passed, 10_000) < lower_bound_95(passed + 1, 10_000)

    def test_is_written_rounded_down(self) -> None:
        assert rounded_bound(lower_bound_95(34, 35), 99) == 87.1
        assert rounded_bound(98.99, 99) == 98.9

    def test_is_written_with_more_decimals_where_one_would_hide_that_it_is_enough(self) -> None:
        assert rounded_bound(99.965, 99.95) == 99.96


class TestCleanRunsNeeded:
    @pytest.mark.parametrize(
        ("failures", "threshold", "runs"),
        # The published sample sizes of "95/95" and "95/99" tests, among them the contract's 299 and 473.
        [(0, 99, 299), (1, 99, 473), (2, 99, 628), (0, 95, 59), (1, 95, 93), (2, 95, 124), (0, 90, 29), (1, 90, 46),
         (0, 99.9, 2995)],
    )  # fmt: skip
    def test_known(self, failures: int, threshold: float, runs: int) -> None:
        assert clean_runs_needed(failures, threshold) == runs

    def test_nothing_proves_100_percent(self) -> None:
        assert clean_runs_needed(0, 100) is None

    def test_0_percent_needs_no_proof(self) -> None:
        assert clean_runs_needed(0, 0) == 0

    def test_thousands_of_failures(self) -> None:
        needed = clean_runs_needed(3000, 99)
        assert needed is not None
        assert lower_bound_95(needed - 3000, needed) >= 99 > lower_bound_95(needed - 3001, needed - 1)

    @settings(max_examples=60)
    @given(st.integers(0, 60), st.sampled_from([1, 50, 90, 95, 98.7, 99, 99.5, 99.9]))
    def test_is_the_smallest_total_whose_bound_reaches_the_threshold(self, failures: int, threshold: float) -> None:
        needed = clean_runs_needed(failures, threshold)
        assert needed is not None
        assert lower_bound_95(needed - failures, needed) >= threshold
        assert lower_bound_95(max(needed - 1 - failures, 0), needed - 1) < threshold
