"""Sandboxes: where an agent works on a task, behind the HTTP API of AIO Sandbox."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import get_args

from guarantee_email_agent.config.task_allowance import NOTHING_MORE, TaskAllowance
from guarantee_email_agent.sandbox.sandbox import (
    Sandbox,
    SandboxKind,
    SandboxLimits,
    SandboxSettings,
    SandboxTask,
    parse_settings,
)
from guarantee_email_agent.utils.errors import TaskError

__all__ = ["Sandbox", "SandboxKind", "SandboxLimits", "SandboxSettings", "open_sandbox", "require_sandbox"]


def open_sandbox(
    task: SandboxTask,
    kind: SandboxKind = "embedded",
    limits: SandboxLimits | None = None,
    interrupted: Callable[[], bool] = lambda: False,
    allowed: TaskAllowance = NOTHING_MORE,
    hidden: Sequence[Path] = (),
) -> AbstractContextManager[Sandbox]:
    """A running sandbox for a task, gone at the end of the `with` block.

    limits: in place of the usual ones; `sandbox` in the task's `task.yaml` overrides both. interrupted:
    whether a start that takes long, as that of a container may, is to be given up. hidden: folders that no agent may
    read, beside that of the task. Raises TaskError where the task asks for what does not exist or is not allowed, and
    where the machine has no way to make a sandbox.
    """
    settings = parse_settings(task, limits, allowed)
    settings = replace(settings, hidden=(*settings.hidden, *hidden))
    if kind == "embedded":
        from guarantee_email_agent.sandbox.embedded import EmbeddedSandbox

        return _running(EmbeddedSandbox(settings))
    if kind == "none":
        from guarantee_email_agent.sandbox.served_sandbox import HostSandbox

        return _running(HostSandbox(settings))
    if kind == "docker":
        from guarantee_email_agent.sandbox.docker import DockerSandbox

        return _running(DockerSandbox(task, settings, interrupted))
    raise TaskError(f"there is no sandbox '{kind}'. Use one of: {', '.join(get_args(SandboxKind))}", "sandbox_kind")


def require_sandbox(kind: SandboxKind) -> None:
    """Raises TaskError, with a remedy, where this machine can make no sandbox of a kind."""
    if kind == "docker":
        from guarantee_email_agent.sandbox.docker import require_engine

        require_engine()
    elif sys.platform != "linux":
        raise TaskError(
            f"--sandbox {kind} needs Linux. Use --sandbox docker, or a Linux machine, real or virtual",
            "sandbox_platform",
        )
    elif kind == "embedded":
        from guarantee_email_agent.sandbox.embedded import EmbeddedSandbox

        # Whether namespaces can be had shows in having them, and in no setting of the system alone.
        with _running(EmbeddedSandbox(SandboxSettings())):
            pass


@contextmanager
def _running(sandbox: Sandbox) -> Iterator[Sandbox]:
    try:
        sandbox.start()
        yield sandbox
    finally:
        sandbox.stop()
