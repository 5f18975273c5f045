from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from elsewhere import Elsewhere

from guarantee_email_agent.executors.executor import LocalPath
from guarantee_email_agent.executors.remote_work import map_remotely


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
