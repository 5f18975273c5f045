"""Results of a small and of a large run, gone through several times."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.reporting.kept_results import IN_MEMORY, KeptResults, mapped
from guarantee_email_agent.utils.errors import ConfigurationError


@contextmanager
def kept(count: int) -> Iterator[KeptResults[dict[str, Any]]]:
    results: KeptResults[dict[str, Any]] = KeptResults(in_memory=10)
    with closing(results):
        for number in range(count):
            results.add({"number": number})
        yield results


@pytest.mark.parametrize("count", [0, 9, 10, 11, 259, 260, 1_000])
def test_all_come_in_their_order_each_time(count: int) -> None:
    with kept(count) as results:
        assert len(results) == count
        for _ in range(2):
            assert [each["number"] for each in results] == list(range(count))


def test_two_may_go_through_them_at_a_time() -> None:
    with kept(1_000) as results:
        assert all(one == other for one, other in zip(results, results, strict=True))


def test_few_are_the_very_objects_that_were_kept() -> None:
    one = {"number": 1}
    results: KeptResults[dict[str, Any]] = KeptResults()
    results.add(one)
    assert next(iter(results)) is one


def test_nothing_lies_in_the_temporary_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    with kept(1_000) as results:
        assert len(list(results)) == 1_000
        assert os.listdir(tmp_path) == []


def test_a_full_disk_ends_no_run_and_is_told_to_who_reads(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "gone"))
    with kept(1_000) as results, pytest.raises(ConfigurationError, match=r"cannot be kept for its reports .* TMPDIR"):
        list(results)


def test_what_is_made_of_many_is_made_as_it_is_asked_for() -> None:
    made: list[int] = []
    many = mapped(range(IN_MEMORY + 1), lambda number: made.append(number) or -number)
    assert made == []
    assert next(iter(many)) == 0
    assert made == [0]
    assert len(many) == IN_MEMORY + 1
