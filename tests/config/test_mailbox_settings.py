from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.mailbox_settings import OAuthSettings
from guarantee_email_agent.utils.errors import ConfigurationError

OTHER: dict[str, Any] = {"provider": "other", "client_id": "agent", "token_url": "https://id.example.com/token"}


def problem(**settings: Any) -> str:
    with pytest.raises(ValueError, match=r"^(has|needs) ") as caught:
        OAuthSettings(**settings)
    return str(caught.value)


def test_microsoft_signs_a_person_in_by_a_device_code_and_asks_for_both_servers() -> None:
    settings = OAuthSettings(provider="microsoft", client_id="agent", tenant="contoso.example")
    assert settings.used_flow == "device"
    assert settings.endpoints.device == "https://login.microsoftonline.com/contoso.example/oauth2/v2.0/devicecode"
    assert [scope.rpartition("/")[2] for scope in settings.used_scopes] == [
        *("IMAP.AccessAsUser.All", "SMTP.Send", "offline_access")
    ]


def test_an_application_of_microsoft_asks_for_what_it_was_granted_in_its_own_directory() -> None:
    settings: dict[str, Any] = {"provider": "microsoft", "client_id": "agent", "flow": "client_credentials"}
    assert OAuthSettings(**settings, tenant="1f2e").used_scopes == ("https://outlook.office365.com/.default",)
    assert "has no tenant" in problem(**settings)


@pytest.mark.parametrize("flow", ["device", "client_credentials"])
def test_a_flow_in_which_google_gives_no_access_to_mail_is_refused(flow: str) -> None:
    assert "set it to authorization_code" in problem(provider="google", client_id="agent", flow=flow)
    assert OAuthSettings(provider="google", client_id="agent").used_flow == "authorization_code"


def test_a_service_account_needs_its_key_and_no_client_id() -> None:
    assert "needs key_file" in problem(provider="google", flow="service_account")
    settings = OAuthSettings(provider="google", flow="service_account", key_file=Path("key.json"))
    assert settings.used_scopes == ("https://mail.google.com/",)


@pytest.mark.parametrize(
    ("settings", "told"),
    [
        ({**OTHER, "token_url": None}, "has no token_url"),
        ({**OTHER, "flow": "device"}, "has no device_url"),
        ({**OTHER, "flow": "authorization_code"}, "has no authorization_url"),
        ({**OTHER, "client_id": None, "flow": "client_credentials"}, "has no client_id"),
        ({**OTHER, "flow": "client_credentials", "tenant": "x"}, "only Microsoft knows"),
        ({"provider": "google", "client_id": "a", "token_url": "https://x.example"}, "are known for google"),
        ({"provider": "microsoft", "client_id": "a", "flow": "service_account"}, "client_credentials"),
    ],
)
def test_what_does_not_fit_together_is_told(settings: dict[str, Any], told: str) -> None:
    assert told in problem(**settings)


@pytest.mark.parametrize("name", ["''", "'%'", '"a\\r\\nb"', "' a'"])
def test_a_folder_for_marks_that_no_server_could_list_is_refused(tmp_path: Path, name: str) -> None:
    (tmp_path / "config.yaml").write_text(f"mailbox: {{imap: {{mark_folder: {name}}}}}\n")
    with pytest.raises(ConfigurationError, match=r"mailbox\.imap\.mark_folder: must "):
        load_config(tmp_path / "config.yaml", {}, tmp_path)
