"""`eval --mutate`: which faults come first, what notices each, and that nobody's files are touched."""

import io
import re
from collections.abc import Callable, Sequence
from itertools import count
from pathlib import Path

import pytest
from command_line import Run

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.models import EvalResult
from guarantee_email_agent.eval.mutation.instruction_faults import PHRASE, PROMISE, Fault
from guarantee_email_agent.eval.mutation.mutate import Trial, in_order, mutate
from guarantee_email_agent.runlog.records import KeptRun


@pytest.fixture
def folder(tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An agent of one's own with three scenarios."""
    assert run("init", ".").returncode == 0
    for file in (tmp_path / "evals" / "scenarios").rglob("*.yaml"):
        if file.stem not in ("missing_info_001", "out_of_scope_001", "valid_warranty_001"):
            file.unlink()
    monkeypatch.setenv("TMPDIR", str(tmp_path / "scratch"))
    (tmp_path / "scratch").mkdir()
    monkeypatch.setattr("tempfile.tempdir", None)
    return tmp_path


def options_in(folder: Path) -> EvalOptions:
    kept = KeptRun(folder / "runs.db", None, lambda: "2026-01-18T10:00:00Z")
    return EvalOptions(directory=folder / "evals" / "scenarios", threshold=99, kept=kept)


def planted(
    folder: Path, faults: int, monotonic: Callable[[], float] | None = None, seed: int = 1, floor: float | None = None
) -> tuple[int, str]:
    """With a clock that goes on by a second for each fault."""
    stream = io.StringIO()
    clock = count().__next__ if monotonic is None else monotonic
    options, config = options_in(folder), load_config(folder / "config.yaml")
    code = mutate(options, config, stream, seconds=faults + 1, seed=seed, floor=floor, monotonic=clock)
    return code, stream.getvalue()


def contents(folder: Path) -> dict[str, bytes]:
    paths = [*(folder / "instructions").rglob("*"), *(folder / "evals").rglob("*"), *(folder / "scratch").rglob("*")]
    return {str(path): path.read_bytes() for path in paths if path.is_file()}


def test_files_and_their_kinds_come_by_turns_and_changed_ones_first() -> None:
    faults = [
        Fault(file, kind, 0, 0, "", line, str(line), "")
        for file in ("a.md", "b.md", "c.md")
        for kind in ("drop", "invert")
        for line in range(3)
    ]
    ranks = {"a.md": 1, "b.md": 1, "c.md": 0}
    first = in_order(faults, 1, ranks)
    assert [fault.file for fault in first[:6]] == ["c.md"] * 6
    assert {fault.operator for fault in first[:2]} == {"drop", "invert"}
    assert all({first[at].file, first[at + 1].file} == {"a.md", "b.md"} for at in range(6, 18, 2))
    assert in_order(faults[::-1], 1, ranks) == first != in_order(faults, 2, ranks)
    assert sorted(fault.key for fault in first) == sorted(fault.key for fault in faults)


@pytest.mark.slow
def test_it_goes_on_where_it_was_and_writes_into_no_file_of_the_user(folder: Path) -> None:
    before = contents(folder)
    code, printed = planted(folder, 3)
    counts = re.match(
        r"of (\d+) faults: (\d+) refused on loading, (\d+) close the gate, (\d+) seen only at 100 %, (\d+) unnoticed\n",
        printed,
    )
    assert code == 0
    assert int(counts[1]) == sum(map(int, counts.groups()[1:])) > 0
    again = planted(folder, 0)[1]
    assert again.startswith(counts[0])
    assert "Seed 1; 3 of them taken over." in again
    assert "Seed 2. Not reached" in planted(folder, 0, seed=2)[1]
    scenario = folder / "evals" / "scenarios" / "missing_info_001.yaml"
    scenario.write_text(scenario.read_text(encoding="utf-8") + "# looked through\n", encoding="utf-8")
    assert "Seed 1. Not reached" in planted(folder, 0)[1]
    assert {name: content for name, content in contents(folder).items() if name != str(scenario)} == {
        name: content for name, content in before.items() if name != str(scenario)
    }


@pytest.mark.slow
def test_what_came_of_files_that_were_edited_meanwhile_is_not_taken_over(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, is_open = folder / "instructions" / "scenarios" / "valid-warranty.md", Trial.is_open

    def edited(trial: Trial, failed: Sequence[EvalResult]) -> bool:
        file.write_text(file.read_text(encoding="utf-8").replace("we cannot say", "we can not say"), encoding="utf-8")
        return is_open(trial, failed)

    monkeypatch.setattr(Trial, "is_open", edited)
    planted(folder, 2)
    assert "taken over" not in planted(folder, 2)[1]


@pytest.mark.slow
def test_changed_files_come_first_and_less_than_the_floor_ends_in_4(folder: Path, run: Run) -> None:
    assert planted(folder, 0, floor=1)[0] == 4  # what is not known reaches no floor
    assert run("eval").returncode == 0
    file = folder / "instructions" / "scenarios" / "valid-warranty.md"
    file.write_text(file.read_text(encoding="utf-8").replace("burnt out", "burned out"), encoding="utf-8")
    printed = planted(folder, 6)[1]
    assert "Changed since a green run, and first: scenarios/valid-warranty.md\n" in printed
    assert set(re.findall(r"^  (\S+\.md):\d+: ", printed, re.MULTILINE)) == {str(file)}
    assert [planted(folder, 0, floor=floor)[0] for floor in (1, 100)] == [0, 4]


@pytest.mark.slow
def test_ctrl_c_leaves_what_there_is_and_no_copy(folder: Path) -> None:
    before, ticks = contents(folder), iter((0.0, 0.0, 0.0))

    def monotonic() -> float:
        if (tick := next(ticks, None)) is None:
            raise KeyboardInterrupt
        return tick

    code, printed = planted(folder, 6, monotonic)
    assert code == 130
    assert printed.startswith("of 2 faults: ")
    assert contents(folder) == before


@pytest.mark.slow
@pytest.mark.parametrize(("operator", "file"), [(PROMISE, "missing-info"), (PHRASE, "hand-over")])
def test_the_scenario_of_an_unnoticed_fault_notices_it(folder: Path, operator: str, file: str) -> None:
    config, options = load_config(folder / "config.yaml"), options_in(folder)
    trial = Trial(config, options, folder / "scratch" / "first")
    of_kind = [
        each for each in trial.faults(1, ()) if each.operator == operator and each.file == f"scenarios/{file}.md"
    ]
    for fault in of_kind[:8]:
        outcome = trial.try_fault(fault)
        example = trial.find_example(fault, outcome.shown_by) if outcome.noticed == "unnoticed" else None
        if example is not None and example.scenario is not None:
            break
    else:
        pytest.fail("no fault is unnoticed")
    assert (example.added != "") == (operator == PHRASE)
    name = re.search(r"scenario_id: (\w+)", example.scenario)
    (options.directory / f"{name[1]}.yaml").write_text(example.scenario, encoding="utf-8")
    again = Trial(config, options, folder / "scratch" / "again")
    assert all(result.passed for result in again.results)
    assert again.try_fault(fault).failed == [name[1]]


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (("--seed", "2"), "Add --mutate"),
        (("--floor", "90"), "Add --mutate"),
        (("--mutate", "--watch"), "Leave --watch"),
        (("--mutate", "--repeat", "2"), "Remove --repeat"),
        (("--mutate", "--json", "x.json"), "Remove --json"),
        (("--mutate", "--llm", "replay"), "Remove --llm"),
    ],
)
def test_what_makes_no_sense_with_it_or_without_it_is_refused(
    run: Run, arguments: tuple[str, ...], problem: str
) -> None:
    done = run("eval", *arguments)
    assert done.returncode == 2
    assert problem in done.stderr
