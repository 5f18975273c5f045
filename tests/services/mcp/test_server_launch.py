"""Which program runs for which configuration, and which secrets it gets."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from guarantee_email_agent.config.mailbox_settings import MarkFolders, OAuthSettings
from guarantee_email_agent.config.settings import (
    Config,
    Imap,
    MailboxSettings,
    Mcp,
    McpServer,
    Secrets,
    Smtp,
    Tickets,
    Warranties,
)
from guarantee_email_agent.services.mcp.server_launch import is_loopback, mail_launch, ticketing_launch, warranty_launch
from guarantee_email_agent.utils.errors import EXIT_CONFIGURATION, ConfigurationError

ENVIRON: Mapping[str, str] = {
    "PATH": "/bin",
    "HOME": "/home/agent",
    "LANG": "C.UTF-8",
    "PYTHONPATH": "/src",
    "ANTHROPIC_API_KEY": "hidden",
    "IMAP_PASSWORD": "from the environment, not from the configuration",
    "BASH_FUNC_x%%": "() { :; }",
}
MINIMUM = {"PATH": "/bin", "HOME": "/home/agent", "LANG": "C.UTF-8"}
OWN = {**MINIMUM, "PYTHONPATH": "/src"}
MODULES = "guarantee_email_agent.mcp_servers"
IMAP = Config(mailbox=MailboxSettings("support@example.com", imap=Imap("mail.example.com")))
IMAP_WITH_PASSWORD = replace(IMAP, secrets=Secrets(imap_password="hidden"))


def test_files_are_served_by_our_own_programs() -> None:
    config = Config(warranties=Warranties(Path("/data/w.csv")), tickets=Tickets(Path("/data/t.db")))
    warranty, ticketing = warranty_launch(config, ENVIRON), ticketing_launch(config, ENVIRON)
    assert warranty.command == ticketing.command == sys.executable
    assert warranty.args == ("-P", "-m", f"{MODULES}.warranty", "--file=/data/w.csv")
    assert ticketing.args == ("-P", "-m", f"{MODULES}.ticketing", "--database=/data/t.db")
    assert warranty.environment == ticketing.environment == OWN
    assert warranty.built_in


def test_a_maildir_needs_no_secret() -> None:
    mailbox = MailboxSettings("support@example.com", Path("/data/inbox"))
    launch = mail_launch(replace(IMAP_WITH_PASSWORD, mailbox=mailbox), ENVIRON, b"key")
    assert launch.args == ("-P", "-m", f"{MODULES}.mail", "--maildir=/data/inbox", "--from=support@example.com")
    assert launch.environment == OWN


def test_every_option_of_the_mail_server_has_a_setting_to_name() -> None:
    imap = Imap("imap.example.com", sent_folder="Sent", ca_file=Path("ca"))
    mailbox = MailboxSettings("support@example.com", imap=imap)
    launch = mail_launch(replace(IMAP_WITH_PASSWORD, mailbox=mailbox), ENVIRON)
    options = [argument.partition("=")[0] for argument in launch.args if argument.startswith("--")]
    assert len(options) > 10
    assert [option for option in options if launch.with_setting_names(option) == option] == []
    assert launch.with_setting_names("Check --imap-port, --new") == "Check mailbox.imap.port, --new"


def test_an_imap_server_is_named_with_all_that_belongs_to_it() -> None:
    mailbox = MailboxSettings(
        "support@example.com",
        imap=Imap(
            *("imap.example.com", 143, "starttls", "agent", "Support", "Gesendet", "Entwürfe", Path("/data/ca.pem")),
            marks="folders",
            mark_folders=MarkFolders("Garantie", unknown="Unklar"),
        ),
        smtp=Smtp("smtp.example.com", 587, "starttls", "sender"),
        sent_copy="server",
        copy_wait_s=90.0,
    )
    secrets = Secrets(imap_password="imap", smtp_password="smtp")
    launch = mail_launch(Config(mailbox=mailbox, secrets=secrets), ENVIRON)
    assert launch.args[3:] == (
        "--imap-host=imap.example.com",
        "--imap-port=143",
        "--imap-security=starttls",
        "--imap-user=agent",
        "--imap-folder=Support",
        "--sent-folder=Gesendet",
        "--drafts-folder=Entwürfe",
        "--marks=folders",
        "--mark-parent=Garantie",
        "--mark-answered=Answered",
        "--mark-drafted=Drafted",
        "--mark-handed-over=Handed over",
        "--mark-not-answered=Not answered",
        "--mark-quarantined=Quarantined",
        "--mark-unknown=Unklar",
        "--smtp-host=smtp.example.com",
        "--smtp-port=587",
        "--smtp-security=starttls",
        "--smtp-user=sender",
        "--from=support@example.com",
        "--sent-copy=server",
        "--copy-wait=90",
        "--ca-file=/data/ca.pem",
    )
    assert launch.environment == {**OWN, "IMAP_PASSWORD": "imap", "SMTP_PASSWORD": "smtp"}


def test_what_is_not_set_for_smtp_is_as_for_imap() -> None:
    expected = {
        "--smtp-host=mail.example.com",
        "--imap-user=support@example.com",
        "--smtp-user=support@example.com",
    }
    assert expected <= set(mail_launch(IMAP_WITH_PASSWORD, ENVIRON).args)


def test_agents_with_one_key_know_each_others_replies_without_passing_it_on() -> None:
    launches = [mail_launch(IMAP_WITH_PASSWORD, ENVIRON, key) for key in (b"k", b"k", b"l")]
    one, same, other = (launch.environment["MAIL_KEY"] for launch in launches)
    assert one == same != other
    assert len(one) == 64


def test_a_server_of_the_users_gets_the_variables_that_are_named_and_no_others() -> None:
    config = Config(
        mcp=Mcp(
            gmail=McpServer("npx", ("-y", "server"), env=("GMAIL_TOKEN",)),
            warranty_api=McpServer("warranty-server", env=("WARRANTY_KEY",)),
        ),
        secrets=Secrets(imap_password="p", mcp_environment={"GMAIL_TOKEN": "token", "WARRANTY_KEY": "key"}),
    )
    mail, warranty = mail_launch(config, ENVIRON, b"key"), warranty_launch(config, ENVIRON)
    assert (mail.command, mail.args) == ("npx", ("-y", "server"))
    assert mail.environment == {**MINIMUM, "GMAIL_TOKEN": "token"}
    assert warranty.environment == {**MINIMUM, "WARRANTY_KEY": "key"}
    assert not mail.built_in
    assert mail.setting == "mcp.gmail"


@pytest.mark.parametrize(
    ("secret", "header"), [("token", "Bearer token"), (" token\n", "Bearer token"), ("Basic dTpw", "Basic dTpw")]
)
def test_a_url_gets_the_one_variable_as_its_authorization(secret: str, header: str) -> None:
    server = McpServer(url="https://mcp.example.com/tickets", env=("TICKETS_TOKEN",))
    config = Config(mcp=Mcp(ticketing_system=server), secrets=Secrets(mcp_environment={"TICKETS_TOKEN": secret}))
    launch = ticketing_launch(config, ENVIRON)
    assert launch.url == "https://mcp.example.com/tickets"
    assert launch.headers == {"Authorization": header}


def test_a_url_without_a_secret_gets_no_header() -> None:
    config = Config(mcp=Mcp(ticketing_system=McpServer(url="https://mcp.example.com/tickets")))
    assert ticketing_launch(config, ENVIRON).headers == {}


@pytest.mark.parametrize(
    ("config", "code", "message"),
    [
        (Config(), "config_missing_key", "mailbox.from_address is missing. Set it to the address that replies come"),
        (
            IMAP,
            "config_missing_secret",
            "IMAP_PASSWORD is not set, but mailbox.imap.host is. Set it in the environment",
        ),
        (
            Config(mcp=Mcp(gmail=McpServer("x", env=("A", "B"))), secrets=Secrets(mcp_environment={"A": "1"})),
            "config_missing_secret",
            "mcp.gmail.env names B, which is not set. Set it in the environment or in .env, or remove it from the list",
        ),
        (
            Config(
                mcp=Mcp(gmail=McpServer(url="http://localhost", env=("A", "B"))),
                secrets=Secrets(mcp_environment={"A": "1", "B": "2"}),
            ),
            "config_invalid_value",
            "mcp.gmail.env names 2 variables, but a server with a URL gets one, as its Authorization header. Keep that",
        ),
    ],
)
def test_what_is_missing_is_a_configuration_error(config: Config, code: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        mail_launch(config, ENVIRON)
    assert caught.value.code == code
    assert caught.value.message.startswith(message)
    assert caught.value.exit_code == EXIT_CONFIGURATION


def test_secrets_do_not_show() -> None:
    launch = mail_launch(IMAP_WITH_PASSWORD, ENVIRON)
    assert "hidden" not in repr(launch) + str(launch)


@pytest.mark.parametrize(
    ("host", "expected"),
    [
        ("localhost", True),
        ("127.0.0.1", True),
        ("127.8.9.1", True),
        ("::1", True),
        ("localhost.example.com", False),
        ("192.0.2.1", False),
        ("mail.example.com", False),
    ],
)
def test_this_machine_is_known_by_its_name(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


class TestOAuth:
    @pytest.fixture
    def config(self, tmp_path: Path) -> Config:
        """Somebody signed in."""
        file = tmp_path / "token.json"
        file.write_text("{}")
        file.chmod(0o600)
        oauth = OAuthSettings("microsoft", client_id="agent-1", token_file=file)
        return replace(IMAP, mailbox=replace(IMAP.mailbox, oauth=oauth))

    def test_no_password_is_needed_and_no_secret_stands_on_the_command_line(self, config: Config) -> None:
        proxied = {**ENVIRON, "HTTPS_PROXY": "http://proxy.example.com:3128", "no_proxy": "example.com"}
        launch = mail_launch(replace(config, secrets=Secrets(oauth_client_secret="hidden")), proxied)
        assert launch.environment == {
            **OWN,
            "HTTPS_PROXY": "http://proxy.example.com:3128",
            "no_proxy": "example.com",
            "OAUTH_CLIENT_SECRET": "hidden",
        }
        assert "--oauth-flow=device" in launch.args
        assert "--oauth-token-url=https://login.microsoftonline.com/common/oauth2/v2.0/token" in launch.args
        assert "hidden" not in repr(launch)

    def test_a_password_that_is_meant_for_smtp_is_passed_on(self, config: Config) -> None:
        launch = mail_launch(replace(config, secrets=Secrets(smtp_password="relay")), ENVIRON)
        assert launch.environment["SMTP_PASSWORD"] == "relay"

    def test_nobody_signed_in_yet(self, config: Config) -> None:
        config.mailbox.oauth.token_file.unlink()
        with pytest.raises(ConfigurationError) as caught:
            mail_launch(config, ENVIRON)
        assert (caught.value.exit_code, caught.value.code) == (EXIT_CONFIGURATION, "config_missing_secret")
        assert "does not exist. Sign in: guarantee-email-agent authorize" in caught.value.message

    def test_a_token_that_others_may_read(self, config: Config) -> None:
        config.mailbox.oauth.token_file.chmod(0o644)
        with pytest.raises(ConfigurationError, match=r"mailbox.oauth.token_file: .* Run chmod 600 on it"):
            mail_launch(config, ENVIRON)

    def test_a_client_of_its_own_needs_its_secret(self, config: Config) -> None:
        oauth = OAuthSettings("microsoft", "client_credentials", "agent-1", "contoso.example")
        with pytest.raises(ConfigurationError, match="OAUTH_CLIENT_SECRET is not set"):
            mail_launch(replace(config, mailbox=replace(config.mailbox, oauth=oauth)), ENVIRON)
