from decimal import Decimal
from fractions import Fraction

import pytest
from hypothesis import given
from hypothesis import strategies as st

from guarantee_email_agent.runlog.statistics import (
    format_percentage,
    mean_interval,
    meets_threshold,
    rounded_percentage,
    threshold_fraction,
    threshold_text,
)

counts = st.integers(1, 3000).flatmap(lambda total: st.tuples(st.integers(0, total), st.just(total)))
thresholds = st.integers(0, 100_000).map(lambda thousandths: thousandths / 1000)


class TestThreshold:
    def test_is_read_as_the_exact_decimal(self) -> None:
        assert threshold_fraction(99.9) == Fraction(999, 1000)

    @pytest.mark.parametrize("threshold", [-0.1, 100.01, float("inf"), float("nan")])
    def test_refuses_what_is_no_percentage(self, threshold: float) -> None:
        with pytest.raises(ValueError, match="from 0 to 100"):
            threshold_fraction(threshold)

    @pytest.mark.parametrize(
        ("threshold", "text"), [(99.0, "99"), (99.5, "99.5"), (100, "100"), (0, "0"), (10, "10"), (1e-7, "0.0000001")]
    )
    def test_is_written_without_needless_zeros(self, threshold: float, text: str) -> None:
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
    def test_reads_on_the_side_of_the_threshold_that_it_is_on(self, count: tuple[int, int], limit: float) -> None:
        shown = Decimal(format_percentage(*count, limit).rstrip("%"))
        assert (shown >= Decimal(str(limit))) is meets_threshold(*count, limit)

    @given(counts, thresholds)
    def test_reads_100_only_where_all_passed(self, count: tuple[int, int], limit: float) -> None:
        passed, total = count
        text = format_percentage(passed, total, limit)
        assert (text == "100%") is (passed == total)
        assert (Decimal(text.rstrip("%")) == 100) is (passed == total)

    @given(counts, thresholds)
    def test_is_off_by_less_than_one_step(self, count: tuple[int, int], limit: float) -> None:
        passed, total = count
        shown = Fraction(Decimal(format_percentage(passed, total, limit).rstrip("%")))
        assert abs(shown - Fraction(100 * passed, total)) < Fraction(1, 10)

    @given(counts, thresholds)
    def test_for_machines_keeps_the_same_rules(self, count: tuple[int, int], limit: float) -> None:
        passed, total = count
        value = rounded_percentage(passed, total, limit)
        assert (Fraction(str(value)) >= Fraction(str(limit))) is meets_threshold(passed, total, limit)
        assert (value == 100) is (passed == total)

    @pytest.mark.parametrize(
        ("passed", "total", "value"), [(34, 35, 97.14), (98999, 100000, 98.99), (2, 3, 66.67), (0, 0, 0.0), (5, 5, 100)]
    )
    def test_for_machines_has_two_decimals(self, passed: int, total: int, value: float) -> None:
        assert rounded_percentage(passed, total, 99) == value


@given(st.floats(0, 1), st.integers(1, 500))
def test_an_interval_holds_its_mean_and_shrinks_with_the_count(mean: float, count: int) -> None:
    low, high = mean_interval(mean, count, 0.05)
    fewer_low, fewer_high = mean_interval(mean, count - 1, 0.05) if count > 1 else (0.0, 1.0)
    assert 0 <= low <= mean <= high <= 1
    assert low < high
    assert low >= fewer_low - 1e-9
    assert high <= fewer_high + 1e-9


def test_an_interval_of_ones_is_where_so_many_would_be_too_rare() -> None:
    low, high = mean_interval(1.0, 10, 0.05)
    assert (round(low**10, 6), high) == (0.025, 1.0)
