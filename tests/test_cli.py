"""What holds for every command, as its users meet it: usage, help, the two ways to start it, standard streams."""

import re
import sys
from pathlib import Path

import pytest
from command_line import MODULE, NEVER_OFFLINE, Run, WriteSuite, modules_of

from guarantee_email_agent import cli

SCRIPT = [str(Path(sys.executable).with_name("guarantee-email-agent"))]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["evaluate"], "evaluate"),
        (["eval", "--no-such-option"], "--no-such-option"),
        (["eval", "extra"], "extra"),
        (["eval", "--jobs", "0"], "'0' is not a whole number from 1"),
        (["eval", "--jobs", "many"], "'many' is not a whole number"),
        (["eval", "--repeat", "-1"], "'-1' is not a whole number"),
        (["eval", "--threshold", "0.99"], "'0.99' is not a percentage above 1"),
        (["eval", "--threshold", "101"], "'101' is not a percentage"),
        (["eval", "--threshold", "nan"], "'nan' is not a percentage"),
        (["eval", "--thresh", "99"], "eval: unrecognized arguments: --thresh 99 – did you mean '--threshold'? See"),
        (["eval", "--llm", "gpt"], "gpt"),
        (["eval", "--eval-dir"], "--eval-dir"),
        (["anwser"], "argument COMMAND: unknown choice 'anwser' – did you mean 'answer'? See"),
        (["run", "--mode", "draft"], "argument --mode: unknown choice 'draft' – did you mean 'drafts'? See"),
        (["check", "-x"], "unrecognized arguments: -x"),
        (["grade", "tasks", "--answer", "1", "--\x1b[31m\n"], r"--\x1b[31m\n"),
    ],
)
def test_bad_usage_is_one_line_and_ends_in_2(arguments: list[str], says: str, run: Run) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert len(done.stderr.splitlines()) == 1
    assert says in done.stderr
    assert "--help" in done.stderr


@pytest.mark.parametrize(
    "arguments",
    [
        ["eval", "--max-cost", "1"],
        ["eval", "--max-cost", "1", "--llm", "replay", "--agent", "command:true"],
        ["grade", "tasks", "--answer", "1", "--max-cost", "1"],
    ],
)
def test_a_limit_of_cost_where_nothing_is_paid_for_is_refused(arguments: list[str], run: Run) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert re.fullmatch(r".*: --max-cost limits what an API takes.* Add --llm live or record, .*\n", done.stderr)


def test_without_a_command_help_is_printed_and_it_ends_in_2(run: Run) -> None:
    done = run()
    assert (done.returncode, done.stdout, done.stderr) == (2, "", run("--help").stdout)


@pytest.mark.parametrize("arguments", [["--help"], ["eval", "--help"]])
def test_help_lists_the_exit_codes(arguments: list[str], run: Run) -> None:
    done = run(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    for code in ("0", "1", "2", "3", "4", "130"):
        assert re.search(rf"^  {code} +\w", done.stdout, re.MULTILINE)


@pytest.mark.parametrize("command", ["status", "log", "release", "retry", "hand-over", "check"])
def test_help_says_what_an_output_that_cannot_be_written_ends_with(command: str, run: Run) -> None:
    (of_failure,) = re.findall(r"^  1 (.*?)^  2 ", run(command, "--help").stdout, re.MULTILINE | re.DOTALL)
    assert "output could not be written" in " ".join(of_failure.split())


def test_one_process_may_run_several_commands(capsys: pytest.CaptureFixture[str]) -> None:
    assert [cli.run([command, "--help"]) for command in ("run", "stale")] == [0, 0]


def test_the_version_is_told(run: Run) -> None:
    assert re.fullmatch(r"guarantee-email-agent \d+\.\d+\.\d+\n", run("--version").stdout)


def test_module_and_console_script_are_the_same_program(run: Run, suite: WriteSuite) -> None:
    folder = suite(1, failed=1)
    outcomes = [run("eval", "--eval-dir", folder, program=program) for program in (MODULE, SCRIPT)]
    module, script = [(done.returncode, without_time(done.stdout), done.stderr) for done in outcomes]
    assert module == script


@pytest.mark.parametrize(("failing", "code"), [(0, 0), (9, 4)])
def test_a_reader_that_leaves_changes_nothing(failing: int, code: int, run: Run, suite: WriteSuite) -> None:
    command = f"{sys.executable} -m guarantee_email_agent eval --eval-dir {suite(300, failing)} | head -1; "
    done = run(program=["bash", "-c", command + "exit ${PIPESTATUS[0]}"])
    told = [line for line in done.stderr.splitlines() if " run, " not in line]  # of its progress, where it is slow
    assert (done.returncode, len(told)) == (code, 1), done.stderr
    assert told[0].startswith("Using the built-in")
    assert done.stdout.startswith("Running evaluation suite...")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no /dev/full")
@pytest.mark.parametrize("count", [1, 300])
def test_a_full_disk_is_one_line_and_ends_in_1(count: int, run: Run, suite: WriteSuite) -> None:
    with open("/dev/full", "w", encoding="utf-8") as full:
        done = run("eval", "--eval-dir", suite(count), stdout=full)
    assert done.returncode == 1
    assert re.fullmatch(r"guarantee-email-agent: cannot write to stdout .*\n", done.stderr)


@pytest.mark.parametrize("closed", [0, 1, 2])
def test_a_closed_standard_stream_ends_in_no_traceback(closed: int, run: Run, suite: WriteSuite) -> None:
    operator = "<" if closed == 0 else ">"
    command = f"{sys.executable} -m guarantee_email_agent eval --eval-dir {suite(2)} {closed}{operator}&-"
    done = run(program=["bash", "-c", command])
    assert done.returncode == 0
    assert "Traceback" not in done.stdout + done.stderr


def test_help_loads_neither_half_of_the_program(run: Run) -> None:
    loaded = modules_of(run, "--help")
    assert loaded & NEVER_OFFLINE == set()
    assert not {
        name for name in loaded if name.startswith(("guarantee_email_agent.eval", "guarantee_email_agent.email"))
    }


def without_time(text: str) -> str:
    return re.sub(r"Duration: .*", "", text)
