"""The arithmetic of pass rates: the gate, and how a percentage is written.

Thresholds are percentages from 0 to 100. They are read as exact decimals, so that 99.9 means 999/1000 and not the
nearest binary float.
"""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

_MAX_DECIMALS = 20


def threshold_fraction(threshold: float) -> Fraction:
    """The share that `threshold` percent stands for, exact: 99.9 → 999/1000. Raises ValueError beyond 0 and 100."""
    if not 0 <= threshold <= 100:
        raise ValueError(f"{threshold!r} is no percentage. Write a number from 0 to 100, such as 99 or 99.5.")
    return Fraction(str(threshold)) / 100


def threshold_text(threshold: float) -> str:
    """The percentage without a sign and without needless zeros: 99.0 → "99"."""
    return format(Decimal(str(threshold)).normalize(), "f")


def meets_threshold(passed: int, total: int, threshold: float) -> bool:
    """The gate: whether `passed` of `total` is at least `threshold` percent, compared exactly. 0 of 0 counts as 0 %."""
    return _share(passed, total) >= threshold_fraction(threshold)


def format_percentage(passed: int, total: int, threshold: float) -> str:
    """`passed` of `total` for people: "100%", otherwise one decimal, rounded half up.

    What is written stands on the same side of the threshold as the exact share, and reads 100 only where all passed:
    where rounding up would cross, it is rounded down, and where one decimal cannot tell, more are written.
    """
    if passed == total > 0:
        return "100%"
    scaled, decimals = _scaled_percentage(_share(passed, total), threshold_fraction(threshold), decimals=1)
    return f"{_decimal_text(scaled, decimals)}%"


def rounded_percentage(passed: int, total: int, threshold: float) -> float:
    """`passed` of `total` for machines: percent with two decimals, by the rules of `format_percentage`."""
    scaled, decimals = _scaled_percentage(_share(passed, total), threshold_fraction(threshold), decimals=2)
    return float(_decimal_text(scaled, decimals))


def upper_bound(wrong: int, total: int, alpha: float) -> float:
    """The share of all that is wrong at most where `wrong` of `total` drawn at random are (Clopper–Pearson, one-sided).

    alpha: the chance that it is more, after all.
    """
    _check_counts(wrong, total)
    if wrong == total:
        return 1.0
    ways = [math.lgamma(total + 1) - math.lgamma(k + 1) - math.lgamma(total - k + 1) for k in range(wrong + 1)]
    low, high = wrong / total, 1.0
    for _ in range(50):  # halves: far below what anybody writes
        share = (low + high) / 2
        so_few = sum(
            math.exp(way + k * math.log(share) + (total - k) * math.log1p(-share)) for k, way in enumerate(ways)
        )
        low, high = (share, high) if so_few > alpha else (low, share)
    return high


def mean_interval(mean: float, count: int, alpha: float) -> tuple[float, float]:
    """Where the mean of all lies if `count` values from 0 to 1, drawn at random, have this one (Chernoff–Hoeffding).

    It holds however they are distributed. alpha: the chance that it lies elsewhere, after all.
    """

    def limit(edge: float) -> float:
        near, far = mean, edge
        for _ in range(50):
            at = (near + far) / 2
            parts = ((mean, at), (1 - mean, 1 - at))
            divergence = sum(share * math.log(share / other) if other else math.inf for share, other in parts if share)
            near, far = (at, far) if count * divergence <= math.log(2 / alpha) else (near, at)
        return far

    return limit(0.0), limit(1.0)


def _check_counts(passed: int, total: int) -> None:
    if not 0 <= passed <= total:
        raise ValueError(f"{passed} of {total} is no share: passed must lie between 0 and the total.")


def _share(passed: int, total: int) -> Fraction:
    _check_counts(passed, total)
    return Fraction(passed, total) if total else Fraction(0)


def _scaled_percentage(share: Fraction, threshold: Fraction, decimals: int) -> tuple[int, int]:
    """The percentage as an integer of 10**-decimals, and the number of decimals that tells it from the threshold."""
    percent, limit = share * 100, threshold * 100
    while True:
        unit = 10**decimals
        scaled = math.floor(percent * unit + Fraction(1, 2))
        if share < 1 and (scaled >= 100 * unit or (share < threshold and scaled >= limit * unit)):
            scaled = math.floor(percent * unit)
        if share < threshold or scaled >= limit * unit or decimals >= _MAX_DECIMALS:
            return scaled, decimals
        decimals += 1


def _decimal_text(scaled: int, decimals: int) -> str:
    whole, rest = divmod(scaled, 10**decimals)
    return f"{whole}.{rest:0{decimals}d}"
