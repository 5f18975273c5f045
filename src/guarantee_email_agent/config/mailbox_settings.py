"""How the built-in mail server signs in by OAuth, and the folders in which marked mails go."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from guarantee_email_agent.files.validation import all_matching, matching, not_blank, setting

OAuthFlow = Literal["device", "authorization_code", "client_credentials", "service_account"]

KEPT_TOKEN_FLOWS: Final[tuple[OAuthFlow, ...]] = ("device", "authorization_code")
"""Those in which a person signs in once, so that the refresh token has to be kept."""

_URL: Final = r"(?i)https://[^\s/@?#]+[^\s@?#]*|http://(localhost|127(\.\d{1,3}){3}|\[::1\])(:\d+)?(/[^\s@?#]*)?"
_TENANT: Final = r"[A-Za-z0-9][A-Za-z0-9.-]*"
_SCOPE: Final = r'[^\s"\\]+'
_MICROSOFT: Final = "https://login.microsoftonline.com"
_MICROSOFT_SCOPES: Final = (
    "https://outlook.office.com/IMAP.AccessAsUser.All",
    "https://outlook.office.com/SMTP.Send",
    "offline_access",
)
_MICROSOFT_APPLICATION_SCOPES: Final = ("https://outlook.office365.com/.default",)
_GOOGLE_SCOPES: Final = ("https://mail.google.com/",)


@dataclass(frozen=True, slots=True)
class OAuthEndpoints:
    """The URLs of an issuer; None for one that the flow does not need."""

    token: str
    device: str | None = None
    authorization: str | None = None


_endpoint: Final = matching(_URL, "a URL that begins with https://, without a user or a query")
_tenant: Final = matching(_TENANT, "the id of a directory, or its domain, such as contoso.onmicrosoft.com")
_scopes: Final = all_matching(_SCOPE, "scopes without spaces, each an item of its own")


@dataclass(frozen=True, slots=True)
class OAuthSettings:
    """Access tokens in place of passwords, for IMAP and SMTP (RFC 6749)."""

    provider: Literal["google", "microsoft", "other"] | None = setting(
        None, "Who issues access tokens: `google`, `microsoft`, or `other`, with endpoints; `null`: passwords are used."
    )
    flow: OAuthFlow | None = setting(
        None,
        "`device` or `authorization_code`, for which a person signs in once with `authorize`; `client_credentials`; "
        "`service_account`. By default `authorization_code` for Google, else `device`.",
    )
    client_id: str | None = setting(
        None,
        "The id under which this agent is registered with the provider; its secret is `OAUTH_CLIENT_SECRET`.",
        not_blank,
    )
    tenant: str | None = setting(
        None, "Microsoft's directory (tenant); by default `common`, which `client_credentials` cannot use.", _tenant
    )
    token_url: str | None = setting(None, "The token endpoint of another provider.", _endpoint)
    device_url: str | None = setting(None, "Its device authorization endpoint, for `device`.", _endpoint)
    authorization_url: str | None = setting(None, "Its authorization endpoint, for `authorization_code`.", _endpoint)
    scopes: tuple[str, ...] = setting((), "What is asked for; by default what the provider wants for mail.", _scopes)
    token_file: Path = setting(
        Path("mail-token.json"), "The file that `authorize` keeps the token in; only its owner may read it."
    )
    key_file: Path | None = setting(
        None, "The JSON key of a service account, for `service_account`; only its owner may read it."
    )

    def __post_init__(self) -> None:
        if problem := self._problem():
            raise ValueError(problem)

    def _problem(self) -> str | None:
        given = (self.flow, self.client_id, self.tenant, self.token_url, self.device_url, self.authorization_url)
        if self.provider is None:
            is_used = any(given) or bool(self.scopes) or self.key_file is not None
            return "has no provider; set it to google, microsoft or other" if is_used else None
        flow = self.used_flow
        if self.provider == "google" and flow in ("device", "client_credentials"):
            return (
                f"has flow: {flow}, in which Google gives no access to mail; set it to authorization_code, or to "
                "service_account in a Workspace"
            )
        if self.provider == "microsoft" and flow == "service_account":
            return "has flow: service_account, which Microsoft does not know; set it to client_credentials"
        if self.provider == "microsoft" and flow == "client_credentials" and self.tenant is None:
            return "has no tenant, which client_credentials needs; add the id of your directory"
        if self.provider != "microsoft" and self.tenant is not None:
            return "has a tenant, which only Microsoft knows; remove it"
        if self.provider != "other" and (self.token_url or self.device_url or self.authorization_url):
            return f"has endpoints, which are known for {self.provider}; remove them, or set provider to other"
        if self.client_id is None and flow != "service_account":
            return "has no client_id; add the id under which the agent is registered with the provider"
        if (flow == "service_account") != (self.key_file is not None):
            return "needs key_file for flow: service_account, and for no other; add it, or remove it"
        if self.provider != "other":
            return None
        needed = {"token_url": self.token_url}
        if flow in KEPT_TOKEN_FLOWS:
            needed |= (
                {"device_url": self.device_url} if flow == "device" else {"authorization_url": self.authorization_url}
            )
        missing = next((key for key, url in needed.items() if url is None), None)
        return None if missing is None else f"has no {missing}; add it, as the provider's documentation tells it"

    @property
    def used_flow(self) -> OAuthFlow:
        return self.flow or ("authorization_code" if self.provider == "google" else "device")

    @property
    def used_scopes(self) -> tuple[str, ...]:
        """What the provider wants for IMAP and SMTP, unless the configuration says otherwise."""
        if self.scopes or self.provider == "other":
            return self.scopes
        if self.provider == "google":
            return _GOOGLE_SCOPES
        return _MICROSOFT_APPLICATION_SCOPES if self.used_flow == "client_credentials" else _MICROSOFT_SCOPES

    @property
    def endpoints(self) -> OAuthEndpoints:
        """Only where there is a provider."""
        if self.provider == "google":
            return OAuthEndpoints(
                "https://oauth2.googleapis.com/token", authorization="https://accounts.google.com/o/oauth2/v2/auth"
            )
        if self.provider == "microsoft":
            tenant = f"{_MICROSOFT}/{self.tenant or 'common'}/oauth2/v2.0"
            return OAuthEndpoints(f"{tenant}/token", f"{tenant}/devicecode", f"{tenant}/authorize")
        return OAuthEndpoints(self.token_url or "", self.device_url, self.authorization_url)


MarkKind = Literal["auto", "keywords", "folders"]
"""What says what became of a mail; `auto`: keywords where the server keeps them, else folders."""


def folder_name(name: str) -> str | None:
    """A check: an IMAP folder of this name can be made, and listed by it."""
    if name != name.strip() or not name.isprintable() or not set("*%").isdisjoint(name):
        return "must be a name without * and %, and without white space around it"
    return not_blank(name)
