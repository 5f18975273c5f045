"""`python -m guarantee_email_agent` and the console script of the same name."""

from __future__ import annotations

import sys


def main() -> int:
    """Run the command line; its exit code."""
    try:
        from guarantee_email_agent.cli import run

        return run(sys.argv[1:])
    except KeyboardInterrupt:  # while it was still loading
        return 130


if __name__ == "__main__":
    sys.exit(main())
