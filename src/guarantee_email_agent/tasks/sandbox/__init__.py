"""Sandboxes: where an agent works on a task, behind the HTTP API of AIO Sandbox."""

from guarantee_email_agent.tasks.sandbox.port import (
    KINDS,
    Sandbox,
    SandboxKind,
    SandboxLimits,
    SandboxSettings,
    open_sandbox,
)

__all__ = ["KINDS", "Sandbox", "SandboxKind", "SandboxLimits", "SandboxSettings", "open_sandbox"]
