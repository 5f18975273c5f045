"""Shell sessions and programs, through the client that judges use."""

import os
import shutil

import pytest
from running_sandbox import Box, refused

from guarantee_email_agent.sandbox.inside.running_command import KEPT_BYTES, CapturedOutput, shorten


def test_a_command_gives_output_and_exit_code(box: Box) -> None:
    result = box.shell("echo out; echo error >&2; exit 3")
    assert (result.status, result.output, result.exit_code) == ("completed", "out\nerror", 3)
    assert result.console[0].command == "echo out; echo error >&2; exit 3"


def test_a_session_keeps_folder_variables_and_functions(box: Box) -> None:
    first = box.shell("cd /tmp; plain=1; export shown='two words'; greet() { echo hello $1; }; list=(a b)")
    result = box.shell('pwd; echo $plain "$shown" ${list[1]}; greet you; env | grep ^shown', id=first.session_id)
    assert result.output == "/tmp\n1 two words b\nhello you\nshown=two words"


def test_a_session_knows_nothing_of_another(box: Box) -> None:
    box.shell("secret=1", id="one")
    assert box.shell("echo [$secret]", id="another").output == "[]"


def test_a_command_that_exits_keeps_what_it_changed(box: Box) -> None:
    first = box.shell("cd /usr; exit 4")
    assert (first.exit_code, box.shell("pwd", id=first.session_id).output) == (4, "/usr")


def test_it_starts_at_home_or_where_it_is_told(box: Box) -> None:
    assert box.output("pwd") == "/home/gem"
    assert box.shell("pwd", exec_dir="/usr/lib").output == "/usr/lib"
    with refused(400):
        box.shell("pwd", exec_dir="/no/such")


def test_what_runs_in_the_background_can_be_looked_at_and_ended(box: Box) -> None:
    started = box.shell("echo begun; sleep 100; echo never", async_mode=True)
    assert started.status == "running"
    shell, session = box.real.shell, started.session_id
    assert shell.wait_for_process(id=session, seconds=1).data.status == "running"
    view = shell.view(id=session).data
    assert (view.output, view.status, view.exit_code) == ("begun", "running", None)
    assert shell.kill_process(id=session).data.status == shell.view(id=session).data.status == "terminated"


def test_a_command_takes_input_and_waiting_ends_with_it(box: Box) -> None:
    started = box.shell('read line; echo "got $line"', async_mode=True)
    box.real.shell.write_to_process(id=started.session_id, input="a line", press_enter=True)
    assert box.real.shell.wait_for_process(id=started.session_id, seconds=20).data.status == "completed"
    assert box.real.shell.view(id=started.session_id).data.output == "got a line"


def test_a_session_does_one_thing_at_a_time(box: Box) -> None:
    started = box.shell("sleep 100", async_mode=True)
    with refused(409):
        box.shell("echo too early", id=started.session_id)
    box.real.shell.kill_process(id=started.session_id)


@pytest.mark.parametrize(
    ("limit", "status"), [({"timeout": 0.3}, "running"), ({"no_change_timeout": 1}, "no_change_timeout")]
)
def test_a_timeout_or_silence_only_ends_the_waiting(box: Box, limit: dict[str, float], status: str) -> None:
    result = box.shell("echo so far; sleep 100", **limit)
    assert (result.status, result.output, result.exit_code) == (status, "so far", None)
    box.real.shell.kill_process(id=result.session_id)


def test_a_hard_timeout_ends_the_command_with_its_children(box: Box) -> None:
    result = box.shell("echo so far; sleep 4242 | sleep 4242", hard_timeout=0.3)
    assert (result.status, result.output) == ("hard_timeout", "so far")
    assert box.shell("pgrep -f 'sleep 424[2]'").output == ""


def test_a_server_left_behind_does_not_hold_the_command_up(box: Box) -> None:
    result = box.shell("(while :; do sleep 0.1; done) & echo started")
    assert (result.status, result.output) == ("completed", "started")


def test_old_sessions_make_room(box: Box) -> None:
    first = box.shell("true").session_id
    for _ in range(64):
        box.output("true")
    with refused(404):
        box.real.shell.view(id=first)


def test_a_command_of_any_length_gets_an_answer(box: Box) -> None:
    assert box.output(f"echo {'x' * 50_000} | wc -c") == "50001"
    with refused(422):
        box.shell("x" * 200_000)


def test_loopback_works_inside(box: Box) -> None:
    box.write("/home/gem/site/index.html", "<h1>Seen</h1>")
    box.shell("cd ~/site && python3 -m http.server 8765", async_mode=True)
    fetch = "for i in $(seq 100); do curl -s http://127.0.0.1:8765/ && break; sleep 0.05; done"
    assert box.output(fetch) == "<h1>Seen</h1>"


def test_of_long_output_the_beginning_and_the_end_are_kept() -> None:
    output = CapturedOutput()
    output.add(b"first" + b"x" * KEPT_BYTES)
    for _ in range(10):
        output.add(b"y" * KEPT_BYTES)
    output.add(b"last")
    text = output.text(shortened=False)
    assert text.startswith("first")
    assert text.endswith("last")
    assert f"[… {9 * KEPT_BYTES + 9} bytes left out …]" in text
    assert output.whole() is None
    assert len(output.text()) < 31_000


def test_shortening_says_how_much_is_left_out() -> None:
    assert shorten("abcdef", 4) == "ab\n[… 2 characters left out …]\nef"
    assert shorten("abcd", 4) == "abcd"


def test_python_runs(box: Box) -> None:
    result = box.python("import sys\nprint(6 * 7)\nprint('no', file=sys.stderr)")
    assert (result.status, result.stdout, result.stderr, result.exit_code) == ("ok", "42", "no", 0)
    assert result.outputs[0] == {"output_type": "stream", "name": "stdout", "text": "42"}


def test_an_error_comes_with_its_trace(box: Box) -> None:
    result = box.python("print('before')\n1 / 0")
    assert (result.status, result.stdout, result.exit_code) == ("error", "before", 1)
    assert result.traceback[-1] == "ZeroDivisionError: division by zero"


@pytest.mark.skipif(shutil.which("node") is None, reason="this machine has no Node.js")
def test_javascript_runs(box: Box) -> None:
    result = box.real.code.execute_code(language="javascript", code="console.log([1, 2].map(n => n * 2))").data
    assert result.stdout == "[ 2, 4 ]"


def test_a_program_that_never_ends_is_ended(box: Box) -> None:
    result = box.python("print('on', flush=True)\nwhile True: pass", timeout=1)
    assert (result.status, result.stdout) == ("timeout", "on")


def test_it_runs_where_it_is_told_and_leaves_nothing(box: Box) -> None:
    assert box.python("import os; print(os.getcwd())", cwd="/usr").stdout == "/usr"
    assert box.output("ls -A /tmp | grep code") == ""


def test_what_is_not_offered_is_said(box: Box) -> None:
    with refused(422):
        box.real.code.execute_code(language="cobol", code="1")
    with refused(501):  # nothing is kept from one program to the next
        box.real.code.execute_code(language="python", code="number = 41", stateful=True)


def test_what_a_program_leaves_beside_itself_is_removed(box: Box) -> None:
    left = "import os; os.makedirs(os.path.dirname(__file__) + '/deep/deeper'); print(__file__)"
    program = box.python(left).stdout
    command = f"for i in $(seq 200); do [ -e {os.path.dirname(program)} ] || break; sleep 0.05; done; ls {program} 2>&1"
    assert "No such file" in box.output(command)
