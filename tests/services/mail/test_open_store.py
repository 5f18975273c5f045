"""Which mailbox a configuration opens, and with which secrets."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from certificates import make_certificate
from mail_stores import refused

from guarantee_email_agent.config.mailbox_settings import OAuthSettings
from guarantee_email_agent.config.settings import AgentSettings, Config, Imap, MailboxSettings, Secrets, Smtp
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.imap import ImapMailbox
from guarantee_email_agent.services.mail.imap_replies import ImapSettings
from guarantee_email_agent.services.mail.mail_server import MailServer
from guarantee_email_agent.services.mail.maildir import Maildir
from guarantee_email_agent.services.mail.oauth.access_tokens import AccessTokens
from guarantee_email_agent.services.mail.open_store import check_mailbox, open_configured_store
from guarantee_email_agent.utils.errors import EXIT_CONFIGURATION, ConfigurationError

IMAP = Config(mailbox=MailboxSettings("support@example.com", imap=Imap("mail.example.com")))
WITH_PASSWORD = replace(IMAP, secrets=Secrets(imap_password="hidden"))


def opened(config: Config, key: bytes = b"") -> ImapSettings:
    check_mailbox(config)
    store = open_configured_store(config, key)
    assert isinstance(store, ImapMailbox)
    return store._settings


def with_mailbox(config: Config, **changes: Any) -> Config:
    return replace(config, mailbox=replace(config.mailbox, **changes))


@pytest.mark.parametrize(("mode", "read_only"), [("answer", False), ("observe", True)])
def test_without_a_host_it_is_the_maildir(tmp_path: Path, mode: Any, read_only: bool) -> None:
    config = Config(mailbox=MailboxSettings("support@example.com", tmp_path), agent=AgentSettings(mode=mode))
    check_mailbox(config)
    with pytest.raises(ToolError):
        open_configured_store(config, b"key")
    for folder in ("cur", "new", "tmp"):
        (tmp_path / folder).mkdir()  # which nobody has made
    store = open_configured_store(config, b"key")
    assert isinstance(store, Maildir)
    assert (store._directory, store._sender, store._read_only) == (tmp_path, "support@example.com", read_only)


def test_every_setting_reaches_the_imap_mailbox(tmp_path: Path) -> None:
    make_certificate(tmp_path, "imap.example.com")
    ca_file = tmp_path / "ca.pem"
    mailbox = MailboxSettings(
        "support@example.com",
        imap=Imap(
            *("imap.example.com", 143, "starttls", "agent", "Support", "Gesendet", "Entwürfe", ca_file),
            marks="folders",
            mark_folder="Garantie",
        ),
        smtp=Smtp("smtp.example.com", 587, "starttls", "sender"),
        sent_copy="server",
        copy_wait_s=90.0,
    )
    secrets = Secrets(imap_password="imap", smtp_password="smtp")
    config = Config(mailbox=mailbox, secrets=secrets, agent=AgentSettings(mode="observe"))
    settings = opened(config, b"key")
    assert settings == ImapSettings(
        mailbox,
        MailServer("IMAP", "imap.example.com", 143, "starttls", "agent", "imap", ca_file),
        MailServer("SMTP", "smtp.example.com", 587, "starttls", "sender", "smtp", ca_file),
        key=settings.key,
        read_only=True,
    )


def test_what_is_not_set_for_smtp_is_as_for_imap() -> None:
    settings = opened(WITH_PASSWORD)
    smtp = settings.smtp
    assert settings.server.user == "support@example.com"
    assert (smtp.host, smtp.user, smtp.password) == ("mail.example.com", "support@example.com", "hidden")
    assert "hidden" not in repr(settings)


def test_an_smtp_server_may_want_no_login() -> None:
    relay = Smtp("relay.example.com", 25, "none", "")
    assert opened(with_mailbox(WITH_PASSWORD, smtp=relay)).smtp.user is None


@pytest.mark.parametrize(
    ("host", "replaces"),
    [("Outlook.com", True), ("email-smtp.eu-west-1.amazonaws.com", True), ("notoutlook.com", False)],
)
def test_servers_are_known_that_give_mails_other_ids(host: str, replaces: bool) -> None:
    assert opened(with_mailbox(WITH_PASSWORD, smtp=Smtp(host))).replaces_ids is replaces


def test_agents_with_one_key_know_each_others_replies_without_using_it_as_it_is() -> None:
    one, same, other, without, also_without = (opened(WITH_PASSWORD, key).key for key in (b"k", b"k", b"l", b"", b""))
    assert one == same
    assert len({one, other, without, also_without, b"k"}) == 5
    assert min(map(len, (one, without))) >= 32


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (
            {"from_address": "Support <support@example.com>"},
            "mailbox.from_address is not one bare address like support@example.com",
        ),
        (
            {"smtp": Smtp(security="none")},
            "mailbox.smtp.security none is for servers on this machine: mail.example.com would get the password",
        ),
        ({"imap": Imap("mail.example.com", ca_file=Path(__file__))}, "holds no certificate in PEM format"),
        ({"imap": Imap("mail.example.com", ca_file=Path("/nowhere"))}, "/nowhere: No such file or directory"),
    ],
)
def test_a_setting_that_cannot_be_used_is_named(changes: dict[str, Any], message: str) -> None:
    with refused("mail_invalid_setting") as caught:
        opened(with_mailbox(WITH_PASSWORD, **changes))
    assert caught.value.message.startswith("mailbox.")
    assert caught.value.message.endswith(message)


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
            with_mailbox(IMAP, oauth=OAuthSettings("microsoft", "client_credentials", "agent-1", "contoso.example")),
            "config_missing_secret",
            "OAUTH_CLIENT_SECRET is not set, but mailbox.oauth.flow is client_credentials. Set it in the environment",
        ),
        (
            with_mailbox(IMAP, oauth=OAuthSettings("google", "service_account", key_file=Path("/nowhere/key.json"))),
            "config_missing_secret",
            "mailbox.oauth.key_file: /nowhere/key.json: the file does not exist. Save the account's JSON key there",
        ),
    ],
)
def test_what_is_missing_is_a_configuration_error(config: Config, code: str, message: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        check_mailbox(config)
    assert (caught.value.exit_code, caught.value.code) == (EXIT_CONFIGURATION, code)
    assert caught.value.message.startswith(message)


class TestOAuth:
    @pytest.fixture
    def config(self, tmp_path: Path) -> Config:
        """Somebody signed in."""
        file = tmp_path / "token.json"
        file.write_text("{}")
        file.chmod(0o600)
        return with_mailbox(IMAP, oauth=OAuthSettings("microsoft", client_id="agent-1", token_file=file))

    def test_tokens_are_in_place_of_passwords(self, config: Config) -> None:
        settings = opened(replace(config, secrets=Secrets(imap_password="unused", oauth_client_secret="hidden")))
        tokens = settings.server.tokens
        assert isinstance(tokens, AccessTokens)
        assert settings.smtp.tokens is tokens
        assert settings.smtp.password is None
        assert "hidden" not in repr(settings)

    def test_a_password_that_is_meant_for_smtp_is_used_there(self, config: Config) -> None:
        settings = opened(replace(config, secrets=Secrets(smtp_password="relay")))
        assert settings.server.tokens is not None
        assert (settings.smtp.tokens, settings.smtp.password) == (None, "relay")

    def test_nobody_signed_in_yet(self, config: Config) -> None:
        config.mailbox.oauth.token_file.unlink()
        with pytest.raises(ConfigurationError, match=r"exist\. Sign in: guarantee-email-agent authorize") as caught:
            check_mailbox(config)
        assert caught.value.code == "config_missing_secret"
