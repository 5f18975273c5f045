"""`init`: put config, instructions and scenarios into a folder to edit."""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from pathlib import Path

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.cli.standard_streams import BrokenPipeSafeStream
from guarantee_email_agent.utils.errors import EXIT_FAILURE, EXIT_SUCCESS

_EXIT_CODES = """\
exit codes:
  0    every file is there as it comes with this version
  1    files that are there and differ were kept; stdout names each, and the translations of them that were left out
  2    the folder cannot be written, or bad usage
  130  interrupted
"""


def add_init(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "init",
        _run,
        purpose="put config, instructions and scenarios into a folder to edit; never overwrites",
        description="Put config.yaml, instructions/ and evals/scenarios/ into a folder to edit. eval, run and check "
        "use them when they are started there. A file that is there is never replaced, and none that translates a "
        "reply of your own is added; run it again after an upgrade to add what is new and to see what differs.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument(
        "directory", nargs="?", type=_folder, default=Path(), metavar="DIR", help="the folder (default: this one)"
    )


def _folder(text: str) -> Path:
    """A shell makes an empty text of a variable that is not set, and that would be the folder it runs in."""
    if not text.strip():
        raise argparse.ArgumentTypeError(f"'{text}' names no folder; leave it out for this one")
    return Path(text)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.config.built_in_files import fill_starter_folder
    from guarantee_email_agent.utils.terminal import Terminal, pluralize
    from guarantee_email_agent.utils.text import printable

    arguments.log_to_console(verbose=False)
    terminal = Terminal(BrokenPipeSafeStream(sys.stdout))
    filled = fill_starter_folder(options.directory)
    where = printable(str(options.directory.absolute()))
    for place, count in Counter(str(path.parent) for path in filled.written).items():
        terminal.line(f"{pluralize(count, 'new file')} in {printable(str(options.directory / place))}")
    if filled.same:
        terminal.line(f"{pluralize(len(filled.same), 'file')} as they come with this version")
    for path in filled.different:
        terminal.line(f"kept, differs from this version's: {printable(str(options.directory / path))}")
    for path in filled.left_out:
        terminal.line(f"left out, translates a file of your own: {printable(str(options.directory / path))}")
    terminal.line(f"eval, run and check, started in {where}, use these files.")
    return EXIT_FAILURE if filled.different else EXIT_SUCCESS
