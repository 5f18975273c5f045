"""When the run with a small model on this machine counts as failed. The run itself takes a model, and minutes."""

from __future__ import annotations

import importlib.util
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

FILE = Path(__file__).parents[2] / "benchmarks" / "bench_local_model.py"


@pytest.fixture(scope="module")
def bench() -> Iterator[ModuleType]:
    spec = importlib.util.spec_from_file_location("bench_local_model", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["bench_local_model"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module
    del sys.modules["bench_local_model"]


def problems(bench: ModuleType, calls: int = 9, **gone: int) -> Any:
    with_model = bench.Tally(calls=calls, outcomes=Counter(answered=1, llm_wrong_shape=7))
    return bench.problems(with_model, bench.Tally(outcomes=Counter(gone)))


def test_a_model_that_answers_and_templates_that_answer_without_it_are_fine(bench: ModuleType) -> None:
    assert problems(bench, llm_unreachable=4, answered=8) == []


def test_a_model_that_answered_no_call_is_a_failure(bench: ModuleType) -> None:
    assert problems(bench, calls=0, llm_unreachable=4, answered=8) == [
        "the model answered no call, so nothing was tried"
    ]


@pytest.mark.parametrize("gone", [{"llm_unreachable": 4}, {"llm_unreachable": 5, "answered": 7}, {"llm_timeout": 12}])
def test_templates_that_did_not_answer_are_a_failure(bench: ModuleType, gone: dict[str, int]) -> None:
    assert problems(bench, **gone) == ["the templates did not answer once the model was gone"]


def test_too_few_mails_to_open_the_circuit_are_refused(bench: ModuleType, tmp_path: Path) -> None:
    with pytest.raises(SystemExit, match="--mails must be at least 5"):
        bench.main(["--mails", "4", "--model", str(tmp_path / "none.gguf")])
