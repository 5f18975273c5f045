"""A Docker engine of our own for one test, and tasks whose image is built from nothing but a static program."""

import fcntl
import os
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self

import pytest
from waiting import wait_until

from guarantee_email_agent.judging.task import Task, load_task

BUSYBOX = Path("/bin/busybox")
DOCKERFILE = """\
FROM scratch
COPY busybox /bin/busybox
COPY v1 /www/v1
CMD ["/bin/busybox", "httpd", "-f", "-p", "8080", "-h", "/www"]
"""
COMPOSE = """\
version: '3.8'
services:
  client:
    build: {context: ., dockerfile: Dockerfile}
    image: ${TASK_DOCKER_IMAGE_NAME}
    container_name: ${TASK_DOCKER_CONTAINER_NAME}
    security_opt: [seccomp=unconfined]
    ports: ["${HOST_PORT}:8080"]
    volumes: ["./v1:/www/copy:ro", "data:/data"]
volumes: {data: }
"""


def missing() -> str | None:
    """What a real engine lacks on this machine."""
    if os.geteuid() != 0:
        return "dockerd needs root"
    for program in ("dockerd", "docker", "containerd", "runc"):
        if shutil.which(program, path=f"{os.environ['PATH']}:/usr/sbin") is None:
            return f"{program} is not installed (docker.io)"
    return None if BUSYBOX.is_file() else f"{BUSYBOX} is not installed (busybox-static)"


class Engine:
    """dockerd with a folder of its own, which needs no firewall rules, since ports are published by its proxy."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.address = f"unix://{folder}/socket"
        arguments = {"data-root": "data", "exec-root": "exec", "pidfile": "pid"}
        with (folder / "log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    "dockerd",
                    *(f"--{name}={folder / place}" for name, place in arguments.items()),
                    *(f"--host={self.address}", "--storage-driver=vfs", "--iptables=false", "--ip6tables=false"),
                ],
                stdout=log,
                stderr=log,
            )
        try:
            wait_until(lambda: self.ask("version", "--format", "{{.Server.Version}}"), 60.0, self._last_words)
        except TimeoutError:
            self._end()
            raise

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.ask("rm", "--force", *self.ask("ps", "--all", "--quiet").split())  # a stop would wait for each
        self._end()

    def _end(self) -> None:
        self._process.terminate()
        self._process.wait(60)

    def _last_words(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-1000:]

    def ask(self, *arguments: str) -> str:
        """What `docker` prints; nothing where it fails."""
        command = ("docker", "--host", self.address, *arguments)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        return done.stdout.strip() if done.returncode == 0 else ""

    def left(self) -> dict[str, str]:
        """What a run of ours could leave behind, of each kind the names."""
        return {
            "containers": self.ask("ps", "--all", "--quiet"),
            "images": self.ask("images", "--quiet", "--filter", "dangling=false"),
            "volumes": self.ask("volume", "ls", "--quiet"),
            "networks": self.ask("network", "ls", "--quiet", "--filter", "type=custom"),
        }


NOTHING_LEFT = dict.fromkeys(("containers", "images", "volumes", "networks"), "")


@contextmanager
def _bridge_as_before() -> Iterator[None]:
    """One engine at a time, since they share the bridge, which none of them removes."""
    with open(Path(tempfile.gettempdir(), "docker-engine-of-tests.lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        had_bridge = Path("/sys/class/net/docker0").exists()
        yield
        if not had_bridge and shutil.which("ip"):
            subprocess.run(["ip", "link", "delete", "docker0"], capture_output=True, check=False)


@pytest.fixture
def real_engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    """An engine that `docker` talks to in this test, without any image."""
    if reason := missing():
        pytest.skip(f"no Docker engine: {reason}")
    # Sockets have short paths.
    with tempfile.TemporaryDirectory(prefix="engine-", ignore_cleanup_errors=True) as folder, _bridge_as_before():
        monkeypatch.setenv("PATH", f"{os.environ['PATH']}:/usr/sbin")
        with Engine(Path(folder)) as engine:
            monkeypatch.setenv("DOCKER_HOST", engine.address)
            yield engine


def build_from_nothing(task: Task, dockerfile: str = DOCKERFILE, compose: str | None = None) -> Task:
    """The task with an image that serves a part of the sandbox's API."""
    (task.directory / "v1").mkdir()
    (task.directory / "v1" / "sandbox").write_text('{"success": true, "message": "", "data": "a container"}')
    shutil.copy(BUSYBOX, task.directory / "busybox")
    (task.directory / "Dockerfile").write_text(dockerfile)
    if compose is not None:
        (task.directory / "docker-compose.yaml").write_text(compose)
    return load_task(task.directory)
