"""`python -m guarantee_email_agent` and the console script of the same name."""

from __future__ import annotations

import os
import signal
import sys


def main() -> int:
    """Run the command line; its exit code."""
    try:
        if sys.argv[1:2] == ["run"]:
            # The first process of a container has no default action: it would load on, and be killed after its grace.
            signal.signal(signal.SIGTERM, lambda *_: os._exit(0))
        from guarantee_email_agent.cli import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:  # while it was still loading
        return 130


if __name__ == "__main__":
    sys.exit(main())
