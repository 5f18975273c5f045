from __future__ import annotations

import os
from pathlib import Path

import pytest

from guarantee_email_agent.files.new_file import write_new_file


def test_a_file_is_written_whole(tmp_path: Path) -> None:
    assert write_new_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"new"


def test_a_file_that_is_there_stays(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"old")
    assert not write_new_file(tmp_path / "a", b"new")
    assert (tmp_path / "a").read_bytes() == b"old"


def test_a_broken_link_stays_and_nothing_is_written_behind_it(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to(tmp_path / "elsewhere")
    assert not write_new_file(tmp_path / "a", b"new")
    assert not (tmp_path / "elsewhere").exists()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full on this system")
def test_nothing_stays_of_a_file_that_does_not_fit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_open = os.open
    # A full disk: the descriptor that the file is written through refuses every byte.
    monkeypatch.setattr(
        os, "open", lambda path, *more: (os.close(real_open(path, *more)), real_open("/dev/full", os.O_WRONLY))[1]
    )
    with pytest.raises(OSError, match="No space left"):
        write_new_file(tmp_path / "a", b"new" * 10)
    assert not (tmp_path / "a").exists()
