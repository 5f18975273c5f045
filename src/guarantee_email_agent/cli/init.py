"""`init`: put config, instructions and scenarios into a folder to edit."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.errors import EXIT_FAILURE, EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.utils.terminal import Terminal

_EXIT_CODES = """\
  0    every file is there as it comes with this version; with --language: everything to translate is there
  1    files that are there and differ were kept; stdout names each, and the translations of them that were left out
  2    the folder cannot be written, bad usage, or with --language bad configuration or instruction files
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
        "directory", nargs="?", type=Path, default=Path(), metavar="DIR", help="the folder (default: this one)"
    )
    parser.add_argument(
        "--language",
        metavar="CODE",
        help="such as nl: write into the folder what has to be translated so that mail in this language is answered, "
        "and list what still is",
    )


def _run(options: argparse.Namespace) -> int:
    arguments.log_to_console(verbose=False)
    terminal = arguments.results_terminal(options)
    if options.language is None:
        return _fill(options, terminal)
    from guarantee_email_agent.instructions.new_language import check_language

    is_new = not (options.directory / "config.yaml").exists()
    check_language(options.language, "en" if is_new else None)  # before files are written, whose default that is
    if is_new:
        _fill(options, terminal)
    _add_language(options.directory, options.language, terminal)
    return EXIT_SUCCESS


def _fill(options: argparse.Namespace, terminal: Terminal) -> int:
    from guarantee_email_agent.config.built_in_files import fill_starter_folder
    from guarantee_email_agent.utils.terminal import pluralize

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


def _add_language(directory: Path, language: str, terminal: Terminal) -> None:
    from guarantee_email_agent.config.loader import built_in_files, load_config
    from guarantee_email_agent.eval.loader import left_for_language
    from guarantee_email_agent.instructions.new_language import add_language
    from guarantee_email_agent.instructions.reply_markup import UNTRANSLATED
    from guarantee_email_agent.services.look_ups import instruction_files
    from guarantee_email_agent.utils.terminal import pluralize

    config = load_config((directory / "config.yaml").absolute(), cwd=directory)
    if "instructions" in built_in_files(config, directory):
        where = printable(str(directory))
        raise ConfigurationError(f"{where} holds no instructions. Run init there without --language", "init_no_folder")
    added = add_language(instruction_files(config), language)
    terminal.line(f"{pluralize(len(added.written), 'new file')} to translate into '{language}'")
    for file, count in added.untranslated.items():
        terminal.line(f"to translate, behind each {UNTRANSLATED}: {printable(os.path.relpath(file))} ({count})")
    if added.lacking:
        terminal.line(f"not in the lexicon of '{language}': {', '.join(added.lacking)}")
    path, reasons = added.hand_over
    shown = printable(os.path.relpath(path))
    terminal.line(f"not known: whether {shown} holds phrases in '{language}' for {', '.join(reasons)}")
    if names := list(left_for_language(config.eval.test_suite_path, language)):
        terminal.line(f"expects that a person answers '{language}': {', '.join(map(printable, names))}")
    if added.untranslated:
        terminal.line(f"As long as a {UNTRANSLATED} is left, no mail is answered in '{language}'.")
    else:
        terminal.line(f"Nothing is left to translate: mail in '{language}' is answered.")
