"""MCP server for a mailbox, over a Maildir or IMAP and SMTP: `guarantee-email-agent mcp-server mail`."""

from __future__ import annotations

import argparse
import os
import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar, get_args

from guarantee_email_agent.config.mailbox_settings import KEPT_TOKEN_FLOWS, MarkKind, OAuthFlow, folder_name
from guarantee_email_agent.config.settings import Imap, MailboxSettings, Secrets, Smtp
from guarantee_email_agent.mcp_servers.mailbox_tools import INSTRUCTIONS, MailboxTools
from guarantee_email_agent.mcp_servers.stdio import CommandLine, exit_with_error, serve
from guarantee_email_agent.services.mail.open_store import open_mail_store
from guarantee_email_agent.services.tool_error import ToolError

if TYPE_CHECKING:
    from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient

_Section = TypeVar("_Section")

_SECURITY = ("tls", "starttls", "none")
_SETTING: Final = re.compile(r"\bmailbox\.((?:imap|smtp|oauth)\.[a-z_]+|from_address|sent_copy)")
_OPTIONS: Final = {
    "from_address": "--from",
    "sent_copy": "--sent-copy",
    "imap.ca_file": "--ca-file",
    "imap.sent_folder": "--sent-folder",
    "imap.drafts_folder": "--drafts-folder",
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
    client = _oauth_client(options)
    passwords = Secrets(imap_password=os.environ.get("IMAP_PASSWORD"), smtp_password=os.environ.get("SMTP_PASSWORD"))
    if options.imap_host is not None and not passwords.imap_password and client is None:
        exit_with_error("IMAP_PASSWORD is not set. Put the password of the IMAP user into the environment")
    try:
        store = open_mail_store(
            _mailbox_settings(options),
            passwords,
            os.environ.get("MAIL_KEY", "").encode(),
            client,
            create=options.create,
            ehlo_name=options.ehlo_name,
            read_only=options.read_only,
        )
    except ToolError as error:
        exit_with_error(_with_option_names(error.message))
    tools = MailboxTools(store, options.copy_wait).tools()
    if options.read_only:
        tools = [tool for tool in tools if tool.read_only]
    try:
        return serve("mail", tools, INSTRUCTIONS, reword=_with_option_names)
    finally:
        store.close()


def _parse_options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = CommandLine("mail", "A mailbox for MCP clients: a Maildir, or IMAP for the inbox and SMTP for replies.")
    parser.add_argument(
        "--from", dest="sender", required=True, metavar="ADDRESS", help="address that replies come from"
    )
    parser.add_argument("--read-only", action="store_true", help="write nothing: offer only the tools that read")
    maildir = parser.add_argument_group("a Maildir, where a reply is a file in its folder .Sent")
    maildir.add_argument("--maildir", type=Path, metavar="DIR", help="the inbox")
    maildir.add_argument("--create", action="store_true", help="make the Maildir where it is missing")
    imap = parser.add_argument_group("an IMAP server (password in the environment: IMAP_PASSWORD)")
    imap.add_argument("--imap-host", metavar="HOST")
    imap.add_argument("--imap-port", type=_port, default=993, metavar="PORT")
    imap.add_argument("--imap-security", choices=_SECURITY, default="tls", help="none: on this machine only")
    imap.add_argument("--imap-user", metavar="USER", help="by default the address of --from")
    imap.add_argument("--imap-folder", default="INBOX", metavar="NAME", help="the inbox")
    imap.add_argument(
        "--marks",
        choices=get_args(MarkKind),
        default="auto",
        help="what says what became of a mail: a keyword on it, or the folder that it is moved to; auto: keywords "
        "where the server keeps them",
    )
    imap.add_argument(
        "--mark-parent", metavar="NAME", default=Imap().mark_folder, help="folder that holds one for each outcome"
    )
    imap.add_argument("--sent-folder", metavar="NAME", help="by default the one that the server names")
    imap.add_argument("--drafts-folder", metavar="NAME", help="by default the one that the server names")
    imap.add_argument("--ca-file", type=Path, metavar="PEM", help="certificates to trust instead of the system's")
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
    smtp.add_argument("--smtp-host", metavar="HOST", help="by default the one of --imap-host")
    smtp.add_argument("--smtp-port", type=_port, default=465, metavar="PORT")
    smtp.add_argument("--smtp-security", choices=_SECURITY, default="tls", help="none: on this machine only")
    smtp.add_argument("--smtp-user", metavar="USER", help="by default the one of --imap-user; empty: no login")
    smtp.add_argument("--ehlo-name", metavar="NAME", help="what this machine calls itself; by default its address")
    proof = parser.add_argument_group("how a sent reply is proved (MAIL_KEY in the environment: any long random text)")
    proof.add_argument(
        "--sent-copy",
        choices=("self", "server", "append"),
        default="self",
        help="self: a copy to our own address; server: the server files what it sends; append: filed by us",
    )
    proof.add_argument(
        "--copy-wait", type=_seconds, default=60.0, metavar="S", help="after S seconds a copy will not come any more"
    )
    options = parser.parse_args(arguments)
    if (options.maildir is None) == (options.imap_host is None):
        parser.error("name either --maildir or --imap-host")
    if options.maildir is not None and options.marks == "folders":
        parser.error("--marks folders is for IMAP: a Maildir keeps its marks itself. Leave it out")
    if problem := folder_name(options.mark_parent):
        parser.error(f"--mark-parent {problem}")
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


def _mailbox_settings(options: argparse.Namespace) -> MailboxSettings:
    imap = _section(
        Imap,
        f"--imap-security {options.imap_security}",
        options.imap_host,
        options.imap_port,
        options.imap_security,
        options.imap_user,
        options.imap_folder,
        options.sent_folder,
        options.drafts_folder,
        options.ca_file,
        options.marks,
        options.mark_parent,
    )
    smtp = _section(
        Smtp,
        f"--smtp-security {options.smtp_security}",
        options.smtp_host,
        options.smtp_port,
        options.smtp_security,
        options.smtp_user,
    )
    return MailboxSettings(
        options.sender,
        options.maildir or Path(),
        imap,
        smtp,
        sent_copy=options.sent_copy,
        copy_wait_s=options.copy_wait,
    )


def _section(section: type[_Section], option: str, *values: Any) -> _Section:
    try:
        return section(*values)
    except ValueError as error:
        exit_with_error(f"{option}: {error}")


def _oauth_client(options: argparse.Namespace) -> OAuthClient | None:
    if options.oauth_flow is None or options.imap_host is None:
        return None
    from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient

    return OAuthClient(
        options.oauth_flow,
        options.oauth_client_id,
        os.environ.get("OAUTH_CLIENT_SECRET") or None,
        options.imap_user or options.sender,
        options.oauth_token_url,
        tuple(options.oauth_scope.split()),
        options.oauth_token_file,
        options.oauth_key_file,
    )


def _with_option_names(text: str) -> str:
    """A message of the mailbox, with our options in place of the agent's settings."""
    return _SETTING.sub(lambda setting: _OPTIONS.get(setting[1]) or f"--{setting[1].replace('.', '-')}", text)


def _port(text: str) -> int:
    if not text.isdecimal() or not 0 < int(text) < 65_536:
        raise argparse.ArgumentTypeError(f"{text!r} is no port")
    return int(text)


def _seconds(text: str) -> float:
    with suppress(ValueError):
        if 0 <= (seconds := float(text)) <= 600:
            return seconds
    raise argparse.ArgumentTypeError(f"{text!r} is no number of seconds from 0 to 600")


if __name__ == "__main__":
    sys.exit(main())
