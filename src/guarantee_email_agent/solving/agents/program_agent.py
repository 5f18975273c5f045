"""Any program works on the task: it gets the instruction, and what it prints is its answer."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import IO, Any, Final

from guarantee_email_agent.isolation.processes import kill_group
from guarantee_email_agent.judging.grading import said_of_error
from guarantee_email_agent.judging.record import cut_off_reason, why_cut_off
from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.solving.agents.agent import Agent, AgentFactory, AgentStepError, Step, TaskContext
from guarantee_email_agent.solving.run_limits import FailureReason
from guarantee_email_agent.solving.tools import TASK_COMPLETE, ToolCall, ToolResult
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.process import parse_program
from guarantee_email_agent.utils.text import printable

INSTRUCTION: Final = "{instruction}"
MAX_ANSWER_BYTES: Final = 10_000_000

_POLL_S: Final = 0.05
_MAX_STDERR_CHARACTERS: Final = 500
# What a program may report of its run besides its answer, and the type that it must have.
_RECORD_TYPES: Final[Mapping[str, type]] = {"conversation": list, "execution_trace": list, "iterations": int}


def program_agent_factory(command: str | None) -> AgentFactory:
    """Raises ConfigurationError without a command, or for one that cannot be used."""
    if command is None:
        raise ConfigurationError("--agent command needs --command 'PROGRAM ARGUMENTS'", "cli_bad_usage")
    parts = parse_program(command, "--command")
    return lambda context: ProgramAgent(context, parts)


class ProgramAgent(Agent):
    """One step: the program runs to its end.

    The instruction stands for `{instruction}` in its arguments, or else comes on its stdin. It gets our environment and
    `TASK_NAME`, `TASK_INSTRUCTION`, `TASK_SANDBOX_URL`, `TASK_SANDBOX_PORT` and `TASK_CLIENT_TYPE`. Its stdout is the
    answer; a JSON object with `task_result` is a record of its run, which alone tells what it took of a model. At the
    end its process group is killed.
    """

    def __init__(self, context: TaskContext, command: Sequence[str]) -> None:
        self.context = context
        self._command = command

    def next_step(self, results: Sequence[ToolResult]) -> Step:  # noqa: ARG002 - the program is done after its first step
        """Raises AgentStepError where the program cannot be started."""
        with tempfile.TemporaryFile() as answer, tempfile.TemporaryFile() as errors:
            failure = self._run(answer, errors)
            text = _read_text(answer).removesuffix("\n")
        record = _parse_record(text)
        told = {"task_result": text} if record is None else _valid_entries(record)
        own = _told_failure(told)
        failure = own if own and own.retryable else failure or own
        if told["task_result"] is None or why_cut_off(told):
            told["task_result"] = ""
        result = told["task_result"]
        answer_text = result if isinstance(result, str) else json.dumps(result, ensure_ascii=False)
        calls = () if failure and not result else (ToolCall("call_1", TASK_COMPLETE, {"result": answer_text}),)
        said = told if record else {}
        return Step("" if record else text, calls, TokenUsage(uncounted=1), None, record=said, failure=failure)

    def _run(self, answer: IO[bytes], errors: IO[bytes]) -> FailureReason | None:
        """Why the program's answer does not count; None where it does."""
        instruction = self.context.instruction
        arguments = [part.replace(INSTRUCTION, instruction) for part in self._command]
        with tempfile.TemporaryFile() as stdin:
            if INSTRUCTION not in " ".join(self._command):
                stdin.write(instruction.encode())
                stdin.seek(0)
            try:
                process = subprocess.Popen(
                    arguments,
                    stdin=stdin,
                    stdout=answer,
                    stderr=errors,
                    env={**os.environ, **self._environment()},
                    start_new_session=True,
                )
            except (OSError, ValueError) as error:
                reason = getattr(error, "strerror", None) or str(error)
                problem = f"cannot start {self._command[0]!r:.200} ({reason}). Correct --command"
                raise AgentStepError(problem, "command_not_started", {"retryable": True}) from None
        try:
            failure = self._wait(process, answer, errors)
        finally:
            kill_group(process.pid)
            process.wait()
        if failure is None and process.returncode != 0:
            stderr = _read_text(errors).strip()[-_MAX_STDERR_CHARACTERS:]
            ending = f"exit code {process.returncode}" if process.returncode > 0 else f"signal {-process.returncode}"
            return FailureReason("command_failed", f"the program ended with {ending}{f': {stderr}' if stderr else ''}")
        return failure

    def _wait(self, process: subprocess.Popen[bytes], *printed: IO[bytes]) -> FailureReason | None:
        while True:
            if self.context.deadline.is_over():
                return FailureReason("wall_time", "the time was over before the program ended")
            if any(os.fstat(file.fileno()).st_size > MAX_ANSWER_BYTES for file in printed):
                limit = MAX_ANSWER_BYTES // 1_000_000
                return FailureReason("command_too_much_output", f"the program printed more than {limit} MB")
            with suppress(subprocess.TimeoutExpired):
                process.wait(_POLL_S)
                return None

    def _environment(self) -> dict[str, str]:
        sandbox = self.context.sandbox
        return {
            "TASK_NAME": self.context.task_name,
            "TASK_INSTRUCTION": self.context.instruction.replace("\0", ""),
            "TASK_SANDBOX_URL": str(sandbox.get("base_url", "")),
            "TASK_SANDBOX_PORT": str(sandbox.get("docker_port", "")),
            "TASK_CLIENT_TYPE": str(sandbox.get("client_type", "")),
        }


def _read_text(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read(MAX_ANSWER_BYTES).decode("utf-8", "replace")


def _parse_record(text: str) -> dict[str, Any] | None:
    """The record that a program printed in place of an answer."""
    if not text.lstrip().startswith("{"):
        return None
    try:
        record = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) and "task_result" in record else None


def _told_failure(record: Mapping[str, Any]) -> FailureReason | None:
    """Why the answer does not count, by the program's own record."""
    status = str(record.get("status")).lower()
    if status == "error":
        said = f"the program says that its run ended in an error{said_of_error(record)}"
        return FailureReason("command_error", printable(said), retryable=True)
    if status == "failed":
        return FailureReason("command_failed", "the program says that it failed")
    if cut_off := cut_off_reason(why_cut_off(record)):
        return FailureReason(**cut_off["reason"])
    return FailureReason("no_answer", "the program gave no answer") if record["task_result"] is None else None


def _valid_entries(record: Mapping[str, Any]) -> dict[str, Any]:
    """The record without what has the wrong type, since further steps are added to it."""
    return {
        key: value for key, value in record.items() if key not in _RECORD_TYPES or type(value) is _RECORD_TYPES[key]
    }
