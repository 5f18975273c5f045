import os
from pathlib import Path
from typing import Any

import pytest
from elsewhere import Elsewhere

from guarantee_email_agent.executors import remote_work
from guarantee_email_agent.executors.executor import LocalPath
from guarantee_email_agent.executors.remote_work import bundle, map_remotely, unpacked
from guarantee_email_agent.utils.errors import ConfigurationError


def look(item: dict[str, Any], folder: Path) -> dict[str, Any]:
    """As a worker for which nothing is where it was."""
    file: Path = item["file"]
    (folder / "outputs").mkdir()
    (folder / "outputs" / "1.txt").write_text(f"in {file.resolve()}")
    return {
        "read": [file.read_text(), Path(item["folder"], "b").read_text()],
        "said": ([f"{file}:3: no", file, item["folder"], file.parent / "other"], {"bytes": os.fsencode(file)}),
        "not_sent": (item["not_sent"], item["not_sent"].exists()),
    }


def test_work_finds_copies_and_its_results_name_the_originals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for name in ("a", "b", "more"):
        (tmp_path / name).write_text(name)
    file, more = tmp_path / "a", tmp_path / "more"
    item = {"file": file, "folder": LocalPath("."), "not_sent": more}
    [(result, files)] = map_remotely(Elsewhere(), look, [item], lambda item: [item["file"]], shared=["b"])
    assert result == {
        "read": ["a", "b"],
        "said": ([f"{file}:3: no", file, ".", tmp_path / "other"], {"bytes": os.fsencode(file)}),
        "not_sent": (more, False),
    }
    assert files == {"outputs/1.txt": f"in {file}".encode()}


def test_files_and_folders_are_there_again_below_another_folder(tmp_path: Path) -> None:
    (tmp_path / "task" / "assets" / "empty").mkdir(parents=True)
    (tmp_path / "task" / "test.py").write_bytes(b"\xff\x00")
    program = tmp_path / "task" / "assets" / "run.sh"
    program.write_text("true")
    program.chmod(0o755)
    with unpacked(bundle([tmp_path / "task", tmp_path / "gone"])) as root:
        task = Path(f"{root}{tmp_path}/task")
        assert (task / "test.py").read_bytes() == b"\xff\x00"
        assert not os.access(task / "test.py", os.X_OK)
        assert os.access(task / "assets" / "run.sh", os.X_OK)
        assert (task / "assets" / "empty").is_dir()
        assert os.listdir(task.parent) == ["task"]
    assert not task.exists()


def test_a_link_stays_one_and_leads_to_a_copy(tmp_path: Path) -> None:
    (tmp_path / "shared").mkdir()
    (tmp_path / "shared" / "helper.py").write_text("x = 1")
    (tmp_path / "task").mkdir()
    (tmp_path / "task" / "helper.py").symlink_to("../shared/helper.py")
    (tmp_path / "task" / "absolute.py").symlink_to(tmp_path / "shared" / "helper.py")
    (tmp_path / "task" / "round").symlink_to(".")
    with unpacked(bundle([tmp_path / "task"])) as root:
        task = Path(f"{root}{tmp_path}/task")
        assert os.readlink(task / "helper.py") == "../shared/helper.py"
        assert (task / "helper.py").read_text() == "x = 1"
        assert (task / "absolute.py").read_text() == "x = 1"
        assert (task / "round" / "helper.py").read_text() == "x = 1"


def test_the_same_file_may_be_there_twice(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("a")
    (tmp_path / "link").symlink_to("a")
    with unpacked(2 * bundle([tmp_path / "link"])) as root:
        assert Path(f"{root}{tmp_path}/link").read_text() == "a"


def test_what_cannot_be_read_ends_in_one_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os.path, "isfile", lambda _: True)  # it was there a moment ago
    with pytest.raises(ConfigurationError, match=r"gone: it cannot be sent to the cluster \(No such file") as raised:
        bundle([tmp_path / "gone"])
    assert raised.value.exit_code == 2


def test_files_that_are_too_large_together_are_not_sent(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_work, "MAX_BUNDLE_BYTES", 10)
    for name in ("a", "b"):
        (tmp_path / name).write_bytes(b"123456")
    with pytest.raises(ConfigurationError, match=r"b: more than 0 MiB .+ Move large files away"):
        bundle([tmp_path])
    assert len(bundle([tmp_path / "a"])) == 1
