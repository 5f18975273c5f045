"""The tools that act in the sandbox: a shell, code, files and pictures; and which of all tools an agent gets."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from enum import StrEnum
from typing import Any, Final

from guarantee_email_agent.judging.task import Task
from guarantee_email_agent.sandbox.client import SandboxClient
from guarantee_email_agent.solving.browser_tools import BROWSER_TOOLS
from guarantee_email_agent.solving.tools import (
    TASK_COMPLETE,
    Image,
    Tool,
    ToolFunction,
    ToolParameter,
    boolean,
    integer,
    string,
    to_text,
)
from guarantee_email_agent.utils.errors import TaskError

REPLY_MARGIN_S: Final = 10.0
"""Seconds for a reply, beyond those that a command may take."""


class ClientType(StrEnum):
    """Which tools an agent gets: `client_type` in `task.yaml`."""

    UNIFIED = "unified"
    BROWSER = "browser"
    SHELL = "shell"

    @classmethod
    def of(cls, task: Task) -> ClientType:
        """Raises TaskError for another value."""
        requested = task.settings.get("client_type", cls.UNIFIED.value)
        try:
            return cls(requested)
        except ValueError:
            problem = f"client_type must be one of {', '.join(cls)}, not {requested!r:.60}"
            raise TaskError(f"{task.directory / 'task.yaml'}: {problem}", "task_invalid_value") from None


def tools_for(client_type: ClientType) -> tuple[Tool, ...]:
    """The tools of a kind of client, `task_complete` the last."""
    browser = () if client_type is ClientType.SHELL else BROWSER_TOOLS
    others = () if client_type is ClientType.BROWSER else WORK_TOOLS
    return (*others, *browser, COMPLETE)


def is_alive(sandbox: SandboxClient) -> bool:
    """Whether a sandbox still answers."""
    try:
        sandbox.call("GET", "/v1/sandbox", timeout_s=REPLY_MARGIN_S)
    except TaskError:
        return False
    return True


def _post(path: str, format_reply: Callable[[Mapping[str, Any], Mapping[str, Any]], str]) -> ToolFunction:
    """format_reply: what the sandbox replied, and the arguments of the call -> what the agent gets."""

    def run(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
        return format_reply(_as_mapping(sandbox.call("POST", path, arguments, timeout_s=timeout_s)), arguments)

    return run


def _post_program(path: str, sandbox: SandboxClient, request: Mapping[str, Any], timeout_s: float) -> Mapping[str, Any]:
    """The result of a program, also where a sandbox calls its own reply a failure because the program failed."""
    try:
        return _as_mapping(sandbox.call("POST", path, request, timeout_s=timeout_s + REPLY_MARGIN_S))
    except TaskError as error:
        data = error.details.get("data")
        if isinstance(data, Mapping) and data.get("exit_code") is not None:
            return data
        raise


def _as_mapping(data: Any) -> Mapping[str, Any]:
    return data if isinstance(data, Mapping) else {"output": data}


def _shell(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
    seconds = min(arguments.get("timeout") or timeout_s, timeout_s)  # 0 would be no limit at all
    request = {name: value for name, value in arguments.items() if name != "timeout"}
    # Without the second one, a command that is silent for two minutes would be left running.
    request |= {"hard_timeout": seconds, "no_change_timeout": int(seconds) + 1, "truncate": False}
    data = _post_program("/v1/shell/exec", sandbox, request, timeout_s)
    output, status = data.get("output") or "", data.get("status")
    if status in ("hard_timeout", "terminated"):
        return _join_lines(output, f"[stopped after {seconds:g} s]")
    if status not in (None, "completed"):
        return _join_lines(output, f"[not ended: {status}]")
    return _join_lines(output, _exit_code(data))


def _code(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> str:
    seconds = int(max(1, min(arguments.get("timeout", timeout_s), timeout_s)))
    data = _post_program("/v1/code/execute", sandbox, {**arguments, "timeout": seconds}, timeout_s)
    traceback = "\n".join(str(line) for line in data.get("traceback") or ())
    parts = [data.get("stdout") or "", data.get("stderr") or traceback]
    if not any(parts):
        outputs = [output for output in data.get("outputs") or () if isinstance(output, Mapping)]
        parts = [to_text(output.get("text", output)) for output in outputs]
    is_over = data.get("status") == "timeout"
    return _join_lines(*parts, f"[stopped after {seconds} s]" if is_over else _exit_code(data))


def _written(data: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    count = data.get("bytes_written")
    return f"Wrote {f'{count} bytes to ' if count is not None else ''}{arguments['file']}"


def _file_list(data: Mapping[str, Any], _: Mapping[str, Any]) -> str:
    files = [file for file in data.get("files") or () if isinstance(file, Mapping)]
    return _paths([f"{file.get('path')}{'/' if file.get('is_directory') else ''}" for file in files], data) or "(empty)"


def _paths(found: Iterable[str], data: Mapping[str, Any]) -> str:
    """What is in a folder that cannot be read is not known."""
    return "\n".join((*found, *(f"[cannot be read: {folder}]" for folder in data.get("unreadable") or ())))


def _replaced(data: Mapping[str, Any], arguments: Mapping[str, Any]) -> str:
    count = data.get("replaced_count")
    if count == 0:
        raise TaskError(f"old_str does not occur in {arguments['file']}", "tool_nothing_replaced")
    return f"Replaced {count if count is not None else 'it'} in {arguments['file']}"


def _matches(data: Mapping[str, Any], _: Mapping[str, Any]) -> str:
    found = zip(data.get("line_numbers") or (), data.get("matches") or (), strict=False)
    return "\n".join(f"{number}: {match}" for number, match in found) or "(no match)"


def _edited(data: Mapping[str, Any], _: Mapping[str, Any]) -> str:
    if data.get("error"):
        raise TaskError(str(data["error"]), "tool_editor")
    return str(data.get("output") or "")


def _image(sandbox: SandboxClient, arguments: Mapping[str, Any], timeout_s: float) -> Image:
    content = sandbox.download("/v1/file/download", {"path": arguments["file"]}, timeout_s=timeout_s)
    return Image.parse(content, arguments["file"])


def _exit_code(data: Mapping[str, Any]) -> str:
    return f"[exit code {code}]" if (code := data.get("exit_code")) else ""


def _join_lines(*parts: str) -> str:
    return "\n".join(part.rstrip("\n") for part in parts if part)


_FILE: Final = string("Absolute path of the file.")
_SECONDS: Final = ToolParameter("number", "Seconds that it may take.", required=False)

WORK_TOOLS: Final = (
    Tool(
        "shell_execute",
        "Run a command in a shell (bash), and see what it prints and its exit code. A changed folder or variable lasts "
        "within a session only. What should go on running has to be started in the background.",
        {
            "command": string("The command."),
            "id": string("Name of a session of your choice; without one the command gets a new shell.", required=False),
            "exec_dir": string("Folder to run it in.", required=False),
            "timeout": _SECONDS,
        },
        _shell,
        action_type="shell",
    ),
    Tool(
        "code_execute",
        "Run a program, and see what it prints.",
        {
            "language": string("The language that it is written in.", choices=("python", "javascript")),
            "code": string("The whole program."),
            "timeout": _SECONDS,
        },
        _code,
    ),
    Tool(
        "file_read",
        "Read a text file, or some of its lines.",
        {
            "file": _FILE,
            "start_line": integer("First line, from 0.", required=False),
            "end_line": integer("Line to stop before.", required=False),
        },
        _post("/v1/file/read", lambda data, _: str(data.get("content") or "")),
    ),
    Tool(
        "file_write",
        "Write a text file; missing folders are made.",
        {"file": _FILE, "content": string("All of the text."), "append": boolean("Add to what is there.")},
        _post("/v1/file/write", _written),
    ),
    Tool(
        "file_list",
        "List the files of a folder.",
        {
            "path": string("Absolute path of the folder."),
            "recursive": boolean("Folders inside too."),
            "show_hidden": boolean("Names that begin with a dot too."),
        },
        _post("/v1/file/list", _file_list),
    ),
    Tool(
        "replace_in_file",
        "Replace a text everywhere in a file.",
        {"file": _FILE, "old_str": string("What to replace, exactly."), "new_str": string("What to put there.")},
        _post("/v1/file/replace", _replaced),
    ),
    Tool(
        "search_in_file",
        "Find the lines of a file that match a regular expression.",
        {"file": _FILE, "regex": string("The regular expression.")},
        _post("/v1/file/search", _matches),
    ),
    Tool(
        "find_files",
        "Find files by their names.",
        {"path": string("Absolute path of the folder to look in."), "glob": string("Pattern such as *.py.")},
        _post("/v1/file/find", lambda data, _: _paths(data.get("files") or (), data) or "(no match)"),
    ),
    Tool(
        "str_replace_editor",
        "View, create and edit text files: `view` shows a file with line numbers or lists a folder, `create` writes "
        "file_text, `str_replace` replaces old_str, which must occur exactly once, by new_str, `insert` puts new_str "
        "below the line insert_line.",
        {
            "command": string("What to do.", choices=("view", "create", "str_replace", "insert")),
            "path": string("Absolute path of the file."),
            "file_text": string("For create.", required=False),
            "old_str": string("For str_replace.", required=False),
            "new_str": string("For str_replace and insert.", required=False),
            "insert_line": integer("For insert: 0 is the beginning.", required=False),
            "view_range": ToolParameter(
                "array", "For view: first and last line, from 1.", required=False, items="integer"
            ),
        },
        _post("/v1/file/str_replace_editor", _edited),
    ),
    Tool("image_read", "Look at a picture file (PNG, JPEG, GIF, WebP).", {"file": _FILE}, _image),
)

COMPLETE: Final = Tool(
    TASK_COMPLETE,
    "End the task. Call it once, when the task is done or cannot be done.",
    {"result": string("The final answer: all that the task asks for, in the form it asks for.")},
)
