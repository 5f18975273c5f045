"""The store of a run that nobody keeps: its reports are made of it, and it goes with the command."""

from __future__ import annotations

from contextlib import ExitStack
from pathlib import Path

from guarantee_email_agent.runlog.records import KeptRun
from guarantee_email_agent.utils.errors import ConfigurationError


def temporary_store(resources: ExitStack) -> KeptRun:
    """A store in a folder that goes with `resources`. Raises ConfigurationError where there can be none."""
    import tempfile  # few runs need it

    try:
        folder = resources.enter_context(tempfile.TemporaryDirectory(prefix="runs-", ignore_cleanup_errors=True))
    except OSError as error:
        raise not_kept(error.strerror or str(error)) from None
    return KeptRun(Path(folder) / "runs.sqlite3", None, lambda: "")


def not_kept(reason: str) -> ConfigurationError:
    """There is nothing to make the reports of a run of."""
    problem = f"The results of this run cannot be kept for its reports ({reason})"
    return ConfigurationError(f"{problem}. Make room, or name another temporary folder in TMPDIR", "report_no_room")
