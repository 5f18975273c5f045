import subprocess
from pathlib import Path

import pytest

from guarantee_email_agent.utils.git_state import GitQuestion


def git(folder: Path, *arguments: str) -> str:
    command = ("git", "-C", str(folder), "-c", "user.name=Jane", "-c", "user.email=jane@example.com", *arguments)
    return subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.strip()


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    (tmp_path / "file").write_text("old")
    git(tmp_path, "add", "file")
    git(tmp_path, "commit", "--quiet", "--message", "First")
    return tmp_path


def test_a_file_that_differs_makes_it_dirty(repository: Path) -> None:
    (repository / "file").write_text("new")
    assert GitQuestion(repository).answer() == (git(repository, "rev-parse", "HEAD"), True)


def test_a_repository_without_a_commit_and_a_folder_without_a_repository_have_none(tmp_path: Path) -> None:
    assert GitQuestion(tmp_path).answer() is None
    git(tmp_path, "init", "--quiet")
    assert GitQuestion(tmp_path).answer() is None


def test_without_git_there_is_none(repository: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    assert GitQuestion(repository).answer() is None


def test_no_program_that_the_repository_names_is_run(repository: Path) -> None:
    program = repository / "program"
    program.write_text(f"#!/bin/sh\ntouch {repository}/ran\n")
    program.chmod(0o755)
    git(repository, "config", "core.fsmonitor", str(program))
    assert GitQuestion(repository).answer() is not None
    assert not (repository / "ran").exists()
