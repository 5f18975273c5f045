"""Which revision of a repository somebody works on, and whether files differ from it."""

from __future__ import annotations

import os
from io import BytesIO
from pathlib import Path
from typing import BinaryIO, Final

# Nothing that the repository's own settings name is run, and nothing is written to it.
_COMMAND: Final = (
    *("git", "-c", "core.fsmonitor=false", "-c", "core.hooksPath=/dev/null"),
    *("status", "--porcelain=v2", "--branch", "--untracked-files=no", "--ignore-submodules=all"),
)
_REVISION: Final = "# branch.oid "


class GitQuestion:
    """Asks git without waiting for it: it works while we do, and the answer is there when it is wanted."""

    def __init__(self, folder: Path) -> None:
        self._process: int | None = None
        folder = folder.absolute()
        if not any(os.path.exists(os.path.join(place, ".git")) for place in (folder, *folder.parents)):
            self._output: BinaryIO = BytesIO()  # where there is no repository, git takes 4 ms to say so
            return
        reader, writer = os.pipe()
        self._output = os.fdopen(reader, "rb")
        try:
            # Not subprocess: importing it takes as long as git itself.
            self._process = os.posix_spawnp(
                "git",
                (_COMMAND[0], "-C", str(folder), *_COMMAND[1:]),
                {**os.environ, "GIT_OPTIONAL_LOCKS": "0", "LC_ALL": "C"},
                file_actions=[
                    (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
                    (os.POSIX_SPAWN_DUP2, writer, 1),
                    (os.POSIX_SPAWN_OPEN, 2, os.devnull, os.O_WRONLY, 0),
                ],
            )
        except OSError:  # there is no git
            pass
        finally:
            os.close(writer)

    def answer(self) -> tuple[str, bool] | None:
        """The commit's hash, and whether tracked files differ from it.

        None outside of a repository, in one without a commit, and where there is no git. To be called once.
        """
        with self._output:
            lines = self._output.read().decode(errors="replace").splitlines()
        if self._process is not None:
            os.waitpid(self._process, 0)
        revision = next((line.removeprefix(_REVISION) for line in lines if line.startswith(_REVISION)), "(initial)")
        if revision == "(initial)":
            return None
        return revision, any(not line.startswith("#") for line in lines)
