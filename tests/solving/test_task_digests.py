"""What of a task outdates an earlier run of it, and what its verdict."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from tasks_and_sandboxes import write_task

from guarantee_email_agent.judging.task import load_task
from guarantee_email_agent.solving.run_recorder import judge_digest, work_digest

RECORD = Path("/nonesuch/task.json")
YAML = "instruction: Say 42\nsandbox: {memory_mb: 64}\nwanted: 42\n"


def write_all(folder: Path, *, container: bool = False) -> Path:
    write_task(folder, YAML)
    (folder / "helper.py").write_text("WANTED = 42\n")
    (folder / "wanted.json").write_text("42\n")
    (folder / "assets" / "deep").mkdir(parents=True)
    (folder / "assets" / "deep" / "data.csv").write_text("1,2\n")
    if container:
        (folder / "Dockerfile").write_text("FROM scratch\n")
    return folder


def write(name: str, text: str) -> Callable[[Path], object]:
    return lambda folder: (folder / name).write_text(text)


def digests(folder: Path) -> tuple[str, str]:
    task = load_task(folder)
    return work_digest(task, RECORD), judge_digest(task, RECORD)


@pytest.mark.parametrize(
    ("change", "work_changes", "judge_changes"),
    [
        (write("test.py", "def test(result): ..."), False, True),
        (write("helper.py", "WANTED = 43\n"), False, True),
        (write("new.py", ""), False, True),
        (write("wanted.json", "43\n"), False, True),
        (write("task.yaml", YAML.replace("wanted: 42", "wanted: 43")), False, True),
        (write("task.yaml", f"{YAML}judge_network: true\n"), False, True),
        (write("task.yaml", YAML.replace("Say 42", "Say 43")), True, True),
        (write("task.yaml", YAML.replace("64", "65")), True, True),
        (write("task.yaml", f"{YAML}client_type: shell\n"), True, True),
        (write("task.yaml", f"# said anew\n{YAML}"), False, False),
        (write("assets/deep/data.csv", "1,3\n"), True, False),
        (lambda folder: (folder / "assets" / "empty").mkdir(), True, False),
        (lambda folder: (folder / "assets" / "deep" / "data.csv").chmod(0o755), True, False),
        (lambda folder: (folder / "assets" / "deep").rename(folder / "assets" / "other"), True, False),
        (lambda folder: (folder / "assets" / "link").symlink_to("/dev/zero"), True, False),
        (lambda folder: os.mkfifo(folder / "assets" / "pipe"), True, False),
        (write("Dockerfile", "FROM scratch\n"), True, False),
        (write("docker-compose.yaml", "services: {}\n"), True, False),
        (lambda folder: (folder / "__pycache__").mkdir(), False, False),
        (write(".notes", "mine"), False, False),
        (lambda folder: os.utime(folder / "test.py", (1, 1)), False, False),
    ],
)
def test_what_is_out_of_date(
    tmp_path: Path, change: Callable[[Path], object], work_changes: bool, judge_changes: bool
) -> None:
    folder = write_all(tmp_path / "task")
    work, judge = digests(folder)
    change(folder)
    new_work, new_judge = digests(folder)
    assert (new_work != work, new_judge != judge) == (work_changes, judge_changes)


@pytest.mark.parametrize(
    ("name", "work_changes"), [("Dockerfile", True), ("wanted.json", True), ("helper.py", False), ("test.py", False)]
)
def test_what_a_container_is_built_from_is_part_of_the_work(tmp_path: Path, name: str, work_changes: bool) -> None:
    folder = write_all(tmp_path / "task", container=True)
    work, _ = digests(folder)
    (folder / name).write_text("def test(result): ...")
    assert (digests(folder)[0] != work) == work_changes


def test_a_module_that_judges_share_by_links_is_part_of_each(tmp_path: Path) -> None:
    folder, shared = write_all(tmp_path / "task"), tmp_path / "shared.py"
    shared.write_text("WANTED = 42\n")
    (folder / "shared.py").symlink_to(shared)
    (folder / "loop").symlink_to("loop")
    work, judge = digests(folder)
    shared.write_text("WANTED = 43\n")
    assert digests(folder)[0] == work
    assert digests(folder)[1] != judge


@pytest.mark.parametrize("place", [".", "results", "out/results"])
def test_records_in_the_task_are_no_part_of_it(tmp_path: Path, place: str) -> None:
    folder = write_all(tmp_path / "task", container=True)
    records = folder / place
    records.mkdir(parents=True, exist_ok=True)
    task = load_task(folder)

    def both() -> tuple[str, str]:
        return work_digest(task, records / "task.json"), judge_digest(task, records / "task.json")

    before = both()
    (records / "task.json").write_text("{}")
    assert both() == before
