"""`mock`: the tools of a real MCP server as mocks of a suite, and whether they are still the same."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path

from guarantee_email_agent.cli import arguments
from guarantee_email_agent.utils.distribution import require_extra

_EXIT_CODES = """\
  0    import, record: the file was written; check: the server's tools are as the file has them
  1    general failure
  2    configuration error: the file is there already, missing or bad, bad configuration, bad usage
  3    the server cannot be started or reached, or offers nothing that could be mocked
  4    check: the server has moved on
"""


def add_mock(commands: arguments.Commands) -> None:
    parser = arguments.add_command(
        commands,
        "mock",
        _run,
        purpose="take the tools of a real MCP server over into mocks, or tell where it has moved on",
        description="import: write the tools that an MCP server lists to servers/NAME.yaml beside the scenarios. "
        "check: tell how they differ from that file by now. No tool is called. record: stand between an agent and the "
        "server on stdin and stdout, and write what passes as a scenario, without personal data.",
        exit_codes=_EXIT_CODES,
    )
    parser.add_argument("action", choices=("import", "record", "check"), help="what to do")
    parser.add_argument("name", metavar="NAME", help="what scenarios call the server under mock_responses")
    parser.add_argument("--eval-dir", "--out", type=Path, metavar="DIR", help="folder with the scenario files")
    parser.add_argument(
        "--env",
        action="append",
        default=[],
        metavar="VARIABLE",
        help="an environment variable that the program gets beside PATH, HOME and the like, or that holds the "
        "Authorization of a URL; may be repeated",
    )
    arguments.add_usual_options(parser)
    parser.add_argument("server", nargs="+", metavar="SERVER", help="its URL, or -- and the command that starts it")


def _run(options: argparse.Namespace) -> int:
    from guarantee_email_agent.runlog.suite_manifest import refuse_drawn
    from guarantee_email_agent.utils.process import signals_as_ctrl_c
    from guarantee_email_agent.utils.terminal import Terminal

    if options.eval_dir is None:
        options.eval_dir = arguments.load_config_and_log(options.config, options.verbose).eval.test_suite_path
    else:
        arguments.log_to_console(options.verbose)
    if options.action != "check":
        refuse_drawn(options.eval_dir)
    require_extra("mcp", f"mock {options.action}", "mcp", "jsonschema")
    from guarantee_email_agent.eval import server_recording

    launch = server_recording.server_launch(options.server, options.env, os.environ)
    if options.action == "record":  # the agent on the other side of stdout ends it, with SIGTERM if need be
        terminal = Terminal(arguments.BrokenPipeSafeStream(sys.stderr))
        return server_recording.record_server(options.eval_dir, options.name, launch, arguments.today(), terminal)
    work = server_recording.import_server if options.action == "import" else server_recording.check_server
    with signals_as_ctrl_c():
        return work(options.eval_dir, options.name, launch, arguments.results_terminal(options))
