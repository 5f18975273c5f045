"""Which scenarios a changed file affects, and in which order they run."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest

from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, InvalidScenario
from guarantee_email_agent.eval.watch.watched_files import WatchedFile, affected_files, likely_first

FILES = ["s/a_1.yaml", "s/a_2.yaml", "s/a_3.yaml", "s/a_4.yaml"]


def changed(kind: str, name: str) -> dict[str, WatchedFile]:
    return {f"s/{name}": WatchedFile(kind, name, ("", 0, 0, 0, 0))}


@pytest.fixture
def results(scenario: Callable[..., EvalTestCase]) -> dict[str, EvalResult]:
    """One with a judge, one with a raw mail, one that names a mail which is missing, and a plain one."""
    judged, plain, with_mail = scenario(test="check.py"), scenario(), scenario()
    email = replace(with_mail.input.email, raw_file="mail.eml")
    with_mail = replace(with_mail, input=replace(with_mail.input, email=email))
    invalid = InvalidScenario("a_3.yaml", FILES[2], "Mail not found: gone.eml is not beside this file", "code")
    return {
        FILES[0]: EvalResult(judged, passed=True, actual_output={"scenario_used": "valid-warranty"}),
        FILES[1]: EvalResult(with_mail, passed=True, actual_output={"scenario_used": "missing-info"}),
        FILES[2]: EvalResult.of_invalid(invalid),
        FILES[3]: EvalResult(plain, passed=True, reading={"language": "de"}),
    }


@pytest.mark.parametrize(
    ("files", "inputs", "affected"),
    [
        (changed("scenario", "a_4.yaml"), [], {"s/a_4.yaml"}),
        (changed("mail", "mail.eml"), [], {"s/a_2.yaml"}),
        (changed("mail", "gone.eml"), [], {"s/a_3.yaml"}),
        (changed("mail", "of_nobody.eml"), [], set()),
        (changed("judge", "helper.py"), [("changed", "judge", "helper.py")], {"s/a_1.yaml"}),
        (changed("judge", "check.py"), [], set()),
        (changed("recording", "a_2"), [], {"s/a_2.yaml"}),
        (changed("instruction", "main.md"), [("changed", "instruction", "main.md")], set(FILES)),
        (changed("configuration", "config.yaml"), [("changed", "setting", "agent")], set(FILES)),
        (changed("configuration", "config.yaml"), [], set()),
    ],
)
def test_what_depends_on_a_file_is_affected_by_it(
    results: dict[str, EvalResult],
    files: dict[str, WatchedFile],
    inputs: list[tuple[str, str, str]],
    affected: set[str],
) -> None:
    assert affected_files(files, inputs, FILES, results) == affected


def test_a_scenario_without_a_result_always_runs(results: dict[str, EvalResult]) -> None:
    del results[FILES[1]]
    assert affected_files({}, [], FILES, results) == {FILES[1]}


@pytest.mark.parametrize(
    ("inputs", "order"),
    [
        ([], [2, 0, 1, 3]),
        ([("changed", "instruction", "scenarios/missing-info.md")], [2, 1, 0, 3]),
        ([("changed", "instruction", "scenarios/missing-info.de.md")], [2, 1, 0, 3]),
        ([("changed", "lexicon", "de.md")], [2, 3, 0, 1]),
    ],
)
def test_what_failed_and_what_used_the_file_runs_first(
    results: dict[str, EvalResult], inputs: list[tuple[str, str, str]], order: list[int]
) -> None:
    assert likely_first(set(FILES), FILES, {}, inputs, results) == [FILES[index] for index in order]
    assert likely_first({FILES[3]}, FILES, {}, inputs, results) == [FILES[3]]
