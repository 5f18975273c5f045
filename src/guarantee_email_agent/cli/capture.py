"""`capture`: turn a real mail into a new scenario file."""

from __future__ import annotations

import argparse
import re
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.cli.answer import add_look_up_options, given_look_ups
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.config.settings import Config
    from guarantee_email_agent.email.parsing.email import Email
    from guarantee_email_agent.services.ports import Thread

_EXIT_CODES = """\
  0    the file was written
  1    the mail cannot be read or found, or the agent comes to no outcome with it
  2    configuration error: the file is there already or cannot be written, bad configuration, bad usage
  3    the mailbox or, with --look-up, a service cannot be reached
"""


def add_capture(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "capture",
        _run,
        purpose="turn a real mail into a new scenario file",
        description="Write a scenario from a real mail: personal data replaced by the same thing everywhere, and what "
        "the agent does now as what is expected, marked review: true. Nothing is sent, and no file is replaced.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument(
        "mail",
        metavar="MAIL",
        nargs="?",
        help="a mail saved as .eml, - for stdin, or the Message-ID, <…@…>, of a mail in the configured mailbox",
    )
    parser.add_argument(
        "--id", dest="scenario_id", metavar="ID", help="such as valid_warranty_083 (default: next free)"
    )
    parser.add_argument(
        "--wrong",
        action="store_true",
        help="in place of MAIL: each mail of the mailbox that a person gave the keyword 'wrong', and that has no "
        "scenario yet; look-ups are asked where no answer is given",
    )
    parser.add_argument("--eval-dir", type=Path, metavar="DIR", help="folder with the scenario files")
    add_look_up_options(parser)
    arguments.add_usual_options(parser)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.config.loader import built_in_files
    from guarantee_email_agent.eval.capture.capture_command import CaptureOptions, capture_mail, capture_wrong
    from guarantee_email_agent.runlog.suite_manifest import refuse_drawn

    if options.scenario_id is not None and not re.fullmatch(r"[a-z0-9_]{1,80}_\d{1,6}", options.scenario_id):
        raise ConfigurationError(
            f"--id {options.scenario_id!r} is no category with a number. Write it as valid_warranty_083",
            "cli_bad_usage",
        )
    one_mail = (options.scenario_id, options.previous_reply)
    if (options.mail is None) is not options.wrong or (options.wrong and any(one_mail)):
        raise ConfigurationError(
            "Name one mail, with --id and --previous-reply if need be, or --wrong for all that are flagged so",
            "cli_bad_usage",
        )
    config = arguments.load_config_and_log(options.config, options.verbose)
    source = given_look_ups(options, config)
    if options.eval_dir is None and "scenarios" in built_in_files(config):
        raise ConfigurationError(
            f"The scenarios in use are the built-in ones. Run '{arguments.PROGRAM} init' to have them here, or name a "
            "folder with --eval-dir",
            "capture_built_in_suite",
        )
    chosen = arguments.options_as(
        CaptureOptions,
        options,
        directory=options.eval_dir or config.eval.test_suite_path,
        look_up=replace(source, ask=source.ask or (options.wrong and not source.answers)),
        today=arguments.today(),
    )
    refuse_drawn(chosen.directory)
    stream = arguments.results_stream(options)
    if options.wrong:
        return capture_wrong(chosen, config, stream, lambda email: find_thread(email, config))
    return capture_mail(
        chosen,
        config,
        stream,
        lambda: _read_mail(options.mail, config),
        lambda email: find_thread(email, config) if options.mail.startswith("<") else None,
    )


def _read_mail(mail: str, config: Config) -> tuple[bytes, Email]:
    if mail.startswith("<"):
        from guarantee_email_agent.eval.capture.capture_command import MESSAGE_ID, read_mailbox_mail

        if not MESSAGE_ID.fullmatch(mail):
            raise ConfigurationError(f"{printable(mail)} is no Message-ID. Write it as <text@domain>", "cli_bad_usage")
        return read_mailbox_mail(mail, config)
    from guarantee_email_agent.eval.answer_command import read_mail_file

    if "@" in mail and not Path(mail).exists():
        raise ConfigurationError(
            f"There is no file {printable(mail)}. If it is the Message-ID of a mail in the mailbox, write it in angle "
            f"brackets and quotes: '<{printable(mail)}>'",
            "cli_bad_usage",
        )
    return read_mail_file(mail, arguments.read_stdin)


def find_thread(email: Email, config: Config) -> Thread | None:
    """The conversation that a mail of the mailbox goes on with, by the agent's ledger; None where there is none."""
    from guarantee_email_agent.agent.identity_key import known_identity_key
    from guarantee_email_agent.email.conversation import answered_message_ids
    from guarantee_email_agent.email.identity import mail_identity
    from guarantee_email_agent.ledger.opening import open_ledger_to_read

    location = config.ledger_location
    answered = answered_message_ids(email)
    if not answered or ("://" not in location and not Path(location).is_file()):
        return None
    key = known_identity_key(config)
    if key is None or (ledger := open_ledger_to_read(location, key=key)) is None:
        return None
    with closing(ledger):
        return ledger.read_thread(mail_identity(email, key), answered)
