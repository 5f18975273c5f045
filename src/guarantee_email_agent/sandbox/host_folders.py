"""Which folders of the host are seen inside an embedded sandbox: those of its programs, without what is nobody's there.

A task's judge, the records of runs and our user's own files may lie below such a folder, or be mounted there once more.
So each is looked for by where it is on its file system, and an empty folder covers it inside.
"""

from __future__ import annotations

import os
import pwd
import shutil
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from guarantee_email_agent.isolation.processes import Mount, list_mounts
from guarantee_email_agent.utils.errors import TaskError

_PACKAGE: Final = Path(__file__).parent.parent
_SYSTEM: Final = ("bin", "sbin", "lib", "lib32", "lib64", "libx32")
# Of /usr and /usr/local; not src, where containers keep what they were made for.
_OF_USR: Final = (*_SYSTEM, "libexec", "share", "include")
_OF_INTERPRETER: Final = ("bin", "lib", "lib64")
# Of /etc only what programs need to start: nothing about this machine or its users.
_ETC: Final = (
    *("alternatives", "ca-certificates", "fonts", "ld.so.cache", "ld.so.conf", "ld.so.conf.d", "localtime"),
    *("mime.types", "pki", "protocols", "services", "ssl/certs", "ssl/openssl.cnf", "java-17-openjdk"),
)


@dataclass(frozen=True, slots=True)
class HostFolders:
    """What is seen inside, at the same place as outside.

    links: where a link stands, and where it leads. shown: folders and files. parted: those of them with something else
    mounted in them. covered: folders in them that are empty inside.
    """

    links: tuple[tuple[str, str], ...]
    shown: tuple[str, ...]
    parted: frozenset[str]
    covered: tuple[str, ...]


def find_python() -> str:
    """The Python that runs inside."""
    return str(Path(getattr(sys, "_base_executable", sys.executable) or sys.executable).resolve())


def find_host_folders(browser: str | None, hidden: Iterable[Path], *, network: bool) -> HostFolders:
    """What to show of this machine to an agent.

    browser: program that is to run inside. hidden: folders that must not be seen, beside our home and our package.
    Raises TaskError where one of them is a folder that programs inside need, too.
    """
    links: list[tuple[str, str]] = []
    shown: list[str] = []
    interpreter = {os.path.realpath(prefix) for prefix in (sys.base_prefix, sys.base_exec_prefix)}
    for parent, names in (
        *(("/", _SYSTEM), ("/usr", _OF_USR), ("/usr/local", _OF_USR)),
        *((prefix, _OF_INTERPRETER) for prefix in sorted(interpreter)),
    ):
        for name in names:
            path = os.path.join(parent, name)
            if path in dict(links) or any(_is_in(path, other) for other in shown):
                continue
            if os.path.islink(path) and not os.path.isabs(os.readlink(path)):
                links.append((path, os.readlink(path)))
            elif os.path.isdir(path):
                shown.append(path)
    if browser is not None and not any(_is_in(browser, other) for other in shown):
        shown.append(os.path.dirname(browser))
    names = (*_ETC, "resolv.conf") if network else _ETC
    shown += filter(os.path.exists, (*(f"/etc/{name}" for name in names), "/var/cache/fontconfig"))
    programs = [find_python(), shutil.which("bash") or "/bin/bash", *filter(None, [browser])]
    needed = [*map(os.path.realpath, (*programs, os.path.dirname(os.__file__))), *shown]
    mounts = list(list_mounts().values())
    views = _views(shown, mounts)
    parted = frozenset(view.shown for view in views if view.path != view.shown)
    return HostFolders(tuple(links), tuple(shown), parted, tuple(_covered(views, mounts, list(hidden), needed)))


def _covered(
    views: Sequence[_View], mounts: Sequence[Mount], hidden: Sequence[Path], needed: Sequence[str]
) -> list[str]:
    ours = [_PACKAGE, Path(os.path.expanduser("~"))]
    with suppress(KeyError):  # a container's user may be nobody that it knows
        ours.append(Path(pwd.getpwuid(os.getuid()).pw_dir))
    ours = [folder for folder in ours if folder.is_absolute() and folder != Path("/")]
    if (checkout := _PACKAGE.parent.parent).joinpath("pyproject.toml").exists():
        ours.append(checkout)
    found: set[str] = set()
    for folder in (*ours, *hidden):
        seen = _seen_at(_place(folder, mounts), views)
        if any(_is_in(path, at) for at in seen for path in needed):
            raise TaskError(
                f"an agent would see {folder} in the sandbox, whose programs need what lies there, too. Move the task, "
                "the output or the program to a folder of its own, or use --sandbox docker",
                "sandbox_exposes_host",
            )
        found.update(seen)
    # What lies beside them is as a rule more of the kind: other tasks and their judges, other records.
    for folder in {Path(os.path.realpath(folder)).parent for folder in hidden}:
        seen = _seen_at(_place(folder, mounts), views)
        if not any(_is_in(path, at) for at in seen for path in needed):
            found.update(seen)
    return sorted(path for path in found if not any(path != other and _is_in(path, other) for other in found))


_Place = tuple[str, str]
"""A file system, and a path in it."""


@dataclass(frozen=True, slots=True)
class _View:
    """What is seen at `path`, which is `shown` or, as another mount, below it."""

    place: _Place
    path: str
    shown: str


def _views(shown: Sequence[str], mounts: Sequence[Mount]) -> list[_View]:
    views = []
    for path in shown:
        real = os.path.realpath(path)
        views.append(_View(_place_of(real, mounts), path, path))
        views += (
            _View((mount.device, mount.root), path + mount.point[len(real) :], path)
            for mount in mounts
            if mount.point != real and _is_in(mount.point, real)
        )
    return views


def _seen_at(place: _Place, views: Sequence[_View]) -> set[str]:
    """Where a folder can be seen inside, be it through another mount, or a part of it."""
    found = set()
    for view in views:
        if _is_below(place, view.place):
            inside = _joined(view.path, place[1], view.place[1])
            if os.path.isdir(inside):
                found.add(inside)
        elif view.path != view.shown and _is_below(view.place, place):
            found.add(view.path)
    return found


def _place(path: str | Path, mounts: Sequence[Mount]) -> _Place:
    return _place_of(os.path.realpath(path), mounts)


def _place_of(real: str, mounts: Sequence[Mount]) -> _Place:
    """Of a path without links."""
    mount = max((mount for mount in mounts if _is_in(real, mount.point)), key=lambda mount: len(mount.point))
    return mount.device, _joined(mount.root, real, mount.point)


def _joined(folder: str, path: str, above: str) -> str:
    """`path`, as it is called where `above` is called `folder`."""
    rest = path[len(above) :].strip("/")
    return (folder.rstrip("/") + (f"/{rest}" if rest else "")) or "/"


def _is_below(place: _Place, other: _Place) -> bool:
    return place[0] == other[0] and _is_in(place[1], other[1])


def _is_in(path: str, folder: str) -> bool:
    return path == folder or path.startswith(folder if folder == "/" else f"{folder}/")
