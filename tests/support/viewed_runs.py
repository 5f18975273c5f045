"""The pages of `view` over a run store, asked without a network."""

from html.parser import HTMLParser
from pathlib import Path
from typing import Any

PORT = 8420
OWN = f"http://127.0.0.1:{PORT}"


class Markup(HTMLParser):
    """The elements of a page with their attributes, and its text on one line."""

    def __init__(self, content: bytes) -> None:
        super().__init__()
        self.content = content.decode()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self._words: list[str] = []
        self.feed(self.content)
        self.text = " ".join(" ".join(self._words).split())

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self._words.append(data)

    def all(self, name: str) -> list[dict[str, str | None]]:
        return [attributes for tag, attributes in self.elements if tag == name]


class Page(Markup):
    """As it came."""

    def __init__(self, response: Any) -> None:
        super().__init__(response.content)
        self.status: int = response.status_code
        self.headers = response.headers

    @property
    def links(self) -> list[str]:
        return [each["href"] or "" for each in self.all("a") if "href" in each]

    def link(self, part: str) -> str:
        """The first one whose address has that part."""
        return next(each for each in self.links if part in each)


class ViewedRuns:
    """`get` asks for a page."""

    def __init__(self, store: Path) -> None:
        from starlette.testclient import TestClient  # of the group ci, and a `conftest.py` imports this module

        from guarantee_email_agent.viewer.pages import Site
        from guarantee_email_agent.viewer.server import RequestGuard, create_application

        self.client = TestClient(
            RequestGuard(create_application(Site(store)), PORT), base_url=OWN, follow_redirects=False
        )

    def get(self, path: str, **headers: str) -> Page:
        return Page(self.client.get(path, headers={name.replace("_", "-"): value for name, value in headers.items()}))
