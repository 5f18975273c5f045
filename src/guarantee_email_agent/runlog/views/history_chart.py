"""The pass rates of earlier runs as a drawing: where each point and the line stand."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

from guarantee_email_agent.runlog.views.report import PastRun

WIDTH: Final = 1000
HEIGHT: Final = 200
_STEP: Final = 10


class Point(NamedTuple):
    """A run. rate: percent. x, y: in the drawing."""

    run: PastRun
    rate: float
    x: float
    y: float


@dataclass(frozen=True, slots=True)
class HistoryChart:
    """What a template draws. line: path data. floor: the percentage at the lower edge; the upper is 100."""

    points: tuple[Point, ...]
    line: str
    threshold_y: float | None
    floor: int

    @classmethod
    def of(cls, history: Sequence[PastRun], threshold: float | None) -> HistoryChart | None:
        """history: the oldest first. threshold: percent. None where there is nothing to compare."""
        runs = [run for run in history if run.total]
        if len(runs) < 2:
            return None
        rates = [100 * run.passed / run.total for run in runs]
        lowest = min(rates if threshold is None else [*rates, threshold])
        floor = max(0, min(90, math.floor(lowest / _STEP) * _STEP))

        def y(percent: float) -> float:
            return round(HEIGHT * (100 - max(percent, floor)) / (100 - floor), 1)

        points = []
        for index, (run, rate) in enumerate(zip(runs, rates, strict=True)):
            points.append(Point(run, rate, round(WIDTH * (index + 0.5) / len(runs), 1), y(rate)))
        return cls(
            tuple(points),
            f"M{'L'.join(f'{point.x} {point.y}' for point in points)}",
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


def _percent(rate: float) -> str:
    """Rounded down, so that only 100 % reads as such."""
    return f"{math.floor(rate * 10) / 10:g} %"
