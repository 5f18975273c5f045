from pathlib import Path

import pytest
from tasks_and_sandboxes import task_context

from guarantee_email_agent.solving.agents.agent import AgentStepError
from guarantee_email_agent.solving.agents.script_agent import ScriptAgent, load_script, script_file
from guarantee_email_agent.utils.errors import TaskError

SCRIPT = """
- {action_type: shell, command: ls}
- - {action_type: file_write, file: /a, content: b}
  - {action_type: task_complete, result: done}
"""


def written(tmp_path: Path, text: str, name: str = "script.yaml") -> Path:
    (tmp_path / name).write_text(text)
    return tmp_path / name


def test_every_item_is_a_step_and_a_list_is_one_with_several_calls(tmp_path: Path) -> None:
    agent = ScriptAgent(task_context(), load_script(written(tmp_path, SCRIPT)))
    first, second = agent.next_step(()), agent.next_step(())
    assert [(call.name, call.arguments) for call in first.calls] == [("shell_execute", {"command": "ls"})]
    assert [call.name for call in second.calls] == ["file_write", "task_complete"]
    assert [call.id for call in (*first.calls, *second.calls)] == ["call_1", "call_2", "call_3"]


def test_script_that_ends_without_task_complete_fails(tmp_path: Path) -> None:
    agent = ScriptAgent(task_context(), load_script(written(tmp_path, "- {action_type: shell, command: ls}")))
    agent.next_step(())
    with pytest.raises(AgentStepError, match="the script ended after 1 steps without task_complete"):
        agent.next_step(())


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "must be a list of actions"),
        ("[]", "must be a list of actions"),
        ("action_type: shell", "must be a list of actions"),
        ("- ls", "item 1 has no action_type"),
        ("- {command: ls}", "item 1 has no action_type"),
        ("- {action_type: shell, command: ls}\n- [{command: ls}]", "item 2 has no action_type"),
        ("- {action_type: 7}", "item 1 has no action_type"),
        ("- [", "YAML does not parse"),
    ],
)
def test_bad_script_says_what_to_write(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(TaskError, match=message) as caught:
        load_script(written(tmp_path, text))
    assert str(tmp_path / "script.yaml") in caught.value.message


def test_folder_has_a_script_for_each_task(tmp_path: Path) -> None:
    file = written(tmp_path, SCRIPT, "sum.yaml")
    assert script_file(tmp_path, "sum") == file
    assert script_file(file, "other") == file
    with pytest.raises(TaskError, match=r"there is no script product\.yaml"):
        script_file(tmp_path, "product")
