import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from oauth_issuer import CLIENT_ID, SCOPES, USER, OAuthIssuer

from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient


@pytest.fixture
def issuer() -> Iterator[OAuthIssuer]:
    with OAuthIssuer() as issuer:
        yield issuer


@pytest.fixture
def client(issuer: OAuthIssuer, tmp_path: Path) -> OAuthClient:
    """One for which a person signs in by a device code."""
    return OAuthClient(
        "device",
        CLIENT_ID,
        None,
        USER,
        issuer.token_url,
        SCOPES,
        tmp_path / "token.json",
        None,
        f"{issuer.url}/device",
        f"{issuer.url}/authorize",
    )


@pytest.fixture
def token_file(client: OAuthClient, issuer: OAuthIssuer) -> Path:
    """A token that was issued an hour ago and is over, at the time 10_000."""
    file = client.token_file
    issued = issuer.issue()
    issuer.access_tokens.clear()
    content = {
        "client_id": client.client_id,
        "token_url": client.token_url,
        "user": client.user,
        "access_token": issued["access_token"],
        "refresh_token": issued["refresh_token"],
        "obtained_at": 6_400,
        "expires_at": 10_000,
    }
    file.write_text(json.dumps(content))
    file.chmod(0o600)
    return file
