"""The port to a sandbox: a place apart where an agent works, reached through the HTTP API of AIO Sandbox."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal, Protocol

from guarantee_email_agent.config.task_allowance import NOTHING_MORE, TaskAllowance
from guarantee_email_agent.utils.errors import TaskError

SandboxKind = Literal["embedded", "docker", "none"]

HOME: Final = "/home/gem"
"""Where an agent is at home, as in the AIO Sandbox image."""

_MIB: Final = 1 << 20


@dataclass(frozen=True, slots=True)
class SandboxLimits:
    """What an agent may use up; which limit holds where stands in `docs/solve.md`.

    memory_bytes: of all processes together, beside the disk, which is memory too. disk_bytes, files: of everything
    written. processes: threads count. time_s: seconds that a sandbox may exist. command_s: seconds for a command that
    is waited for; one in the background may take as long as the sandbox exists.
    """

    memory_bytes: int = NOTHING_MORE.memory_mb * _MIB
    disk_bytes: int = NOTHING_MORE.disk_mb * _MIB
    files: int = NOTHING_MORE.files
    processes: int = NOTHING_MORE.processes
    open_files: int = 1024
    time_s: float = NOTHING_MORE.time_s
    command_s: float = NOTHING_MORE.command_s


@dataclass(frozen=True, slots=True)
class SandboxSettings:
    """What a task asks of its sandbox.

    network: whether the host's network can be reached; loopback inside works without it. assets: folder whose content
    is put into `assets/` at home. compose_host: whether a compose file may lead to the host. hidden: folders of the
    host that no agent may read, wherever they lie.
    """

    limits: SandboxLimits = field(default_factory=SandboxLimits)
    network: bool = False
    assets: Path | None = None
    compose_host: bool = False
    hidden: tuple[Path, ...] = ()


class SandboxTask(Protocol):
    """What a sandbox has to know of the task that it is for. settings: the keys of its `task.yaml`."""

    @property
    def name(self) -> str: ...
    @property
    def directory(self) -> Path: ...
    @property
    def settings(self) -> Mapping[str, Any]: ...
    @property
    def dockerfile(self) -> Path | None: ...
    @property
    def compose_file(self) -> Path | None: ...
    @property
    def assets(self) -> Path | None: ...


class Sandbox(Protocol):
    """A place that an agent works in. `stop` may be called twice, and from any thread."""

    @property
    def base_url(self) -> str:
        """Where the API is. Raises TaskError before the start."""
        return f"http://localhost:{self.docker_port}"

    @property
    def docker_port(self) -> int:
        """The port of the API on this machine. Raises TaskError before the start."""

    @property
    def limitations(self) -> tuple[str, ...]:
        """What is not isolated or limited on this machine, a sentence each."""

    def start(self) -> None:
        """Ready for requests when this returns. Raises TaskError."""

    def stop(self) -> None:
        """End everything that runs in it and remove what was written. Raises TaskError."""


# Keys of `sandbox` in a task.yaml: key → field of the limits, units of that field.
_LIMIT_KEYS: Final[Mapping[str, tuple[str, int]]] = {
    "memory_mb": ("memory_bytes", _MIB),
    "disk_mb": ("disk_bytes", _MIB),
    "files": ("files", 1),
    "processes": ("processes", 1),
    "time_s": ("time_s", 1),
    "command_s": ("command_s", 1),
}


def usual_limits(allowed: TaskAllowance) -> SandboxLimits:
    """Those of a task that asks for nothing."""
    usual = SandboxLimits()
    return replace(
        usual,
        **{name: min(getattr(usual, name), getattr(allowed, key) * unit) for key, (name, unit) in _LIMIT_KEYS.items()},
    )


def parse_settings(
    task: SandboxTask, limits: SandboxLimits | None = None, allowed: TaskAllowance = NOTHING_MORE
) -> SandboxSettings:
    """What the `sandbox` section of a task's `task.yaml` asks for.

    limits: of a task that asks for nothing, if not the usual ones. Raises TaskError with all that is wrong in it, or
    that is more than these limits and more than what is allowed.
    """
    limits = limits or usual_limits(allowed)
    section = task.settings.get("sandbox", {})
    where = f"{task.directory / 'task.yaml'}: sandbox"
    if not isinstance(section, Mapping):
        raise TaskError(f"{where} must be a mapping with keys such as network or memory_mb", "sandbox_setting")
    problems: list[str] = []
    changed: dict[str, Any] = {}
    # Tasks written for AIO Sandbox, whose containers have a network, do not ask for it.
    network = allowed.network
    for key, value in section.items():
        if key == "network":
            if isinstance(value, bool):
                network = value
            else:
                problems.append("network must be true or false")
        elif key not in _LIMIT_KEYS:
            problems.append(f"there is no '{key}'; known: network, {', '.join(_LIMIT_KEYS)}")
        elif isinstance(value, bool) or not isinstance(value, (int, float)) or not 1 <= value <= 10_000_000:
            problems.append(f"{key} must be a number from 1 on, not {value!r:.40}")
        else:
            name, unit = _LIMIT_KEYS[key]
            changed[name] = value * unit if name.endswith("_s") else int(value * unit)
    if problems:
        raise TaskError(f"{where}: {'; '.join(problems)}", "sandbox_setting")
    asked = {"network": network} | {
        key: section[key]
        for key, (name, unit) in _LIMIT_KEYS.items()
        if key in section and section[key] * unit > getattr(limits, name)
    }
    if problem := allowed.excess(asked, "sandbox."):
        raise TaskError(f"{task.directory / 'task.yaml'}: {problem}", "sandbox_not_allowed")
    return SandboxSettings(replace(limits, **changed), network, task.assets, allowed.compose_host, (task.directory,))
