"""Where the runs of `eval`, `grade` and `solve` are kept, and how many."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from guarantee_email_agent.files.fields import number, setting

FILE_NAME: Final = "runs.db"
_PROGRAM: Final = "guarantee-email-agent"


@dataclass(frozen=True, slots=True)
class StoreSettings:
    """What `eval`, `grade` and `solve` did, for `--resume` and for comparisons."""

    file: Path | None = setting(
        None,
        "The SQLite file of the runs, made where it is missing; by default `runs.db` beside the configuration file, "
        "and without one in `$XDG_STATE_HOME/guarantee-email-agent`.",
    )
    keep_runs: int | None = number(
        1000,
        "Runs that are kept; older ones go, but for the newest of each suite that passed. `null`: none goes.",
        1,
        1_000_000,
    )


def run_store_file(settings: StoreSettings, source: Path | None, environ: Mapping[str, str] | None = None) -> Path:
    """The file of the run store. source: the configuration file; None where there is none, so that the working
    directory is no project of ours and nothing may be left there.
    """
    if settings.file is not None:
        return settings.file
    if source is not None:
        return source.parent / FILE_NAME
    environ = os.environ if environ is None else environ
    state = environ.get("XDG_STATE_HOME", "")
    if not os.path.isabs(state):  # the XDG base directory specification: others are to be ignored
        state = os.path.join(os.path.expanduser("~"), ".local", "state")
    return Path(state, _PROGRAM, FILE_NAME)
