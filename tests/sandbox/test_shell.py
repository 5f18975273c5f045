"""Shell sessions, through the client that judges use."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from running_sandbox import Box, refused


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


def test_a_command_finds_no_input_and_is_always_waited_for(box: Box) -> None:
    assert box.shell("read line || echo none").output == "none"
    with refused(501):
        box.shell("true", async_mode=True)


def test_a_session_does_one_thing_at_a_time(box: Box) -> None:
    with ThreadPoolExecutor() as threads:
        waiting = threads.submit(box.shell, "until [ -e /tmp/over ]; do sleep 0.01; done", id="busy")
        box.output("until pgrep -f tmp/ove[r]; do sleep 0.01; done")
        with refused(409):
            box.shell("echo too early", id="busy")
        box.write("/tmp/over", "")
        assert waiting.result().status == "completed"


@pytest.mark.parametrize("limit", ["timeout", "hard_timeout"])
def test_a_timeout_ends_the_command_with_its_children(box: Box, limit: str) -> None:
    result = box.shell("echo so far; sleep 4242 | sleep 4242", **{limit: 0.3})
    assert (result.status, result.output) == ("hard_timeout", "so far")
    assert box.shell("pgrep -f 'sleep 424[2]'").output == ""


def test_a_server_left_behind_does_not_hold_the_command_up(box: Box) -> None:
    result = box.shell("(while :; do sleep 0.1; done) & echo started")
    assert (result.status, result.output) == ("completed", "started")


def test_old_sessions_make_room(box: Box) -> None:
    first = box.shell("kept=1").session_id
    assert box.shell("echo [$kept]", id=first).output == "[1]"
    for _ in range(64):
        box.output("true")
    assert box.shell("echo [$kept]", id=first).output == "[]"


def test_a_command_of_any_length_gets_an_answer(box: Box) -> None:
    assert box.output(f"echo {'x' * 50_000} | wc -c") == "50001"
    with refused(422):
        box.shell("x" * 200_000)


def test_loopback_works_inside(box: Box) -> None:
    box.write("/home/gem/site/index.html", "<h1>Seen</h1>")
    box.shell("cd ~/site && python3 -m http.server 8765 &")
    fetch = "for i in $(seq 100); do curl -s http://127.0.0.1:8765/ && break; sleep 0.05; done"
    assert box.output(fetch) == "<h1>Seen</h1>"
