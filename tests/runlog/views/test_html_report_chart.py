from __future__ import annotations

from sample_reports import Past

from guarantee_email_agent.runlog.views.html_report import HEIGHT, WIDTH, HistoryChart


def chart(*runs: Past, threshold: float | None = 99) -> HistoryChart:
    drawn = HistoryChart.of(runs, threshold)
    assert drawn is not None
    return drawn


def test_one_run_is_no_history() -> None:
    assert HistoryChart.of([Past(1, 1)], 99) is None
    assert HistoryChart.of([Past(1, 1), Past(0, 0)], 99) is None


def test_everything_stands_within_the_drawing() -> None:
    drawn = chart(*(Past(passed, 35) for passed in range(36)))
    numbers = [float(each) for each in drawn.line.strip("M").replace("L", " ").split()]
    assert all(0 <= x <= WIDTH for x in numbers[::2])
    assert all(0 <= y <= HEIGHT for y in numbers[1::2])
    assert drawn.floor == 0


def test_the_scale_holds_the_threshold() -> None:
    drawn = chart(Past(10_000, 10_000), Past(10_000, 10_000), threshold=50)
    assert (drawn.floor, drawn.threshold_y) == (50, HEIGHT)


def test_the_drawing_in_words() -> None:
    assert chart(Past(34, 35, started="2026-01-01T10:00:00Z"), Past(35, 35)).text == (
        "Pass rates of 2 runs, from 97.1 % on 2026-01-01 to 100 % on 2026-01-18; lowest 97.1 %, highest 100 %."
    )


def test_a_rate_just_below_a_hundred_does_not_read_as_such() -> None:
    assert "to 99.9 %" in chart(Past(1, 1), Past(9_999, 10_000)).text
