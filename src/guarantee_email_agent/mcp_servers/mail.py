"""MCP server for a mailbox, over a Maildir or IMAP and SMTP: `guarantee-email-agent mcp-server mail`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import fields
from typing import Any, Final, Literal, get_args, get_origin, get_type_hints

from guarantee_email_agent.config.settings import Imap, MailboxSettings, Secrets, Smtp
from guarantee_email_agent.files.problems import dotted_path
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.mcp_servers.mailbox_tools import INSTRUCTIONS, MailboxTools
from guarantee_email_agent.mcp_servers.stdio import CommandLine, exit_with_error, serve
from guarantee_email_agent.services.mail.open_store import open_mail_store
from guarantee_email_agent.services.tool_error import ToolError

_SETTING: Final = re.compile(r"\bmailbox\.((?:imap|smtp)\.[a-z_]+|from_address|sent_copy)")
_OPTIONS: Final = {
    "from_address": "--from",
    "copy_wait_s": "--copy-wait",
    "imap": "--imap-security",
    "smtp": "--smtp-security",
    "imap.ca_file": "--ca-file",
    "imap.sent_folder": "--sent-folder",
    "imap.drafts_folder": "--drafts-folder",
    "imap.marks": "--marks",
    "imap.mark_folder": "--mark-parent",
}
"""By the name of a setting; of others the two differ by their punctuation alone."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse_options(arguments)
    settings = _mailbox_settings(options)
    passwords = Secrets(imap_password=os.environ.get("IMAP_PASSWORD"), smtp_password=os.environ.get("SMTP_PASSWORD"))
    if settings.imap.host is not None and not passwords.imap_password:
        exit_with_error("IMAP_PASSWORD is not set. Put the password of the IMAP user into the environment")
    try:
        store = open_mail_store(
            settings,
            passwords,
            os.environ.get("MAIL_KEY", "").encode(),
            create=options.create,
            read_only=options.read_only,
        )
    except ToolError as error:
        exit_with_error(_with_option_names(error.message))
    tools = MailboxTools(store, settings.copy_wait_s).tools()
    if options.read_only:
        tools = [tool for tool in tools if tool.read_only]
    try:
        return serve("mail", tools, INSTRUCTIONS, reword=_with_option_names)
    finally:
        store.close()


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = CommandLine("mail", "A mailbox for MCP clients: a Maildir, or IMAP for the inbox and SMTP for replies.")
    parser.add_argument(
        "--from", dest="from_address", required=True, metavar="ADDRESS", help="address that replies come from"
    )
    parser.add_argument("--read-only", action="store_true", help="write nothing: offer only the tools that read")
    maildir = parser.add_argument_group("a Maildir, where a reply is a file in its folder .Sent")
    maildir.add_argument("--maildir", metavar="DIR", help="the inbox")
    maildir.add_argument("--create", action="store_true", help="make the Maildir where it is missing")
    imap = parser.add_argument_group("an IMAP server (password in the environment: IMAP_PASSWORD)")
    _add_settings(imap, Imap, "imap.")
    smtp = parser.add_argument_group("the SMTP server for replies (SMTP_PASSWORD, by default IMAP_PASSWORD)")
    _add_settings(smtp, Smtp, "smtp.")
    proof = parser.add_argument_group("how a sent reply is proved (MAIL_KEY in the environment: any long random text)")
    _add_settings(proof, MailboxSettings, "", ("sent_copy", "copy_wait_s"))
    options = parser.parse_args(arguments)
    if (options.maildir is None) == (vars(options)["imap.host"] is None):
        parser.error("name either --maildir or --imap-host")
    if options.maildir is not None and vars(options)["imap.marks"] == "folders":
        parser.error("--marks folders is for IMAP: a Maildir keeps its marks itself. Leave it out")
    if options.create and options.read_only:
        parser.error("--create makes a Maildir, and --read-only makes nothing. Leave one of them out")
    return options


def _add_settings(
    group: argparse._ArgumentGroup, section: type[Any], prefix: str, names: Collection[str] | None = None
) -> None:
    """Options for settings of the agent's configuration. names: which; all by default."""
    kinds = get_type_hints(section)
    for each in fields(section):
        if names is None or each.name in names:
            kind = kinds[each.name]
            group.add_argument(
                _option(f"{prefix}{each.name}"),
                dest=f"{prefix}{each.name}",
                type=kind if kind in (int, float) else str,
                choices=get_args(kind) if get_origin(kind) is Literal else None,
                default=each.default,
                metavar=None if get_origin(kind) is Literal else each.name.rpartition("_")[2].upper(),
                help=_with_option_names(each.metadata["doc"]),
            )


def _mailbox_settings(options: argparse.Namespace) -> MailboxSettings:
    data: dict[str, Any] = {"imap": {}, "smtp": {}}
    for name, value in vars(options).items():
        section, _, key = name.rpartition(".")
        if section:
            data[section][key] = value
        elif name in MailboxSettings.__dataclass_fields__ and value is not None:
            data[name] = value
    built = build(MailboxSettings, data)
    if isinstance(built, list):
        exit_with_error(f"{_option(dotted_path(built[0].path))} {built[0].message}")
    return built


def _option(setting: str) -> str:
    return _OPTIONS.get(setting) or f"--{setting.replace('.', '-').replace('_', '-')}"


def _with_option_names(text: str) -> str:
    """A text of the agent, with our options in place of its settings."""
    return _SETTING.sub(lambda setting: _option(setting[1]), text)


if __name__ == "__main__":
    sys.exit(main())
