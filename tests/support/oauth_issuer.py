"""An issuer of OAuth 2.0 tokens on loopback, as real ones behave on good days and on bad ones."""

import base64
import contextlib
import hashlib
import json
import threading
from collections import Counter
from collections.abc import Mapping
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, Self
from urllib.parse import parse_qsl, urlencode, urlsplit

USER = "support@example.com"
CLIENT_ID, CLIENT_SECRET = "agent-1", "client secret, 40 % of it"
SCOPES = ("mail.read", "mail.send")


class OAuthIssuer:
    """A context manager. Public attributes may be changed at any time.

    answers: what comes next, in place of its own answer to a token request: (status, body), or an error's name.
    rotates: each refresh takes the old refresh token back, as strict issuers do. token_length: of access tokens.
    """

    def __init__(self, port: int = 0) -> None:
        self.answers: list[str | tuple[int, bytes]] = []
        self.rotates = False
        self.lifetime_s: object = 3600
        self.token_length = 40
        self.requests: list[dict[str, str]] = []
        """The forms of all token and device requests, in order."""

        self.access_tokens: set[str] = set()
        self.refresh_tokens: set[str] = set()
        self.counts: Counter[str] = Counter()
        self.hold: threading.Event | None = None
        """Token requests wait for this to be set."""

        self.arrived = threading.Event()
        """A token request came."""

        self._codes: dict[str, str] = {}
        self._issued = 0
        self._lock = threading.Lock()
        self._server = ThreadingHTTPServer(("127.0.0.1", port), self._handler())
        self._server.daemon_threads = True
        self.port: int = self._server.server_address[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self.token_url = f"{self.url}/token"

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def settings(self, **changes: Any) -> dict[str, Any]:
        """`mailbox.oauth` for this issuer."""
        return {
            "provider": "other",
            "client_id": CLIENT_ID,
            "token_url": self.token_url,
            "device_url": f"{self.url}/device",
            "authorization_url": f"{self.url}/authorize",
            "scopes": list(SCOPES),
            **changes,
        }

    def issue(self) -> dict[str, Any]:
        """What a token request is answered with; the tokens are good from now on."""
        with self._lock:
            self._issued += 1
            number = self._issued
        access, refresh = f"access-{number}-".ljust(self.token_length, "a"), f"refresh-{number}"
        self.access_tokens.add(access)
        self.refresh_tokens.add(refresh)
        answer = {"access_token": access, "token_type": "Bearer", "refresh_token": refresh}
        return answer if self.lifetime_s is None else {**answer, "expires_in": self.lifetime_s}

    def revoke_access(self) -> None:
        """No access token that was issued is good any more."""
        self.access_tokens.clear()

    def redirect_of(self, url: str, **changes: str | None) -> str:
        """Where a browser is sent to once somebody signed in on the page of an authorization URL."""
        asked = dict(parse_qsl(urlsplit(url).query))
        code = f"code-{len(self._codes)}"
        self._codes[code] = asked["code_challenge"]
        answer = {"code": code, "state": asked["state"], **changes}
        given = {name: value for name, value in answer.items() if value is not None}
        return f"{asked['redirect_uri']}/?{urlencode(given)}"

    def _answer(self, path: str, form: Mapping[str, str]) -> tuple[int, bytes]:
        if path == "/introspect":  # what Dovecot asks (RFC 7662)
            active = form.get("token") in self.access_tokens
            self.counts["introspected"] += 1
            return 200, json.dumps({"active": active, "username": USER} if active else {"active": False}).encode()
        self.requests.append(dict(form))
        if path == "/device":
            codes = {"device_code": "device-secret", "user_code": "BDWP-HQPK", "expires_in": 600, "interval": 1}
            return 200, json.dumps({**codes, "verification_uri": f"{self.url}/enter"}).encode()
        self.arrived.set()
        if self.hold is not None:
            self.hold.wait(60)
        if self.answers:
            answer = self.answers.pop(0)
            return (400, json.dumps({"error": answer}).encode()) if isinstance(answer, str) else answer
        return self._grant(form)

    def _grant(self, form: Mapping[str, str]) -> tuple[int, bytes]:
        error = "invalid_grant"
        match form:
            case {"grant_type": "refresh_token", "refresh_token": token} if token in self.refresh_tokens:
                self.counts["refreshed"] += 1
                if self.rotates:
                    self.refresh_tokens.discard(token)
                answer = self.issue()
                if not self.rotates:
                    del answer["refresh_token"]
                return 200, json.dumps(answer).encode()
            case {"grant_type": "authorization_code", "code": code, "code_verifier": verifier} if code in self._codes:
                digest = hashlib.sha256(verifier.encode()).digest()
                if base64.urlsafe_b64encode(digest).decode().rstrip("=") == self._codes.pop(code):
                    return 200, json.dumps(self.issue()).encode()
            case {"grant_type": "client_credentials", "client_secret": secret}:
                if secret == CLIENT_SECRET:
                    return 200, json.dumps({**self.issue(), "refresh_token": None}).encode()
                error = "invalid_client"
            case {"grant_type": kind} if kind.endswith(("device_code", "jwt-bearer")):
                return 200, json.dumps(self.issue()).encode()
        return 400, json.dumps({"error": error, "error_description": "E4711: not\r\nso."}).encode()

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        issuer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
                status, answer = issuer._answer(self.path, dict(parse_qsl(body.decode(), keep_blank_values=True)))
                with contextlib.suppress(OSError):
                    self.send_response(status)
                    if 300 <= status < 400:
                        self.send_header("Location", f"{issuer.url}/elsewhere")
                    self.send_header("Content-Type", "application/json")
                    self.send_header("Content-Length", str(len(answer)))
                    self.end_headers()
                    self.wfile.write(answer)

            def log_message(self, *args: object) -> None:
                pass

        return Handler
