from __future__ import annotations

import os
from pathlib import Path

import pytest

from guarantee_email_agent.executors import file_bundle
from guarantee_email_agent.executors.file_bundle import FileBundle, unpacked
from guarantee_email_agent.utils.errors import ConfigurationError


def test_files_and_folders_are_there_again_below_another_folder(tmp_path: Path) -> None:
    (tmp_path / "task" / "assets" / "empty").mkdir(parents=True)
    (tmp_path / "task" / "test.py").write_bytes(b"\xff\x00")
    program = tmp_path / "task" / "assets" / "run.sh"
    program.write_text("true")
    program.chmod(0o755)
    with unpacked(FileBundle.of([tmp_path / "task", tmp_path / "gone"])) as copies:
        task = copies.path(tmp_path / "task")
        assert (task / "test.py").read_bytes() == b"\xff\x00"
        assert not os.access(task / "test.py", os.X_OK)
        assert os.access(task / "assets" / "run.sh", os.X_OK)
        assert (task / "assets" / "empty").is_dir()
        assert not copies.path(tmp_path / "gone").exists()
    assert not task.exists()


def test_a_link_stays_one_and_leads_to_a_copy(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "helper.py").write_text("x = 1")
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "helper.py").symlink_to("../shared/helper.py")
    (tmp_path / "task" / "absolute.py").symlink_to(tmp_path / "shared" / "helper.py")
    (tmp_path / "task" / "round").symlink_to(".")
    with unpacked(FileBundle.of([tmp_path / "task"])) as copies:
        task = copies.path(tmp_path / "task")
        assert os.readlink(task / "helper.py") == "../shared/helper.py"
        assert (task / "helper.py").read_text() == "x = 1"
        assert (task / "absolute.py").read_text() == "x = 1"
        assert (task / "round" / "helper.py").read_text() == "x = 1"


def test_two_bundles_may_hold_the_same_file(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "link").symlink_to("a")
    bundle = FileBundle.of([tmp_path / "link"])
    with unpacked(bundle, bundle) as copies:
        assert copies.path(tmp_path / "link").read_text() == "a"


def test_paths_of_copies_are_told_as_those_of_the_originals(tmp_path: Path) -> None:
    with unpacked(FileBundle()) as copies:
        copy = str(copies.path(tmp_path / "test.py"))
        said = {"a": [f"File {copy}, line 1", 3], "b": {"c": copy}, "d": None}
        there = str(tmp_path / "test.py")
        expected = {"a": [f"File {there}, line 1", 3], "b": {"c": there}, "d": None}
        assert copies.with_original_paths(said) == expected


def test_what_cannot_be_read_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isfile", lambda _: True)  # it was there a moment ago
    with pytest.raises(ConfigurationError, match=r"gone: it cannot be sent to the cluster \(No such file") as raised:
        FileBundle.of([tmp_path / "gone"])
    assert raised.value.exit_code == 2


def test_files_that_are_too_large_together_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(file_bundle, "MAX_BUNDLE_BYTES", 10)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"123456")
    with pytest.raises(ConfigurationError, match=r"b: more than 0 MiB .+ Move large files away"):
        FileBundle.of([tmp_path])
    assert len(FileBundle.of([tmp_path / "a"]).files) == 1
