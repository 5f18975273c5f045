"""`init` as its users meet it, and what other commands say of files that nobody has copied."""

from pathlib import Path

import pytest
from command_line import Run

pytestmark = pytest.mark.slow


def test_a_new_folder_ends_in_0_and_is_used_by_eval(run: Run, tmp_path: Path) -> None:
    assert run("init").returncode == 0
    done = run("eval", "--only", "missing_info_*")
    assert (done.returncode, done.stderr) == (0, "")
    (tmp_path / "instructions" / "scenarios" / "missing-info.md").write_text("no instruction")
    assert run("eval", "--only", "missing_info_*").returncode == 2


def test_an_edited_file_is_named_and_ends_in_1(run: Run, tmp_path: Path) -> None:
    run("init", "mine")
    (tmp_path / "mine" / "config.yaml").write_text("")
    done = run("init", "mine")
    assert done.returncode == 1
    assert "kept, differs from this version's: mine/config.yaml\n" in done.stdout


def test_a_translation_of_an_edited_reply_is_left_out_and_named(run: Run, tmp_path: Path) -> None:
    scenarios = tmp_path / "mine" / "instructions" / "scenarios"
    scenarios.mkdir(parents=True)
    (scenarios / "missing-info.md").write_text("our own words")
    done = run("init", "mine")
    assert done.returncode == 1
    german = "left out, translates a file of your own: mine/instructions/scenarios/missing-info.de.md\n"
    assert german in done.stdout
    assert not (scenarios / "missing-info.de.md").exists()


def test_a_name_that_a_shell_left_empty_is_no_folder(run: Run, tmp_path: Path) -> None:
    done = run("init", "")
    assert (done.returncode, list(tmp_path.iterdir())) == (2, [])
    assert "'' names no file and no folder. Name one, or leave it out" in done.stderr


def test_a_file_in_the_folders_place_is_one_line_and_ends_in_2(run: Run, tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    done = run("init", "file")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr == "guarantee-email-agent: file is no folder. Name another one\n"


def test_a_language_to_be_translated_is_listed_by_init_and_by_check(run: Run, tmp_path: Path) -> None:
    done = run("init", "mine", "--language", "nl")
    assert (done.returncode, done.stderr) == (0, "")
    assert "behind each [translate]: mine/instructions/scenarios/valid-warranty.nl.md (21)\n" in done.stdout
    assert "not in the lexicon of 'nl': <weak-serial-labels>, " in done.stdout
    assert "expects that a person answers 'nl': hand_over_1102, hand_over_1104\n" in done.stdout
    assert done.stdout.endswith("As long as a [translate] is left, no mail is answered in 'nl'.\n")
    shown = run("check", "--config", "mine/config.yaml").stdout
    assert "nobody is answered in 'nl': to be translated are scenarios/graceful-degradation.nl.md (10), " in shown
    assert run("init", "mine", "--language", "nl").stdout.startswith("0 new files to translate into 'nl'\n")


@pytest.mark.parametrize("command", [("eval", "--only", "missing_info_*"), ("check",)])
def test_a_file_of_instructions_that_nobody_reads_is_a_warning(
    command: tuple[str, ...], run: Run, tmp_path: Path
) -> None:
    run("init")
    (tmp_path / "instructions" / "scenarios" / "spare-parts.md.txt").touch()
    done = run(*command)
    warning = "spare-parts.md.txt is not read: its name does not end in .md. Rename it, or move it away"
    assert (done.stdout if command == ("check",) else done.stderr).count(warning) == 1
    assert "✗ Instructions" not in done.stdout
    assert command == ("check",) or done.returncode == 0


def test_run_says_which_files_are_the_built_in_ones(run: Run) -> None:
    done = run("run", "--once")
    assert "Using the built-in config, instructions and scenarios; 'guarantee-email-agent init'" in (
        done.stdout + done.stderr
    )


@pytest.mark.parametrize(
    ("language", "says"),
    [
        ("xx1", "'xx1' is no code of a language. Write one such as nl"),
        ("en", "'en' is the default language"),
        ("pt-br", "be in. Write pt for pt-br, no for Norwegian, iw for Hebrew"),
    ],
)
def test_what_cannot_be_added_is_refused_before_anything_is_written(
    language: str, says: str, tmp_path: Path, run: Run
) -> None:
    done = run("init", "--language", language, "desk")
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.endswith(f"{says}\n")
    assert not (tmp_path / "desk").exists()
