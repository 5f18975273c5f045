"""A task's compose file, confined: what would lead out of its containers is refused, and every service is limited.

What is checked is what runs: the data is written anew, so that no other reading of the same text can differ. Only known
keys pass, since Compose gains new ones with every year, some of which run programs on the host.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.utils.errors import TaskError
from guarantee_email_agent.utils.text import printable

LOOPBACK: Final = "127.0.0.1"

_MAX_BYTES: Final = 1 << 20
_MAX_SERVICES: Final = 8
_MAX_NAMED: Final = 5
_FILE_KEYS: Final = frozenset({"name", "networks", "services", "version", "volumes"})
_SERVICE_KEYS: Final = frozenset(
    (
        *("attach", "build", "cap_drop", "command", "container_name", "cpu_count", "cpu_percent"),
        *("cpu_period", "cpu_quota", "cpu_shares", "cpus", "cpuset", "depends_on", "deploy", "dns", "dns_opt"),
        *("dns_search", "domainname", "entrypoint", "environment", "expose", "extra_hosts", "healthcheck"),
        *("hostname", "image", "init", "labels", "links", "mac_address", "mem_limit", "mem_reservation"),
        *("memswap_limit", "network_mode", "networks", "pids_limit", "platform", "ports", "profiles"),
        *("pull_policy", "read_only", "restart", "security_opt", "shm_size", "stdin_open"),
        *("stop_grace_period", "stop_signal", "tmpfs", "tty", "ulimits", "user", "volumes", "working_dir"),
    )
)
# Ours take their place.
_LIMIT_KEYS: Final = ("deploy", "mem_limit", "mem_reservation", "memswap_limit", "pids_limit")
_BUILD_KEYS: Final = frozenset(
    (
        *("args", "context", "dockerfile", "dockerfile_inline", "labels", "no_cache", "platforms", "pull", "shm_size"),
        "target",
    )
)
_PORT_KEYS: Final = frozenset({"app_protocol", "host_ip", "mode", "name", "protocol", "published", "target"})
_VOLUME_KEYS: Final = frozenset({"consistency", "read_only", "source", "target", "tmpfs", "type", "volume"})
# What the browser of AIO Sandbox needs, and what takes rights away.
_SECURITY_OPTIONS: Final = re.compile(r"seccomp[=:]unconfined|no-new-privileges([=:]true)?")
_OWN_IMAGE: Final = re.compile(r"\$(\{TASK_DOCKER_IMAGE_NAME\}|TASK_DOCKER_IMAGE_NAME\b)[^$]*")
_NAMED_VOLUME: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]+")  # one letter alone may be a drive
_VARIABLE: Final = re.compile(r"\$\{[^}]*\}")
_LOOPBACK_ADDRESS: Final = re.compile(r"127(\.[0-9]+){3}|::1|\[::1\]")

_Problems = Iterator[str]
"""Places such as `services.web.privileged`, with what stands there where that says more."""


def confined(file: Path, *, memory_bytes: int, processes: int, label: str) -> str:
    """The text to start in the place of a compose file, in whose folder everything lies that it may name.

    memory_bytes, processes: of each service. Raises TaskError with everything that is refused.
    """
    data = _read(file)
    services = data.get("services")
    if not isinstance(services, dict) or not services or not all(isinstance(each, dict) for each in services.values()):
        raise _error(file, "has no services. Name at least the one that serves the API")
    if len(services) > _MAX_SERVICES:
        raise _error(file, f"has {len(services)} services, and {_MAX_SERVICES} are allowed")
    problems = list(_problems(data, file.parent))
    if problems:
        named = ", ".join(problems[:_MAX_NAMED]) + (", …" if len(problems) > _MAX_NAMED else "")
        remedy = "Remove it, or pass --allow compose_host if you trust this task with your machine"
        raise _error(file, f"may lead out of its containers: {named}. {remedy}", "sandbox_not_allowed")
    for service in services.values():
        for key in _LIMIT_KEYS:
            service.pop(key, None)
        if "ports" in service:
            service["ports"] = [_on_loopback(port) for port in service["ports"] or ()]
        labels = service.get("labels") or {}
        service["labels"] = [*labels, label] if isinstance(labels, list) else {**labels, label: ""}
        service |= {"mem_limit": memory_bytes, "memswap_limit": memory_bytes, "pids_limit": processes}
    for key in ("name", "version"):  # of no meaning where the project is named, and any more
        data.pop(key, None)
    return json.dumps(data)


def _read(file: Path) -> dict[str, Any]:
    if file.is_symlink():
        raise _error(file, "is a link. Put the file itself there")
    try:
        documents = load_documents(read_text(file, _MAX_BYTES))
    except InputFileError as error:
        raise _error(file, error.message) from None
    if len(documents) != 1 or not isinstance(documents[0], dict):
        raise _error(file, "must hold one YAML document with 'services:'")
    return documents[0]


def _problems(data: Mapping[Any, Any], folder: Path) -> _Problems:
    yield from _unknown(data, _FILE_KEYS, "")
    for kind, allowed in (("volumes", {"labels": None, "driver": "local"}), ("networks", _NETWORK)):
        section = data.get(kind) or {}
        if not isinstance(section, dict):
            yield kind
            continue
        for name, settings in section.items():
            for key, value in (settings or {}).items() if isinstance(settings or {}, dict) else [("", settings)]:
                if key not in allowed or allowed[key] not in (None, value):
                    yield f"{kind}.{name}.{key}"
    binds: list[Path] = []
    for name, service in data["services"].items():
        place = f"services.{name}."
        yield from _unknown(service, _SERVICE_KEYS, place)
        for key, check in _CHECKS.items():
            if service.get(key) is not None:
                yield from (f"{place}{key}{problem}" for problem in check(service[key], folder))
        if service.get("build") is not None and not _OWN_IMAGE.fullmatch(
            str(service.get("image", "$TASK_DOCKER_IMAGE_NAME"))
        ):
            # Else what is built takes the place of an image that others use by that name.
            yield f"{place}image (of what is built is ${{TASK_DOCKER_IMAGE_NAME}})"
        binds += _bind_sources(service.get("volumes"), folder)
    # A container that can write to the outer one could put a link in the place of the inner.
    for inner in binds:
        if any(outer in inner.parents for outer in binds):
            yield f"the volume {os.path.relpath(inner, folder)} within another"


_NETWORK: Final[Mapping[str, str | None]] = {"labels": None, "internal": None, "driver": "bridge"}


def _unknown(section: Mapping[Any, Any], known: frozenset[str], place: str) -> _Problems:
    yield from (f"{place}{key}" for key in section if key not in known and not str(key).startswith("x-"))


def _build_problems(build: object, folder: Path) -> _Problems:
    settings = build if isinstance(build, dict) else {"context": build}
    yield from _unknown(settings, _BUILD_KEYS, ".")
    context = _inside(settings.get("context", "."), folder)
    if context is None:
        yield f".context ({settings.get('context')})"
        return
    dockerfile = settings.get("dockerfile", "Dockerfile")
    # docker reads these itself, and follows links.
    for name in (dockerfile, f"{dockerfile}.dockerignore", ".dockerignore"):
        if _inside(name, context) is None:
            yield f" ({name} is a link, or elsewhere)"


def _port_problems(ports: object, _: Path) -> _Problems:
    if not isinstance(ports, list):
        yield ""
        return
    for port in ports:
        if isinstance(port, dict):
            yield from _unknown(port, _PORT_KEYS, ".")
            address = str(port.get("host_ip", LOOPBACK))
        elif isinstance(port, (str, int)):
            address = str(_host_address(_on_loopback(port)))
        else:
            address = "?"
        if not _LOOPBACK_ADDRESS.fullmatch(address):
            yield f" ({port} opens a port to other machines)"


def _host_address(port: str) -> str | None:
    """The address that a short port begins with, variables in it as 0; None where it has none. Empty it is any."""
    head, colon, _ = _VARIABLE.sub("0", port).rpartition(":")
    address, colon, _ = head.rpartition(":")
    return address if colon else None


def _on_loopback(port: Any) -> Any:
    if isinstance(port, dict):
        return {"host_ip": LOOPBACK, **port}
    if _host_address(str(port)) is not None:
        return port
    # Whatever a variable in it holds stands behind an address, then.
    return f"{LOOPBACK}:{port}" if ":" in _VARIABLE.sub("0", str(port)) else f"{LOOPBACK}::{port}"


def _volume_problems(volumes: object, folder: Path) -> _Problems:
    if not isinstance(volumes, list):
        yield ""
        return
    for volume in volumes:
        if isinstance(volume, dict):
            yield from _unknown(volume, _VOLUME_KEYS, ".")
            if volume.get("type", "volume") not in ("volume", "tmpfs", "bind"):
                yield f".type ({volume['type']})"
        elif not isinstance(volume, str):
            yield f" ({volume})"
            continue
        name, path = _volume_source(volume)
        if (name and not _NAMED_VOLUME.fullmatch(name)) or (path and _inside(path, folder) is None):
            yield f" ({name or path} is no volume, and no folder of the task)"


def _volume_source(volume: str | Mapping[str, Any]) -> tuple[str, str]:
    """The name of a volume, or the path of a folder that is mounted; empty what it is not."""
    if isinstance(volume, str):
        source = volume.partition(":")[0] if ":" in volume or "$" in volume else ""
        return ("", source) if source.startswith((".", "/", "~")) else (source, "")
    source = str(volume.get("source", ""))
    return ("", source or "?") if volume.get("type") == "bind" else (source, "")


def _bind_sources(volumes: object, folder: Path) -> list[Path]:
    listed = [each for each in volumes if isinstance(each, (str, dict))] if isinstance(volumes, list) else []
    found = (_inside(path, folder) for each in listed if (path := _volume_source(each)[1]))
    return [path for path in found if path is not None]


def _inside(path: object, folder: Path) -> Path | None:
    """A path below a folder, with no link on its way; None where it is none, or not one for certain."""
    if not isinstance(path, str) or "$" in path or "://" in path or os.path.isabs(path) or path.startswith("~"):
        return None
    place = Path(os.path.normpath(folder / path))
    if not place.is_relative_to(folder):
        return None
    steps = [place, *(parent for parent in place.parents if parent != folder and parent.is_relative_to(folder))]
    return None if place != folder and any(step.is_symlink() for step in steps) else place


def _security_problems(options: object, _: Path) -> _Problems:
    for option in options if isinstance(options, list) else [options]:
        if not _SECURITY_OPTIONS.fullmatch(str(option)):
            yield f" ({option})"


def _network_problems(networks: object, _: Path) -> _Problems:
    if isinstance(networks, dict):
        for name, settings in networks.items():
            if settings is not None and (not isinstance(settings, dict) or set(settings) - {"aliases"}):
                yield f".{name}"


def _label_problems(labels: object, _: Path) -> _Problems:
    if not isinstance(labels, (dict, list)):
        yield ""


def _network_mode_problems(mode: object, _: Path) -> _Problems:
    if mode not in ("bridge", "none"):
        yield f" ({mode})"


_CHECKS: Final[Mapping[str, Callable[[Any, Path], _Problems]]] = {
    "build": _build_problems,
    "labels": _label_problems,
    "network_mode": _network_mode_problems,
    "networks": _network_problems,
    "ports": _port_problems,
    "security_opt": _security_problems,
    "volumes": _volume_problems,
}


def _error(file: Path, problem: str, code: str = "sandbox_docker") -> TaskError:
    return TaskError(printable(f"{file.name}: the compose file {problem}"), code)
