import json
import os
import threading
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from oauth_issuer import CLIENT_SECRET, OAuthIssuer
from small_disks import run_python_on_small_disk
from virtual_time import SetTime

from guarantee_email_agent.files import private_file
from guarantee_email_agent.services.call_errors import ToolError
from guarantee_email_agent.services.mail.oauth import access_tokens
from guarantee_email_agent.services.mail.oauth.access_tokens import AccessTokens
from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient

pytestmark = pytest.mark.usefixtures("token_file")
NOW = 10_000.0


@pytest.fixture
def clock() -> SetTime:
    return SetTime()


@pytest.fixture
def tokens(client: OAuthClient, clock: SetTime) -> AccessTokens:
    return AccessTokens(client, clock)


def test_an_access_token_that_is_over_is_replaced_and_kept(
    tokens: AccessTokens, issuer: OAuthIssuer, token_file: Path
) -> None:
    token = tokens.get()
    assert token in issuer.access_tokens
    kept = json.loads(token_file.read_text())
    assert (kept["access_token"], kept["expires_at"]) == (token, NOW + 3600)
    assert kept["refresh_token"] == "refresh-1"  # this issuer goes on with the old one


def test_the_issuer_is_asked_once_for_as_long_as_the_token_is_good(
    tokens: AccessTokens, issuer: OAuthIssuer, clock: SetTime
) -> None:
    first = tokens.get()
    clock.now += 3200
    assert tokens.get() == first
    clock.now += 200
    assert tokens.get() != first
    assert issuer.counts["refreshed"] == 2


def test_the_last_minutes_of_a_token_are_used_while_the_issuer_is_down(
    tokens: AccessTokens, issuer: OAuthIssuer, clock: SetTime
) -> None:
    first = tokens.get()
    issuer.answers = [(503, b"")] * 2
    clock.now += 3500
    assert tokens.get() == first
    clock.now += 100
    with pytest.raises(ToolError) as caught:
        tokens.get()
    assert (caught.value.code, caught.value.retryable) == ("mail_unavailable", True)
    assert tokens.get() != first


def test_connections_that_begin_at_once_share_one_request(tokens: AccessTokens, issuer: OAuthIssuer) -> None:
    issuer.rotates = True
    with ThreadPoolExecutor(8) as pool:
        assert len(set(pool.map(lambda _: tokens.get(), range(8)))) == 1
    assert issuer.counts["refreshed"] == 1


def test_two_agents_never_use_one_refresh_token_twice(client: OAuthClient, issuer: OAuthIssuer, clock: SetTime) -> None:
    issuer.rotates = True
    agents = [AccessTokens(client, clock) for _ in range(4)]
    with ThreadPoolExecutor(4) as pool:
        assert len(set(pool.map(lambda agent: agent.get(), agents))) == 1
    assert issuer.counts["refreshed"] == 1
    clock.now += 3600
    assert len({agent.get() for agent in agents}) == 1
    assert issuer.counts["refreshed"] == 2


def test_a_token_that_a_server_refused_is_replaced_unless_it_is_new(
    tokens: AccessTokens, issuer: OAuthIssuer, clock: SetTime
) -> None:
    first = tokens.get()
    assert tokens.get_other(first) is None
    clock.now += 61
    second = tokens.get_other(first)
    assert second not in (None, first)
    assert tokens.get_other(first) == second  # another connection was refused with the old one, too
    assert issuer.counts["refreshed"] == 2


def test_a_person_who_signs_in_again_is_noticed(
    tokens: AccessTokens, issuer: OAuthIssuer, token_file: Path, clock: SetTime
) -> None:
    refused = tokens.get()
    assert tokens.get_other(refused) is None
    issuer.refresh_tokens.clear()
    clock.now += 3600
    with pytest.raises(ToolError) as caught:
        tokens.get()
    assert caught.value.code == "mail_auth"
    new = {name: issuer.issue()[name] for name in ("access_token", "refresh_token")}
    kept = json.loads(token_file.read_text()) | new | {"obtained_at": clock.now, "expires_at": clock.now + 3600}
    token_file.write_text(json.dumps(kept))
    assert tokens.get() == kept["access_token"]


def test_who_gives_up_waiting_loses_no_refresh_token(
    tokens: AccessTokens, issuer: OAuthIssuer, token_file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    issuer.rotates, issuer.hold = True, threading.Event()
    with monkeypatch.context() as patch:
        patch.setattr(access_tokens, "WAIT_S", 0.01)
        with pytest.raises(ToolError) as caught:
            tokens.get()
    assert (caught.value.code, caught.value.retryable) == ("mail_unavailable", True)
    assert "does not answer in time" in caught.value.message
    issuer.hold.set()
    tokens.close()  # as when the agent stops
    assert json.loads(token_file.read_text())["refresh_token"] == "refresh-2"


def test_a_full_disk_keeps_the_issuer_from_being_asked(client: OAuthClient, token_file: Path, tmp_path: Path) -> None:
    program = f"""
import errno, os, shutil
from pathlib import Path
from oauth_issuer import OAuthIssuer
from guarantee_email_agent.services.mail.oauth.access_tokens import AccessTokens
from guarantee_email_agent.services.mail.oauth.oauth_client import OAuthClient
from guarantee_email_agent.services.call_errors import ToolError
file = Path("token.json")
shutil.copy({str(token_file)!r}, file)
client = OAuthClient({client.flow!r}, {client.client_id!r}, None, {client.user!r}, {client.token_url!r}, (), file)
ballast = os.open("ballast", os.O_WRONLY | os.O_CREAT)
while True:
    try:
        os.write(ballast, bytes(1024))
    except OSError:
        break
try:
    AccessTokens(client, lambda: {NOW}).get()
except ToolError as error:
    print(error.code, error.message)
print(sorted(os.listdir()), file.read_text() == Path({str(token_file)!r}).read_text())
"""
    told, left = run_python_on_small_disk(tmp_path / "disk", "64k", program).splitlines()
    assert told.startswith("mail_disk_full")
    assert told.endswith("token.json cannot be written (No space left on device). Make room")
    assert left.endswith(" True")
    assert ".draft" not in left


def test_a_token_that_cannot_be_written_is_used_and_told(
    tokens: AccessTokens, token_file: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(private_file.os, "replace", _fail)  # no disk can be made to fail at just this moment
    first = tokens.get()
    assert tokens.get() == first
    assert json.loads(token_file.read_text())["refresh_token"] == "refresh-1"
    (told,) = caplog.messages
    assert told.endswith("sign in: guarantee-email-agent authorize")


def _fail(*_: object) -> None:
    raise OSError(5, os.strerror(5))


def test_a_client_of_its_own_keeps_its_token_in_memory(
    client: OAuthClient, issuer: OAuthIssuer, clock: SetTime, token_file: Path
) -> None:
    token_file.unlink()
    own = AccessTokens(replace(client, flow="client_credentials", secret=CLIENT_SECRET), clock)
    assert own.get() == own.get()
    assert not token_file.exists()
    assert issuer.requests[-1]["scope"] == "mail.read mail.send"
    clock.now += 3600
    assert own.get() in issuer.access_tokens
