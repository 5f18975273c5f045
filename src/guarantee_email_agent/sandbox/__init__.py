"""Sandboxes: where an agent works on a task, behind the HTTP API of AIO Sandbox."""

from guarantee_email_agent.sandbox.sandbox import Sandbox, SandboxKind, SandboxLimits, SandboxSettings
from guarantee_email_agent.sandbox.sandbox_factory import open_sandbox, require_sandbox

__all__ = ["Sandbox", "SandboxKind", "SandboxLimits", "SandboxSettings", "open_sandbox", "require_sandbox"]
