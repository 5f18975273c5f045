"""`view`: the runs in a web browser."""

from __future__ import annotations

import argparse
from pathlib import Path

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.distribution import require_extra
from guarantee_email_agent.utils.errors import EXIT_SUCCESS
from guarantee_email_agent.utils.text import printable

_EXIT_CODES = """\
  0    it was told to end, by Ctrl-C or SIGTERM
  1    general failure
  2    configuration error: no run store, one that cannot be read, a port that cannot be used, the extra is missing,
       bad configuration, bad usage
"""
_PORT = 8420


def add_view(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "view",
        _run,
        purpose="browse runs in the web browser",
        description="Serve pages on this machine alone: runs over time, one run with its results, one result with "
        "everything that happened, and two runs side by side. With --label it asks a person for labels; else the "
        "pages only read. Ctrl-C ends it.",
        exit_codes=_EXIT_CODES,
        interrupted="",
    )
    parser.add_argument(
        "--port",
        type=arguments.port,
        default=_PORT,
        metavar="N",
        help=f"port on 127.0.0.1; 0: any that is free (default: {_PORT})",
    )
    parser.add_argument(
        "--store", type=Path, metavar="FILE", help="file of the run store (default: that of the configuration)"
    )
    parser.add_argument(
        "--label",
        type=Path,
        metavar="DIR",
        help="label what 'sample' or 'rehearse' wrote into that folder, mail by mail",
    )
    arguments.add_usual_options(parser)


def _run(options: argparse.Namespace) -> int:
    config = arguments.load_config_and_log(options.config, options.verbose)
    require_extra("view", "view", "starlette", "uvicorn")
    from guarantee_email_agent.viewer.pages import Site
    from guarantee_email_agent.viewer.server import serve

    store = options.store or config.run_store_file
    labels = None
    if options.label is not None:
        from guarantee_email_agent.eval.sealing.mail_labels import MailLabels
        from guarantee_email_agent.eval.sealing.rehearse_command import PAIRS, PairLabels

        has_pairs = any(options.label.glob(PAIRS))
        labels = PairLabels(options.label) if has_pairs else MailLabels(options.label, config)
        labels.items()  # what is wrong with them shows now
    site = Site(store, labels)
    stream = arguments.results_stream(options)

    def announce(address: str) -> None:
        what = f"the runs of {printable(str(store))}" if labels is None else f"{labels.title}, to be labelled"
        stream.write(f"{address}{'' if labels is None else 'label'} shows {what}. Ctrl-C ends it\n")
        stream.flush()

    serve(site, options.port, announce)
    return EXIT_SUCCESS
