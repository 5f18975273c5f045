"""The arithmetic of pass rates: the gate, how a percentage is written, and what a suite proves.

Thresholds are percentages from 0 to 100. They are read as exact decimals, so that 99.9 means 999/1000 and not the
nearest binary float.
"""

from __future__ import annotations

import math
from decimal import Decimal, InvalidOperation
from fractions import Fraction

Threshold = float | str | Decimal

_ALPHA = 1 - 0.95
_MAX_DECIMALS = 20


def threshold_fraction(threshold: Threshold) -> Fraction:
    """The share that `threshold` percent stands for, exact: "99.9" → 999/1000.

    Raises ValueError for what is no number from 0 to 100 with at most twenty decimals.
    """
    try:
        written = Decimal(str(threshold).strip().removesuffix("%"))
    except InvalidOperation:
        raise _no_percentage(threshold) from None
    exponent = written.as_tuple().exponent
    # Checked on the decimal: 1e-999999999 as an exact fraction would take all the memory there is.
    if not isinstance(exponent, int) or exponent < -_MAX_DECIMALS or not 0 <= written <= 100:
        raise _no_percentage(threshold)
    return Fraction(written) / 100


def _no_percentage(threshold: object) -> ValueError:
    return ValueError(f"{threshold!r} is no percentage. Write a number from 0 to 100, such as 99 or 99.5.")


def threshold_text(threshold: Threshold) -> str:
    """The percentage without a sign and without needless zeros: 99.0 → "99"."""
    percent = threshold_fraction(threshold) * 100
    return format((Decimal(percent.numerator) / percent.denominator).normalize(), "f")


def meets_threshold(passed: int, total: int, threshold: Threshold) -> bool:
    """The gate: whether `passed` of `total` is at least `threshold` percent, compared exactly. 0 of 0 counts as 0 %."""
    return _share(passed, total) >= threshold_fraction(threshold)


def format_percentage(passed: int, total: int, threshold: Threshold) -> str:
    """`passed` of `total` for people: "100%", otherwise one decimal, rounded half up.

    What is written stands on the same side of the threshold as the exact share, and reads 100 only where all passed:
    where rounding up would cross, it is rounded down, and where one decimal cannot tell, more are written.
    """
    if passed == total > 0:
        return "100%"
    scaled, decimals = _scaled_percentage(_share(passed, total), threshold_fraction(threshold), decimals=1)
    return f"{_decimal_text(scaled, decimals)}%"


def rounded_percentage(passed: int, total: int, threshold: Threshold) -> float:
    """`passed` of `total` for machines: percent with two decimals, by the rules of `format_percentage`."""
    scaled, decimals = _scaled_percentage(_share(passed, total), threshold_fraction(threshold), decimals=2)
    return float(_decimal_text(scaled, decimals))


def rounded_bound(bound: float, threshold: Threshold) -> float:
    """A lower bound in percent: one decimal, rounded down as a bound must be; more where it meets `threshold`."""
    exact, limit = Fraction(bound) / 100, threshold_fraction(threshold)
    for decimals in range(1, _MAX_DECIMALS + 1):
        scaled = math.floor(exact * 100 * 10**decimals)
        if exact < limit or Fraction(scaled, 100 * 10**decimals) >= limit:
            return float(_decimal_text(scaled, decimals))
    return bound


def lower_bound_95(passed: int, total: int) -> float:
    """One-sided 95 % lower confidence bound of the pass rate, in percent (Clopper and Pearson, Biometrika 26, 1934).

    The pass rate at which `passed` or more of `total` would come up in one suite of twenty. Nothing tried: 0.0.
    """
    _check_counts(passed, total)
    if passed == 0:
        return 0.0
    if passed == total:
        return 100 * math.exp(math.log(_ALPHA) / total)
    low, high = 0.0, passed / total
    while True:
        middle = (low + high) / 2
        if middle in (low, high):
            return 100 * low
        if _probability_at_least(passed, total, middle) < _ALPHA:
            low = middle
        else:
            high = middle


def clean_runs_needed(failures: int, threshold: Threshold) -> int | None:
    """How many scenarios a suite with `failures` failures must have to prove `threshold` percent (95 % confidence).

    The smallest total whose `lower_bound_95` reaches the threshold: 299 for 99 % and no failure. None where no
    number does, which is so for 100 %.
    """
    if failures < 0:
        raise ValueError(f"failures must not be negative: {failures}")
    share = threshold_fraction(threshold)
    if share == 1:
        return None
    if share == 0:
        return failures
    rate = float(share)

    def proves(total: int) -> bool:
        passed = total - failures
        return passed > 0 and _probability_at_least(passed, total, rate) <= _ALPHA

    high = failures + 1
    while not proves(high):
        high *= 2
    low = max(failures, high // 2)
    while low + 1 < high:
        middle = (low + high) // 2
        low, high = (low, middle) if proves(middle) else (middle, high)
    return high


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


def _probability_at_least(passed: int, total: int, rate: float) -> float:
    """P(X ≥ passed) of `total` tries that each pass with probability `rate`; 0 < passed ≤ total, 0 < rate < 1.

    It is the regularised incomplete beta function I_rate(passed, total - passed + 1), by its continued fraction
    (NIST DLMF §8.17(v)), which takes about √total steps where a sum of binomial terms takes `total`.
    """
    a, b = float(passed), float(total - passed + 1)
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(rate) + b * math.log1p(-rate)
    if rate < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _beta_fraction(a, b, rate) / a
    return 1 - math.exp(log_front) * _beta_fraction(b, a, 1 - rate) / b


def _beta_fraction(a: float, b: float, x: float) -> float:
    """The continued fraction of the incomplete beta function by Lentz's method; it converges for x < (a+1)/(a+b+2)."""
    tiny = 1e-300
    c = 1.0
    d = 1 - (a + b) * x / (a + 1)
    d = 1 / (d if abs(d) > tiny else tiny)
    value = d
    step = 0
    while True:
        step += 1
        even = step * (b - step) * x / ((a + 2 * step - 1) * (a + 2 * step))
        odd = -(a + step) * (a + b + step) * x / ((a + 2 * step) * (a + 2 * step + 1))
        for term in (even, odd):
            d = 1 + term * d
            d = 1 / (d if abs(d) > tiny else tiny)
            c = 1 + term / c
            c = c if abs(c) > tiny else tiny
            change = c * d
            value *= change
        if abs(change - 1) < 1e-14 or step >= 100_000:
            return value
