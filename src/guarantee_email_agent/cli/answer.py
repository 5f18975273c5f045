"""`answer`: what the agent would do with one mail file."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from guarantee_email_agent.cli import arguments

if TYPE_CHECKING:
    from guarantee_email_agent.config.settings import Config
    from guarantee_email_agent.eval.look_up_source import LookUpSource

_EXIT_CODES = """\
  0    the mail comes to an outcome: answered, not answered, or handed over to a person
  1    the mail cannot be read, or the agent stopped before an outcome
  2    configuration error: bad configuration or instruction file, missing key of the model, bad usage
  3    with --look-up: a service cannot be reached
"""
_FACTS = {"status": "status", "until": "expiration_date", "coverage": "coverage"}
"""Of the warranty system: what the option for each is called."""


def add_answer(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "answer",
        _run,
        purpose="what the agent would do with one mail file, step by step; nothing is sent",
        description="Show step by step what the agent would do with a mail. Nothing is sent or stored, and no ticket "
        "is opened. No configuration is needed: what the services say is what the options say.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("mail", metavar="MAIL", help="a mail saved as .eml; - reads it from stdin")
    add_look_up_options(parser)
    parser.add_argument(
        "--llm",
        choices=("offline", "live"),
        default="offline",
        help="who answers as the language model: offline, the instructions alone; live, the API (default: offline)",
    )
    parser.add_argument(
        "--json", dest="json_file", type=Path, metavar="FILE", help="also write everything as JSON; - is stdout"
    )
    arguments.add_usual_options(parser)


def add_look_up_options(parser: arguments.Parser) -> None:
    parser.add_argument(
        "--status", choices=("valid", "expired", "not_found", "other"), help="what the warranty system says"
    )
    parser.add_argument("--until", metavar="DATE", help="the warranty's last day, as the system writes it: 2027-01-31")
    parser.add_argument("--coverage", metavar="WORD", help="what the warranty covers, such as full")
    parser.add_argument(
        "--answer",
        action="append",
        default=[],
        metavar="LOOKUP.KEY=VALUE",
        help="what another look-up says: orders.status=shipped; may be given several times",
    )
    parser.add_argument("--look-up", action="store_true", help="ask the configured services instead")
    parser.add_argument(
        "--previous-reply",
        metavar="SCENARIO[:TICKET]",
        help="the mail answers a reply of ours, of that scenario and with that ticket",
    )


def given_look_ups(options: argparse.Namespace, config: Config) -> LookUpSource:
    """Raises ConfigurationError for options that contradict each other, or an answer that no service could give."""
    from guarantee_email_agent.eval.look_up_source import GivenFact, look_up_source, parse_given_facts
    from guarantee_email_agent.instructions.look_up import WARRANTY
    from guarantee_email_agent.services.look_ups import configured_look_ups

    look_ups = configured_look_ups(config)
    given = [
        GivenFact(f"--{name}", WARRANTY.name, key, value)
        for name, key in _FACTS.items()
        if (value := getattr(options, name)) is not None
    ]
    return look_up_source([*given, *parse_given_facts(options.answer, look_ups)], look_ups, ask=options.look_up)


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.eval.answer_command import AnswerOptions, answer_mail

    config = arguments.load_config_and_log(options.config, options.verbose)
    source = given_look_ups(options, config)
    return answer_mail(
        arguments.options_as(AnswerOptions, options, look_up=source),
        config,
        arguments.results_stream(options),
        arguments.read_stdin,
    )
