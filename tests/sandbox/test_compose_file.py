"""What a compose file may hold that a stranger wrote, and how it is confined."""

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from guarantee_email_agent.sandbox.compose_file import confined
from guarantee_email_agent.utils.errors import TaskError

# As the tasks of other frameworks have it.
USUAL = """\
version: '3.8'
services:
  client:
    build: {context: ., dockerfile: Dockerfile}
    image: ${TASK_DOCKER_IMAGE_NAME}
    container_name: ${TASK_DOCKER_CONTAINER_NAME}
    security_opt: [seccomp=unconfined]
    ports: ["${HOST_PORT}:8080"]
    volumes: ["./assets:/home/gem/assets:ro", "data:/data", /cache]
    stdin_open: true
    tty: true
    mem_limit: 900g
    deploy: {resources: {limits: {memory: 900g}}}
    x-note: anything
  database: {image: "postgres:16", environment: [POSTGRES_PASSWORD=x], networks: [inner], labels: {a: b}}
volumes: {data: }
networks: {inner: {internal: true}}
"""


def _confine(folder: Path, text: str) -> dict[str, Any]:
    (folder / "docker-compose.yaml").write_text(text, encoding="utf-8")
    return json.loads(confined(folder / "docker-compose.yaml", memory_bytes=100, processes=10, label="ours"))


def _refusal(folder: Path, text: str) -> str:
    with pytest.raises(TaskError) as problem:
        _confine(folder, text)
    assert "\n" not in problem.value.message
    return problem.value.message


def _service(folder: Path, **settings: Any) -> dict[str, Any]:
    data = _confine(folder, json.dumps({"services": {"web": {"image": "any", **settings}}}))
    return data["services"]["web"]


def test_the_usual_file_runs_with_our_limits_and_label(tmp_path: Path) -> None:
    (tmp_path / "assets").mkdir()
    data = _confine(tmp_path, USUAL)
    client, database = data["services"]["client"], data["services"]["database"]
    for service in (client, database):
        assert (service["mem_limit"], service["memswap_limit"], service["pids_limit"]) == (100, 100, 10)
        assert "deploy" not in service
    assert client["labels"] == {"ours": ""}
    assert database["labels"] == {"a": "b", "ours": ""}
    assert client["build"] == {"context": ".", "dockerfile": "Dockerfile"}
    assert set(data) == {"services", "volumes", "networks"}


@pytest.mark.parametrize(
    ("port", "bound"),
    [
        ("${HOST_PORT}:8080", "127.0.0.1:${HOST_PORT}:8080"),
        ("${HOST_PORT:-80}:8080", "127.0.0.1:${HOST_PORT:-80}:8080"),
        ("$HOST_PORT:8080", "127.0.0.1:$HOST_PORT:8080"),
        ("80:8080/tcp", "127.0.0.1:80:8080/tcp"),
        ("8080", "127.0.0.1::8080"),
        (8080, "127.0.0.1::8080"),
        ("${PORT}", "127.0.0.1::${PORT}"),
        ("127.0.0.1:${HOST_PORT:-80}:8080", "127.0.0.1:${HOST_PORT:-80}:8080"),
        ("[::1]:80:8080", "[::1]:80:8080"),
        ("127.0.0.1:80-81:8080-8081/udp", "127.0.0.1:80-81:8080-8081/udp"),
        ("80-81:8080-8081/udp", "127.0.0.1:80-81:8080-8081/udp"),
        (":8080", "127.0.0.1::8080"),
        ({"target": 80, "mode": "host"}, {"host_ip": "127.0.0.1", "target": 80, "mode": "host"}),
        ({"target": 8080, "published": "80"}, {"host_ip": "127.0.0.1", "target": 8080, "published": "80"}),
    ],
)
def test_a_port_is_opened_on_loopback(tmp_path: Path, port: Any, bound: Any) -> None:
    assert _service(tmp_path, ports=[port])["ports"] == [bound]


@pytest.mark.parametrize(
    "port",
    [
        *("0.0.0.0:80:8080", "[::]:80:8080", "${ADDRESS}:80:80", "${A:-0.0.0.0}:80:80", "192.168.0.1::80", "$A:80:80"),
        *(":80:8080", ":80:8080/udp", ":80-81:8080-8081", "::8080", "[::1:80:8080", "::80:8080", "localhost:80:8080"),
        *({"target": 80, "host_ip": "", "mode": "host"}, {"target": 80, "other": 1}, [80]),
        *({"target": 80, "host_ip": address} for address in (None, "::", "0.0.0.0", "${A}")),
    ],
)
def test_a_port_for_other_machines_is_refused(tmp_path: Path, port: Any) -> None:
    assert "services.web.ports" in _refusal(tmp_path, json.dumps({"services": {"web": {"ports": [port]}}}))


@pytest.mark.parametrize(
    "settings",
    yaml.safe_load(Path(__file__).with_name("refused_services.yaml").read_text(encoding="utf-8")),
    ids=json.dumps,
)
def test_what_leads_out_of_a_container_is_refused(tmp_path: Path, settings: dict[str, Any]) -> None:
    said = _refusal(tmp_path, json.dumps({"services": {"web": settings}}))
    assert f"services.web.{list(settings)[-1]}" in said
    assert said.endswith("Remove it, or pass --allow compose_host if you trust this task with your machine")


@pytest.mark.parametrize(
    "volume",
    [
        *("/:/host", "/var/run/docker.sock:/s", "~/.ssh:/s", "../x:/s", "./../../x:/s", "./link:/s", "./link/etc:/s"),
        *("${HOME}:/s", "./${X}:/s", "$X", "c:/etc:/s", "a/b:/s", 7),
        *({"type": "bind", "source": "/", "target": "/s"}, {"type": "bind", "source": "link", "target": "/s"}),
        *({"type": "volume", "source": "/etc", "target": "/s"}, {"type": "npipe", "source": "ab", "target": "/s"}),
        {"type": "bind", "source": ".", "target": "/s", "bind": {"propagation": "rshared"}},
    ],
    ids=json.dumps,
)
def test_a_folder_of_the_host_is_no_volume(tmp_path: Path, volume: Any) -> None:
    (tmp_path / "link").symlink_to("/")
    assert "services.web.volumes" in _refusal(tmp_path, json.dumps({"services": {"web": {"volumes": [volume]}}}))


def test_a_folder_within_another_volume_is_refused(tmp_path: Path) -> None:
    """The container that can write to the outer one could put a link in its place."""
    services = {"a": {"volumes": [".:/all"]}, "b": {"volumes": [{"type": "bind", "source": "sub", "target": "/sub"}]}}
    assert "the volume sub within another" in _refusal(tmp_path, json.dumps({"services": services}))


@pytest.mark.parametrize(
    ("section", "named"),
    [
        ("volumes: {v: {driver_opts: {type: none, o: bind, device: /}}}", "volumes.v.driver_opts"),
        ("volumes: {v: {driver: nfs}}", "volumes.v.driver"),
        ("volumes: {v: {external: true}}", "volumes.v.external"),
        ("volumes: {v: {name: other}}", "volumes.v.name"),
        ("volumes: [v]", "volumes"),
        ("volumes: {v: text}", "volumes.v"),
        ("networks: {n: {driver: host}}", "networks.n.driver"),
        ("networks: {n: {external: true}}", "networks.n.external"),
        ("networks: {n: {driver: macvlan}}", "networks.n.driver"),
        ("include: [other.yaml]", "include"),
        ("secrets: {s: {file: /etc/shadow}}", "secrets"),
        ("configs: {c: {file: /etc/shadow}}", "configs"),
    ],
)
def test_so_is_what_the_whole_file_asks_for(tmp_path: Path, section: str, named: str) -> None:
    assert f": {named}" in _refusal(tmp_path, f"services: {{web: {{image: any}}}}\n{section}\n")


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "must hold one YAML document"),
        ("services: {}", "has no services"),
        ("services: {web: }", "has no services"),
        ("a: {}\n---\nservices: {web: {image: x}}", "must hold one YAML document"),
        ("services: {web: {image: x}}\nservices: {}", "stands twice"),
        ("services: {web: !reset {image: x}}", "tag"),
        ("services: {" + ", ".join(f"s{number}: {{image: x}}" for number in range(9)) + "}", "has 9 services, and 8"),
        ("services: {web: {privileged: true, pid: a, ipc: b, uts: c, gpus: d, cgroup: e}}", "services.web.gpus, …"),
    ],
)
def test_a_file_that_could_be_read_in_two_ways_or_none_is_refused(tmp_path: Path, text: str, said: str) -> None:
    assert said in _refusal(tmp_path, text)


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("services: {web: {image: x}}\n")
    (tmp_path / "docker-compose.yaml").symlink_to(tmp_path / "secret")
    with pytest.raises(TaskError, match=r"docker-compose\.yaml: the compose file is a link"):
        confined(tmp_path / "docker-compose.yaml", memory_bytes=1, processes=1, label="ours")
    (tmp_path / "docker-compose.yaml").unlink()
    (tmp_path / ".dockerignore").symlink_to("/etc/passwd")
    assert ".dockerignore is a link" in _refusal(tmp_path, "services: {web: {build: .}}")
