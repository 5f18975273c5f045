"""The files that a user edits, as they come with the package: beside the code in a wheel, at the top of a checkout."""

from __future__ import annotations

from pathlib import Path
from typing import Final

EDITED_FILES: Final = ("config.yaml", "instructions", "evals/scenarios")
"""What `init` copies: files, and folders with all that is in them."""

_PACKAGE: Final = Path(__file__).parent.parent


def shipped_path(name: str) -> Path | None:
    """Where one of `EDITED_FILES` is; None where the package came without it."""
    packaged = _PACKAGE / "defaults" / name
    if packaged.exists():
        return packaged
    checkout = _PACKAGE.parent.parent
    path = checkout / name
    return path if path.exists() and (checkout / "pyproject.toml").is_file() else None
