"""No core files: one would hold customers' mail, and secrets."""

from __future__ import annotations


def forbid_core_files() -> None:
    """Of this process, and of those that it starts."""
    try:
        import resource
    except ImportError:  # Windows has neither
        return
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
