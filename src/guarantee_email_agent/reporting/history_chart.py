"""The pass rates of earlier runs as a drawing: where each point, the line and the confidence band stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, NamedTuple

from guarantee_email_agent.reporting.report import PastRun
from guarantee_email_agent.reporting.statistics import lower_bound_95

WIDTH: Final = 1000
HEIGHT: Final = 200
_STEP: Final = 10


class Point(NamedTuple):
    """A run. x, y: in the drawing. low, high: the bounds of its pass rate in percent, each with 95 % confidence."""

    run: PastRun
    rate: float
    low: float
    high: float
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class HistoryChart:
    """What a template draws. line, band: path data. floor: the percentage at the lower edge; the upper is 100."""

    points: tuple[Point, ...]
    line: str
    band: str
    threshold_y: float | None
    floor: int

    @classmethod
    def of(cls, history: Sequence[PastRun], threshold: float | None) -> HistoryChart | None:
        """history: the oldest first. threshold: percent. None where there is nothing to compare."""
        runs = [run for run in history if run.total]
        if len(runs) < 2:
            return None
        bounds = [_bounds(*run.proof_counts) for run in runs]
        lowest = min([low for low, _ in bounds] + ([] if threshold is None else [threshold]))
        floor = max(0, min(90, math.floor(lowest / _STEP) * _STEP))

        def y(percent: float) -> float:
            return round(HEIGHT * (100 - max(percent, floor)) / (100 - floor), 1)

        points = []
        for index, (run, (low, high)) in enumerate(zip(runs, bounds, strict=True)):
            x = round(WIDTH * (index + 0.5) / len(runs), 1)
            rate = 100 * run.passed / run.total
            points.append(Point(run, rate, low, high, x, y(rate)))
        upper = [f"{point.x} {y(point.high)}" for point in points]
        lower = [f"{point.x} {y(point.low)}" for point in reversed(points)]
        return cls(
            tuple(points),
            f"M{'L'.join(f'{point.x} {point.y}' for point in points)}",
            f"M{'L'.join(upper + lower)}Z",
            None if threshold is None else y(threshold),
            floor,
        )

    @property
    def text(self) -> str:
        """The drawing in words."""
        first, last = self.points[0], self.points[-1]
        rates = [point.rate for point in self.points]
        return (
            f"Pass rates of {len(self.points)} runs, from {_percent(first.rate)} on {first.run.started[:10]} to "
            f"{_percent(last.rate)} on {last.run.started[:10]}; lowest {_percent(min(rates))}, "
            f"highest {_percent(max(rates))}."
        )


@lru_cache(maxsize=4096)  # two milliseconds each, and most runs of a suite have one of few
def _bounds(passed: int, total: int) -> tuple[float, float]:
    return lower_bound_95(passed, total), 100 - lower_bound_95(total - passed, total)


def _percent(rate: float) -> str:
    """Rounded down, so that only 100 % reads as such."""
    return f"{math.floor(rate * 10) / 10:g} %"
