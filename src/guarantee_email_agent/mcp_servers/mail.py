"""MCP server for a mailbox, over a Maildir or IMAP and SMTP: `guarantee-email-agent mcp-server mail`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Collection, Sequence
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, get_args, get_origin, get_type_hints

from guarantee_email_agent.config.mailbox_settings import KEPT_TOKEN_FLOWS, OAuthFlow
from guarantee_email_agent.config.settings import Imap, MailboxSettings, Secrets, Smtp
from guarantee_email_agent.files.problems import dotted_path
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.mcp_servers.mailbox_tools import INSTRUCTIONS, MailboxTools
from guarantee_email_agent.mcp_servers.server import CommandLine, exit_with_error, serve
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.open_store import open_mail_store

if TYPE_CHECKING:
    from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient

_SETTING: Final = re.compile(r"\bmailbox\.((?:imap|smtp|oauth)\.[a-z_]+|from_address|sent_copy)")
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
    "oauth.provider": "--oauth-token-url",
    "oauth.client_id": "--oauth-client-id",
    "oauth.scopes": "--oauth-scope",
    "oauth.token_file": "--oauth-token-file",
    "oauth.key_file": "--oauth-key-file",
}
"""By the name of a setting; of others the two differ by their punctuation alone."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse_options(arguments)
    settings = _mailbox_settings(options)
    client = _oauth_client(options, settings)
    passwords = Secrets(imap_password=os.environ.get("IMAP_PASSWORD"), smtp_password=os.environ.get("SMTP_PASSWORD"))
    if settings.imap.host is not None and not passwords.imap_password and client is None:
        exit_with_error("IMAP_PASSWORD is not set. Put the password of the IMAP user into the environment")
    try:
        store = open_mail_store(
            settings,
            passwords,
            os.environ.get("MAIL_KEY", "").encode(),
            client,
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
    oauth = parser.add_argument_group(
        "access tokens in place of passwords, for both servers (client secret in the environment: OAUTH_CLIENT_SECRET; "
        "where SMTP_PASSWORD is set, the SMTP server gets that)"
    )
    oauth.add_argument("--oauth-flow", choices=get_args(OAuthFlow), help="how tokens are come by")
    oauth.add_argument("--oauth-client-id", metavar="ID", help="what the issuer knows this client by")
    oauth.add_argument("--oauth-token-url", metavar="URL", help="the issuer's token endpoint")
    oauth.add_argument("--oauth-scope", metavar="SCOPES", default="", help="what is asked for, with spaces between")
    oauth.add_argument("--oauth-token-file", type=Path, metavar="FILE", help="the token that a person signed in for")
    oauth.add_argument("--oauth-key-file", type=Path, metavar="FILE", help="the JSON key of a service account")
    smtp = parser.add_argument_group("the SMTP server for replies (SMTP_PASSWORD, by default IMAP_PASSWORD)")
    _add_settings(smtp, Smtp, "smtp.")
    proof = parser.add_argument_group("how a sent reply is proved (MAIL_KEY in the environment: any long random text)")
    _add_settings(proof, MailboxSettings, "", ("sent_copy", "copy_wait_s"))
    options = parser.parse_args(arguments)
    if (options.maildir is None) == (vars(options)["imap.host"] is None):
        parser.error("name either --maildir or --imap-host")
    if options.maildir is not None and vars(options)["imap.marks"] == "folders":
        parser.error("--marks folders is for IMAP: a Maildir keeps its marks itself. Leave it out")
    if options.oauth_flow is not None:
        keeps_token = options.oauth_flow in KEPT_TOKEN_FLOWS
        file = options.oauth_token_file if keeps_token else options.oauth_key_file
        if options.oauth_token_url is None:
            parser.error("--oauth-flow needs --oauth-token-url")
        if file is None and options.oauth_flow != "client_credentials":
            parser.error(f"--oauth-flow needs --oauth-{'token' if keeps_token else 'key'}-file")
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


def _oauth_client(options: argparse.Namespace, settings: MailboxSettings) -> OAuthClient | None:
    if options.oauth_flow is None or settings.imap.host is None:
        return None
    from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient

    return OAuthClient(
        options.oauth_flow,
        options.oauth_client_id,
        os.environ.get("OAUTH_CLIENT_SECRET") or None,
        settings.imap.user or options.from_address,
        options.oauth_token_url,
        tuple(options.oauth_scope.split()),
        options.oauth_token_file,
        options.oauth_key_file,
    )


def _option(setting: str) -> str:
    return _OPTIONS.get(setting) or f"--{setting.replace('.', '-').replace('_', '-')}"


def _with_option_names(text: str) -> str:
    """A text of the agent, with our options in place of its settings."""
    return _SETTING.sub(lambda setting: _option(setting[1]), text)


if __name__ == "__main__":
    sys.exit(main())
