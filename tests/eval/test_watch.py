"""What `eval --watch` runs and says after each save."""

import io
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import replace
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from command_line import MODULE, TIMEOUT_S, WriteSuite, environment
from scenario_folder import ROOT, ScenarioFolder, broken, failing

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config, InstructionSettings
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.models import EvalResult, EvalTestCase, InvalidScenario
from guarantee_email_agent.eval.watch import (
    LOOK_S,
    SETTLE_S,
    Files,
    WatchedFile,
    affected_files,
    changed_files,
    find_files,
    print_difference,
    refuse_unwatchable,
    wait_for_change,
    watch_suite,
)
from guarantee_email_agent.runlog.records import KeptRun
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.terminal import Terminal

Save = Callable[[], object]
INSTRUCTIONS = "instructions: {main: instructions/main.md, scenarios_dir: instructions/scenarios}\n"
MISSING_INFO = "instructions/scenarios/missing-info.md"


class WatchedProject(ScenarioFolder):
    """A project of its own. Each of its saves is made once the one before was dealt with; then comes Ctrl-C."""

    def __init__(self, folder: Path) -> None:
        self.root = folder
        shutil.copytree(ROOT / "instructions", folder / "instructions")
        (folder / "config.yaml").write_text(f"{INSTRUCTIONS}eval: {{test_suite_path: scenarios}}\n")
        super().__init__(folder / "scenarios", load_config(folder / "config.yaml", environ={}))

    def edit(self, path: str, old: str, new: str) -> None:
        file = self.root / path
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")

    def watch(self, *saves: Save, is_over: Callable[[], bool] = bool, **options: Any) -> list[str]:
        """What was printed for each save; the first of it is the run as a whole."""
        todo = list(saves)
        stream = io.StringIO()
        ends: list[int] = []

        def pause(seconds: float) -> None:
            if seconds > SETTLE_S:  # nothing to do
                ends.append(stream.tell())
                if not todo:
                    raise KeyboardInterrupt
                todo.pop(0)()

        def load() -> tuple[EvalOptions, Any]:
            config = load_config(self.root / "config.yaml", environ={})
            values = {"directory": config.eval.test_suite_path, "threshold": 99.0, **options}
            return EvalOptions(**values), config

        self.code = watch_suite(load, stream, is_over, pause)
        text = stream.getvalue()
        return [text[start:end].strip() for start, end in zip([0, *ends], ends, strict=False)]


@pytest.fixture
def project(tmp_path: Path) -> WatchedProject:
    project = WatchedProject(tmp_path)
    project.write(1)
    project.write(2)
    return project


def last_line(text: str) -> str:
    """Without the time that it took."""
    return text.splitlines()[-1].rpartition(" in ")[0]


def test_first_the_whole_suite_runs_and_ctrl_c_ends_in_130(project: WatchedProject) -> None:
    (first,) = project.watch()
    assert "Pass rate: 2/2 (100%)" in first
    assert first.splitlines()[-1].startswith("Watching ")
    assert project.code == 130


def test_a_saved_scenario_runs_alone_and_says_why_it_fails_now(project: WatchedProject) -> None:
    _, block = project.watch(lambda: project.write(1, failing))
    assert block.startswith("Changed: ")
    assert "Newly failing:\n✗ valid_warranty_001: " in block
    assert "response_body_contains: missing phrase 'no such phrase'" in block
    assert last_line(block) == ("✗ 1 newly failing. Pass rate: 1/2 (50.0%), below the threshold of 99%; 1 scenario ran")


def test_a_save_that_changes_nothing_is_one_line(project: WatchedProject) -> None:
    _, block = project.watch(
        lambda: project.edit("scenarios/valid_warranty_002.yaml", "scenario_id", "# noted\nscenario_id")
    )
    assert len(block.splitlines()) == 2
    assert last_line(block) == "✓ No difference. Pass rate: 2/2 (100%); 1 scenario ran"


def test_an_instruction_counts_for_every_scenario_and_shows_the_replies_word_by_word(project: WatchedProject) -> None:
    project.take("missing_info_001")

    def reword() -> None:
        project.edit(MISSING_INFO, "next to the bar code", "beside the bar code")

    _, block = project.watch(reword)
    assert "Changed replies: 1\n    missing_info_001:" in block
    assert "original box, [-next to-] {+beside+} the bar code" in block
    assert block.splitlines()[-1].partition(" in ")[0].endswith("; 3 scenarios ran")


def test_a_broken_instruction_is_told_and_once_mended_everything_runs(project: WatchedProject) -> None:
    _, wrong, mended = project.watch(
        lambda: project.edit(MISSING_INFO, "trigger:", "triger:"),
        lambda: project.edit(MISSING_INFO, "triger:", "trigger:"),
    )
    assert "unknown key 'triger' – did you mean 'trigger'?" in wrong
    assert wrong.endswith("Waiting for the next save")
    assert last_line(mended) == "✓ No difference. Pass rate: 2/2 (100%); 2 scenarios ran"


def test_what_was_saved_beside_a_broken_instruction_is_not_forgotten(project: WatchedProject) -> None:
    def both() -> None:
        project.edit(MISSING_INFO, "trigger:", "triger:")
        project.write(1, failing)

    _, _, mended = project.watch(both, lambda: project.edit(MISSING_INFO, "triger:", "trigger:"))
    assert last_line(mended).startswith("✗ 1 newly failing. Pass rate: 1/2")


def test_an_invalid_file_is_a_failure_until_it_is_mended(project: WatchedProject) -> None:
    other = project.folder / "other"
    edits = (lambda: project.write(1, broken), lambda: project.write(1))
    twins = (lambda: shutil.copytree(project.folder, other), lambda: shutil.rmtree(other))
    _, wrong, mended, twice, once = project.watch(*edits, *twins)
    assert (
        "✗ valid_warranty_001: invalid scenario file - FAILED\n    Invalid eval file: valid_warranty_001.yaml" in wrong
    )
    assert last_line(mended) == "✓ 1 newly passing. Pass rate: 2/2 (100%); 1 scenario ran"
    assert "    Invalid eval file: valid_warranty_001.yaml - Duplicate scenario_id" in twice
    assert last_line(once) == "✓ 2 removed, 2 newly passing. Pass rate: 2/2 (100%); 2 scenarios ran"


def test_new_deleted_and_renamed_scenarios_change_the_count(project: WatchedProject) -> None:
    path = project.folder / "valid_warranty_002.yaml"
    _, added, removed, renamed = project.watch(
        lambda: project.write(3), path.unlink, lambda: (project.folder / "valid_warranty_003.yaml").rename(path)
    )
    assert "New, and passing: 1\n    valid_warranty_003" in added
    assert last_line(added) == "✓ 1 new. Pass rate: 3/3 (100%); 1 scenario ran"
    assert "Removed: 1\n    valid_warranty_002" in removed
    assert last_line(removed) == "✓ 1 removed. Pass rate: 2/2 (100%); 0 scenarios ran"
    assert "scenario_id 'valid_warranty_003' is not the file's name" in renamed
    assert last_line(renamed).startswith("✗ 1 removed, 1 new. Pass rate: 1/2")


def test_a_folder_that_is_gone_is_told_and_runs_whole_once_it_is_back(project: WatchedProject) -> None:
    away = project.root / "away"
    _, gone, back = project.watch(lambda: project.folder.rename(away), lambda: away.rename(project.folder))
    assert "the scenario folder does not exist" in gone
    assert last_line(back) == "✓ No difference. Pass rate: 2/2 (100%); 2 scenarios ran"


def test_an_edited_configuration_counts_from_then_on(project: WatchedProject) -> None:
    (project.root / "others").mkdir()
    shutil.copy(project.folder / "valid_warranty_001.yaml", project.root / "others")

    def set_to(text: str) -> Save:
        return lambda: (project.root / "config.yaml").write_text(text)

    _, wrong, other = project.watch(
        set_to("evall: {}\n"), set_to(f"{INSTRUCTIONS}eval: {{test_suite_path: others, pass_threshold: 50}}\n")
    )
    assert "unknown key 'evall' – did you mean 'eval'?" in wrong
    assert "Removed: 2" in other
    assert last_line(other) == "✓ 2 removed, 1 new. Pass rate: 1/1 (100%); 1 scenario ran"


def test_what_is_saved_while_the_first_run_goes_on_runs_again(
    project: WatchedProject, monkeypatch: pytest.MonkeyPatch
) -> None:
    from guarantee_email_agent.eval import watch

    whole = watch.evaluate

    def evaluate_and_save(*arguments: Any) -> int:
        code = whole(*arguments)
        project.write(1, failing)
        return code

    monkeypatch.setattr(watch, "evaluate", evaluate_and_save)
    (text,) = project.watch()
    assert "Newly failing:\n✗ valid_warranty_001" in text


def test_what_failed_last_time_is_watched_alone(project: WatchedProject) -> None:
    kept = KeptRun(project.root / "runs.db", None, lambda: "2026-01-18T10:00:01Z")
    project.write(1, failing)
    project.watch(kept=kept, run_id="run-1", started="2026-01-18T10:00:00Z")
    _, mended, other = project.watch(
        lambda: project.write(1),
        lambda: project.write(2, failing),
        kept=kept,
        run_id="run-2",
        started="2026-01-18T10:00:02Z",
        last_failed=True,
    )
    assert last_line(mended) == "✓ 1 newly passing. Pass rate: 1/1 (100%); 1 scenario ran"
    assert last_line(other).endswith("Pass rate: 1/1 (100%); 0 scenarios ran")


@pytest.mark.parametrize("options", [{"jobs": 2}, {"repeat": 2}, {"records_dir": "records"}])
def test_other_options_hold_for_what_runs_again(project: WatchedProject, options: dict[str, Any]) -> None:
    if "records_dir" in options:
        options = {"records_dir": project.root / "records"}
    project.take("missing_info_001")
    _, block = project.watch(
        lambda: project.edit(MISSING_INFO, "next to the bar code", "beside the bar code"), **options
    )
    assert last_line(block) == "✓ 1 changed reply. Pass rate: 3/3 (100%); 3 scenarios ran"


@pytest.mark.parametrize(
    ("option", "value", "problem"),
    [
        ("llm", "live", "--llm live would be paid for at every save"),
        ("llm", "record", "--llm record would be paid for at every save"),
        ("fail_fast", True, "--fail-fast ends a run at its first failure"),
        ("no_regressions", True, "--no-regressions decides how a run ends"),
        ("caution_curve", True, "--caution-curve is of one whole run"),
        ("require_proof", True, "--require-proof decides how a run ends"),
        ("executor", "ray", "--executor ray is for long runs"),
        ("json_file", Path("report.json"), "--watch prints differences, and writes no report"),
    ],
)
def test_what_makes_no_sense_is_refused(option: str, value: Any, problem: str) -> None:
    options = EvalOptions(directory=Path("scenarios"), threshold=99.0)
    refuse_unwatchable(options)
    with pytest.raises(ConfigurationError, match=problem) as refused:
        refuse_unwatchable(replace(options, **{option: value}))
    assert (refused.value.exit_code, refused.value.message.count("\n")) == (2, 0)


Outcome = Callable[..., EvalResult]


def difference(pairs: list[tuple[EvalResult, EvalResult]], threshold: float = 99.0) -> str:
    stream = io.StringIO()
    before, after = ({str(number): pair[side] for number, pair in enumerate(pairs)} for side in (0, 1))
    print_difference(before, after, threshold, 0.5, Terminal(stream, color=False, ascii_only=False))
    return stream.getvalue()


def test_of_many_failures_the_first_are_explained_and_all_are_counted(outcome: Outcome) -> None:
    failed = [outcome("email_sent: no mail was sent", scenario_id=f"a_{number}") for number in range(30)]
    text = difference([(outcome(), result) for result in failed])
    assert text.count("Newly failing:") == 1
    assert text.count(" - FAILED") == 20
    assert "… and 10 more that fail\n" in text
    assert "Same cause in 30 scenarios: email_sent: no mail was sent\n" in text
    assert "✗ 30 newly failing. Pass rate: 0/30 (0.0%), below the threshold of 99%; 30 scenarios ran in 0.50s\n" in text


def test_a_failure_makes_the_line_bad_even_above_the_threshold(outcome: Outcome) -> None:
    text = difference([(outcome(), outcome("email_sent: no mail was sent")), (same := outcome(), same)], 50.0)
    assert text.endswith("✗ 1 newly failing. Pass rate: 1/2 (50.0%); 1 scenario ran in 0.50s\n")
    must = outcome("email_sent: no mail was sent", must=True)
    text = difference([(must, must), (same, same)], 50.0)
    assert text.endswith(
        "✗ No difference. Pass rate: 1/2 (50.0%), 1 scenario that must pass failed; 0 scenarios ran in 0.50s\n"
    )


def test_a_reply_of_an_invalid_file_did_not_change(outcome: Outcome, invalid: EvalResult) -> None:
    text = difference([(invalid, replace(outcome(), actual_output={"response_body": "Hello"}))])
    assert "Changed replies" not in text
    assert "Newly passing: 1" in text


def test_another_reason_to_fail_is_told(outcome: Outcome) -> None:
    text = difference([(outcome("email_sent: no mail was sent"), outcome("crash: it raised KeyError"))])
    assert "Still failing, for another reason:\n" in text


class Watching:
    """A process, and what it prints."""

    def __init__(self, folder: Path, *arguments: str | Path) -> None:
        self.process = subprocess.Popen(
            [*MODULE, "eval", "--watch", *map(str, arguments)],
            cwd=folder,
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
        )

    def read_until(self, text: str) -> str:
        """The lines up to the one that holds `text`."""
        lines = []
        for line in self.process.stdout:
            lines.append(line)
            if text in line:
                return "".join(lines)
        raise AssertionError("".join(lines))


@pytest.fixture
def watching(tmp_path: Path, suite: WriteSuite) -> Iterator[Callable[..., Watching]]:
    """Starts it on a suite of two scenarios, and reads until it watches."""
    folder = suite(2)
    (tmp_path / "config.yaml").write_text("{}\n")
    with ExitStack() as processes:

        def start(*arguments: str) -> Watching:
            watching = Watching(tmp_path, "--eval-dir", folder, *arguments)
            processes.enter_context(watching.process)
            processes.callback(watching.process.kill)
            watching.read_until("Watching")
            return watching

        yield start


@pytest.mark.slow
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_save_is_told_and_a_signal_ends_it_in_130(
    watching: Callable[..., Watching], tmp_path: Path, number: int
) -> None:
    started = watching()
    path = tmp_path / "scenarios" / "valid_warranty_00001.yaml"
    path.write_text(failing(path.read_text()))
    block = started.read_until("ran in")
    assert "Changed: scenarios/valid_warranty_00001.yaml\nNewly failing:\n" in block
    started.process.send_signal(number)
    rest, _ = started.process.communicate(timeout=TIMEOUT_S)
    assert "Traceback" not in rest
    assert started.process.returncode == 130
    with RunStore(tmp_path / "runs.db") as store:
        (run,) = store.runs()
    assert (run.outcome, run.total) == ("passed", 2)


@pytest.mark.slow
def test_it_ends_once_nobody_reads_any_more(watching: Callable[..., Watching]) -> None:
    started = watching()
    started.process.stdout.close()
    assert started.process.wait(TIMEOUT_S) == 130


@pytest.mark.slow
def test_an_agent_of_ones_own_runs_again_when_its_file_is_saved(
    watching: Callable[..., Watching], tmp_path: Path
) -> None:
    agent = tmp_path / "my_agent.py"
    agent.write_text("print('does nothing')\n")
    started = watching("--agent", f"command:{sys.executable} my_agent.py")
    agent.write_text("raise SystemExit('broken')\n")
    block = started.read_until("ran in")
    assert "Changed: my_agent.py\n" in block
    assert "Still failing, for another reason:" in block
    assert "2 scenarios ran" in block
    started.process.send_signal(signal.SIGINT)
    assert started.process.wait(TIMEOUT_S) == 130


@pytest.fixture
def find(tmp_path: Path) -> Callable[[], Files]:
    """What stands in a small project."""
    for name in ("instructions/scenarios", "instructions/lexicon", "scenarios", "recordings/valid_warranty_001"):
        (tmp_path / name).mkdir(parents=True)
    for name in (
        "config.yaml",
        "instructions/main.md",
        "instructions/scenarios/valid-warranty.md",
        "instructions/lexicon/en.md",
        "scenarios/valid_warranty_001.yaml",
        "scenarios/valid_warranty_001.eml",
        "scenarios/check.py",
        "scenarios/notes.txt",
        "scenarios/.valid_warranty_001.yaml.swp",
        "scenarios/_template.yaml",
        "recordings/valid_warranty_001/run1.yaml",
    ):
        (tmp_path / name).write_text("before")
    instructions = InstructionSettings(tmp_path / "instructions" / "main.md", tmp_path / "instructions" / "scenarios")
    config = replace(Config(), source=tmp_path / "config.yaml", instructions=instructions)
    options = EvalOptions(directory=tmp_path / "scenarios", threshold=99.0, llm="replay")
    return lambda: find_files(config, options)


def test_what_verdicts_depend_on_is_watched_and_nothing_else(find: Callable[[], Files]) -> None:
    assert {(file.kind, file.name) for file in find().values()} == {
        ("configuration", "config.yaml"),
        ("instruction", "main.md"),
        ("instruction", "scenarios/valid-warranty.md"),
        ("lexicon", "en.md"),
        ("scenario", "valid_warranty_001.yaml"),
        ("mail", "valid_warranty_001.eml"),
        ("judge", "check.py"),
        ("recording", "valid_warranty_001"),
    }


def test_a_replaced_a_removed_and_a_new_file_are_changes(find: Callable[[], Files], tmp_path: Path) -> None:
    before = find()
    scenario = tmp_path / "scenarios" / "valid_warranty_001.yaml"
    (tmp_path / "scenarios" / "new.tmp").write_text("before")
    os.replace(tmp_path / "scenarios" / "new.tmp", scenario)  # as editors save: the same text in another file
    (tmp_path / "scenarios" / "check.py").unlink()
    (tmp_path / "instructions" / "lexicon" / "de.md").write_text("new")
    changed = changed_files(before, find())
    assert sorted(file.name for file in changed.values()) == ["check.py", "de.md", "valid_warranty_001.yaml"]


def test_rights_and_the_file_that_a_link_leads_to_are_changes(find: Callable[[], Files], tmp_path: Path) -> None:
    scenario = tmp_path / "scenarios" / "valid_warranty_001.yaml"
    elsewhere = tmp_path / "elsewhere.yaml"
    scenario.rename(elsewhere)
    scenario.symlink_to(elsewhere)
    before = find()
    elsewhere.chmod(0)
    now = find()
    assert list(changed_files(before, now)) == [str(scenario)]
    elsewhere.chmod(0o600)
    elsewhere.write_text("after, through the link")
    assert list(changed_files(now, find())) == [str(scenario)]


def test_a_configuration_that_comes_later_is_a_change(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    options = EvalOptions(directory=tmp_path / "scenarios", threshold=99.0)
    before = find_files(Config(), options)
    (tmp_path / "config.yaml").write_text("{}")
    assert list(changed_files(before, find_files(Config(), options))) == [str(tmp_path / "config.yaml")]


@pytest.mark.parametrize(
    ("versions", "step_s", "found", "pauses"),
    [
        ([1, 1, 2, 3, 4, 4], 0.0, 4, [LOOK_S, LOOK_S, SETTLE_S, SETTLE_S]),
        ([2, *range(2, 99)], 0.3, 5, [SETTLE_S] * 3),  # one that is written all the time does not hold it up
        ([2, 1, 1], 0.0, None, [SETTLE_S, LOOK_S]),  # undone at once
        ([1], 0.2, None, [2.0]),  # the longer a look takes, the longer it waits
    ],
)
def test_a_change_counts_once_nothing_changes_any_more(
    versions: list[int], step_s: float, found: int | None, pauses: list[float]
) -> None:
    seconds, paused, left = count(), list[float](), iter(versions)

    def state(version: int) -> Files:
        return {"a.yaml": WatchedFile("scenario", "a.yaml", ("a.yaml", version, 0, 0, 0))}

    def is_over() -> bool:
        return found is None and bool(paused)

    now = wait_for_change(state(1), lambda: state(next(left)), is_over, paused.append, lambda: next(seconds) * step_s)
    assert now == (None if found is None else state(found))
    assert paused == pytest.approx(pauses)


FILES = ["s/a_1.yaml", "s/a_2.yaml", "s/a_3.yaml", "s/a_4.yaml"]


@pytest.mark.parametrize(
    ("kind", "name", "affected"),
    [
        ("scenario", "a_4.yaml", {4}),
        ("mail", "mail.eml", {2}),
        ("mail", "gone.eml", {3}),
        ("mail", "of_nobody.eml", set()),
        ("recording", "a_2", {2}),
        ("judge", "check.py", {1, 2, 3, 4}),
        ("server", "orders.yaml", {1, 2, 3, 4}),
        ("configuration", "config.yaml", {1, 2, 3, 4}),
    ],
)
def test_what_depends_on_a_file_is_affected_by_it(
    scenario: Callable[..., EvalTestCase], kind: str, name: str, affected: set[int]
) -> None:
    case = scenario()
    with_mail = replace(case, input=replace(case.input, email=replace(case.input.email, raw_file="mail.eml")))
    invalid = InvalidScenario("a_3.yaml", FILES[2], "Mail not found: gone.eml is not beside this file", "code")
    results = dict(
        zip(FILES, [EvalResult(each, passed=True) for each in (case, with_mail, invalid, case)], strict=True)
    )
    changed = {f"s/{name}": WatchedFile(kind, name, ("", 0, 0, 0, 0))}
    assert affected_files(changed, FILES, results) == [f"s/a_{number}.yaml" for number in sorted(affected)]
    assert affected_files({}, FILES, {FILES[0]: results[FILES[0]]}) == FILES[1:]
