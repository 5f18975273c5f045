"""MCP server for a mailbox, over a Maildir or IMAP and SMTP: `guarantee-email-agent mcp-server mail`."""

from __future__ import annotations

import argparse
import os
import secrets
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, get_args

from guarantee_email_agent.config.mailbox_settings import KEPT_TOKEN_FLOWS, MarkFolders, MarkKind, OAuthFlow
from guarantee_email_agent.mcp_servers.mailbox_tools import INSTRUCTIONS, MailboxTools
from guarantee_email_agent.mcp_servers.stdio import CommandLine, exit_with_error, serve
from guarantee_email_agent.services.mail.mail_store import MailStore
from guarantee_email_agent.services.mcp.server_launch import is_loopback
from guarantee_email_agent.services.tool_error import ToolError
from guarantee_email_agent.utils.addresses import parse_address

if TYPE_CHECKING:
    from guarantee_email_agent.services.mail.oauth.access_tokens import AccessTokens

_SECURITY = ("tls", "starttls", "none")
_REPLACE_IDS = ("office365.com", "outlook.com", "office365.us", "outlook.cn")
"""Domains of SMTP servers that give every mail a Message-ID of their own: `git send-email --help`, --outlook-id-fix."""


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse_options(arguments)
    if parse_address(options.sender) != options.sender or not options.sender.isascii():
        exit_with_error("--from is not one bare address like support@example.com")
    tokens = _access_tokens(options) if options.oauth_flow is not None and options.imap_host is not None else None
    try:
        store = _open_store(options, tokens)
    except ToolError as error:
        exit_with_error(error.message)
    tools = MailboxTools(store, options.copy_wait).tools()
    if options.read_only:
        tools = [tool for tool in tools if tool.read_only]
    try:
        return serve("mail", tools, INSTRUCTIONS)
    finally:
        store.close()
        if tokens is not None:
            tokens.close()


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
    for name in fields(MarkFolders):
        option = f"--mark-{name.name.replace('_', '-')}"
        imap.add_argument(option, metavar="NAME", default=name.default, help=str(name.metadata["doc"]))
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
    options.mark_folders = _mark_folders(parser, options)
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


def _mark_folders(parser: CommandLine, options: argparse.Namespace) -> MarkFolders:
    names = {folder.name: getattr(options, f"mark_{folder.name}") for folder in fields(MarkFolders)}
    for folder in fields(MarkFolders):
        if problem := folder.metadata["check"](names[folder.name]):
            parser.error(f"--mark-{folder.name.replace('_', '-')} {problem}")
    try:
        return MarkFolders(**names)
    except ValueError as error:
        parser.error(f"a folder of --mark-answered to --mark-unknown {error}")


def _access_tokens(options: argparse.Namespace) -> AccessTokens:
    from guarantee_email_agent.services.mail.oauth.access_tokens import AccessTokens
    from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient

    return AccessTokens(
        OAuthClient(
            options.oauth_flow,
            options.oauth_client_id,
            os.environ.get("OAUTH_CLIENT_SECRET") or None,
            options.imap_user or options.sender,
            options.oauth_token_url,
            tuple(options.oauth_scope.split()),
            options.oauth_token_file,
            options.oauth_key_file,
        )
    )


def _open_store(options: argparse.Namespace, tokens: AccessTokens | None) -> MailStore:
    if options.maildir is not None:
        from guarantee_email_agent.services.mail.maildir import Maildir

        return Maildir(options.maildir, options.sender, create=options.create, read_only=options.read_only)
    from guarantee_email_agent.services.mail.imap import ImapMailbox, ImapSettings
    from guarantee_email_agent.services.mail.mail_server import MailServer, tls_context
    from guarantee_email_agent.services.mail.smtp import SmtpSender

    imap_user = options.imap_user or options.sender
    smtp_user = imap_user if options.smtp_user is None else options.smtp_user or None
    imap_password = os.environ.get("IMAP_PASSWORD")
    smtp_password = os.environ.get("SMTP_PASSWORD") or (imap_password if tokens is None else None)
    if not imap_password and tokens is None:
        exit_with_error("IMAP_PASSWORD is not set. Put the password of the IMAP user into the environment")
    imap = MailServer(
        "IMAP",
        options.imap_host,
        options.imap_port,
        options.imap_security,
        imap_user,
        imap_password,
        options.ca_file,
        tokens,
    )
    smtp_host = options.smtp_host or options.imap_host
    smtp = MailServer(
        "SMTP",
        smtp_host,
        options.smtp_port,
        options.smtp_security,
        smtp_user,
        smtp_password,
        options.ca_file,
        None if smtp_password else tokens,
    )
    for server in (imap, smtp):
        if server.security == "none" and not is_loopback(server.host):
            exit_with_error(
                f"{server.option}-security none is for servers on this machine: {server.host} would get the password"
            )
    try:
        tls_context(options.ca_file)
    except OSError as error:
        exit_with_error(f"--ca-file {options.ca_file}: {error.strerror or 'holds no certificate in PEM format'}")
    settings = ImapSettings(
        server=imap,
        folder=options.imap_folder,
        sent_folder=options.sent_folder,
        drafts_folder=options.drafts_folder,
        address=options.sender,
        sent_copy=options.sent_copy,
        copy_wait_s=options.copy_wait,
        # Without a key of its own, copies of another process are not told from what a stranger sends: they are listed.
        key=os.environ.get("MAIL_KEY", "").encode() or secrets.token_bytes(32),
        read_only=options.read_only,
        marks=options.marks,
        mark_folders=options.mark_folders,
        replaces_ids=f".{smtp_host}".casefold().endswith(tuple(f".{domain}" for domain in _REPLACE_IDS)),
    )
    return ImapMailbox(settings, SmtpSender(smtp, options.ehlo_name))


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
