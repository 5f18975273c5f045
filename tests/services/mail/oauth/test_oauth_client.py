import json
import stat
from dataclasses import replace

import pytest

from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient, Token, TokenFile

TOKEN = Token("access", "refresh", 1000.0, 4600.0)


def save(client: OAuthClient, token: Token) -> None:
    file = TokenFile(client)
    with file.locked(), file.draft() as draft:
        file.commit(draft, token)


def refusal(client: OAuthClient) -> ToolError:
    with pytest.raises(ToolError) as caught:
        TokenFile(client).read()
    return caught.value


def test_a_token_is_kept_for_its_owner_alone(client: OAuthClient) -> None:
    save(client, TOKEN)
    assert TokenFile(client).read() == TOKEN
    assert stat.S_IMODE(client.token_file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"client_id": "other"}, "was made for another client id"),
        ({"user": "sales@example.com"}, "was made for another user"),
        ({"token_url": "https://id.example.com/token"}, "was made for another token url"),
    ],
)
def test_a_token_of_another_client_user_or_issuer_is_refused(
    client: OAuthClient, change: dict[str, str], told: str
) -> None:
    save(client, TOKEN)
    error = refusal(replace(client, **change))
    assert (error.code, error.retryable) == ("mail_auth", False)
    assert f"{told}. Sign in: guarantee-email-agent authorize" in error.message


@pytest.mark.parametrize("content", ["", "{", "[]", "{}", '{"access_token": 1}', "[" * 100_000])
def test_a_file_without_a_token_asks_for_a_sign_in(client: OAuthClient, content: str) -> None:
    client.token_file.write_text(content)
    client.token_file.chmod(0o600)
    assert "holds no token. Sign in" in refusal(client).message


@pytest.mark.parametrize(
    "change", [{"expires_at": 10**400}, {"obtained_at": -(10**400)}, {"access_token": "\ud83d"}, {"refresh_token": "ä"}]
)
def test_a_token_that_nobody_can_have_issued_asks_for_a_sign_in(client: OAuthClient, change: dict[str, object]) -> None:
    save(client, TOKEN)
    client.token_file.write_text(json.dumps(json.loads(client.token_file.read_text()) | change))
    assert "holds no token. Sign in" in refusal(client).message


def test_a_token_that_others_may_read_is_refused(client: OAuthClient) -> None:
    save(client, TOKEN)
    client.token_file.chmod(0o644)
    assert "others may use it (mode 0644). Run chmod 600" in refusal(client).message


def test_a_missing_file_asks_for_a_sign_in(client: OAuthClient) -> None:
    assert "does not exist. Sign in" in refusal(client).message


@pytest.mark.parametrize(
    ("now", "usable"),
    [(1000.0, True), (4299.0, True), (4301.0, False), (5000.0, False), (999.0, False)],
    ids=["new", "still good", "about to end", "over", "from the future, so that a clock was set back"],
)
def test_an_access_token_is_used_until_shortly_before_its_end(now: float, usable: bool) -> None:
    assert TOKEN.is_usable(now) is usable


def test_a_short_lived_token_is_used_for_most_of_its_time() -> None:
    assert Token("a", None, 0.0, 60.0).is_usable(47.0)


def test_no_secret_is_shown_with_a_token(client: OAuthClient) -> None:
    save(client, TOKEN)
    assert "access" not in repr(TOKEN).replace("access_token", "")
    assert "secret-1" not in repr(replace(client, secret="secret-1"))
    assert set(json.loads(client.token_file.read_text())) == {
        *("client_id", "token_url", "user", "access_token", "refresh_token", "obtained_at", "expires_at")
    }
