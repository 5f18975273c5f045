"""What all pages share: where the runs are, how a page is made of a template, and the style and scripts beside it."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote, urlencode

from markupsafe import Markup
from starlette.datastructures import QueryParams
from starlette.responses import Response

from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.statistics import format_percentage
from guarantee_email_agent.runlog.suite_statistics import describe_score
from guarantee_email_agent.runlog.views.html_report import template_environment, template_source
from guarantee_email_agent.runlog.views.word_diff import split_changes
from guarantee_email_agent.utils.errors import AgentError
from guarantee_email_agent.utils.text import printable, truncate

if TYPE_CHECKING:
    from jinja2 import Environment

    from guarantee_email_agent.runlog.labelling import LabelSheet

_PACKAGE: Final = "guarantee_email_agent.viewer"
_BUSY_S: Final = 2.0
"""How long a page waits for a writer that lets nobody read."""
_TYPES: Final = {"css": "text/css", "js": "text/javascript", "svg": "image/svg+xml"}
_HTML: Final = "text/html"
_MARKS: Final = {" ": Markup("{}"), "-": Markup("<del>{}</del>"), "+": Markup("<ins>{}</ins>")}
_MAX_TEXT: Final = 200
_NUMBER: Final = re.compile("[0-9]{1,15}")


@dataclass(frozen=True, slots=True)
class StaticFile:
    """A file that every page needs. digest: of its content, and part of its address, so that browsers may keep it."""

    content: bytes
    media_type: str
    digest: str


@dataclass(frozen=True, slots=True)
class Site:
    """store: the file of the runs. labels: what a person labels here; None for nothing, so that pages only read."""

    store: Path
    labels: LabelSheet | None = None
    environment: Environment = field(init=False)
    static: Mapping[str, StaticFile] = field(init=False)

    def __post_init__(self) -> None:
        environment = template_environment(_PACKAGE)
        object.__setattr__(self, "environment", environment)
        object.__setattr__(self, "static", _static_files(environment))
        environment.filters |= {"number": "{:,}".format, "moment": _moment, "changes": _changes}
        environment.filters["describe_score"] = describe_score
        environment.globals |= {
            "labels": self.labels,
            "asset": lambda name: f"/static/{self.static[name].digest}/{name}",
            "run_url": run_url,
            "result_url": result_url,
            "with_query": with_query,
            "rate": format_percentage,
        }
        for name in environment.list_templates(extensions=["jinja"]):
            environment.get_template(name)  # compiled now, and not for the first who asks

    def open_store(self) -> RunStore:
        """Anew for every page, so that a file that was replaced or brought up to date is read. Raises StoreError."""
        return RunStore(self.store, busy_s=_BUSY_S)

    def page(self, template: str, status: int = 200, **values: Any) -> Response:
        """A whole page, or a part of one."""
        text = self.environment.get_template(template).render(**values)
        return Response(text.encode(errors="backslashreplace"), status, media_type=_HTML)


def run_url(run: str) -> str:
    return f"/runs/{quote(run, safe='')}"


def result_url(run: str, name: str, repetition: int = 1) -> str:
    """repetition: where the page is to begin."""
    shown = quote(name.encode(errors="backslashreplace"), safe="")
    return f"{run_url(run)}/results/{shown}{f'#repetition-{repetition}' if repetition > 1 else ''}"


def with_query(path: str, **values: object) -> str:
    """The address with what is not None."""
    query = urlencode({name: value for name, value in values.items() if value is not None})
    return f"{path}?{query}" if query else path


def _moment(iso: str) -> str:
    """2026-01-18T10:00:00Z → 2026-01-18 10:00:00 UTC."""
    return iso.replace("T", " ").replace("Z", " UTC")


def _changes(line: str) -> Markup:
    """A line of a word diff, with the words that went and came marked as such."""
    return Markup("").join(_MARKS[sign].format(words) for sign, words in split_changes(line))


def _static_files(environment: Environment) -> dict[str, StaticFile]:
    folder = files(_PACKAGE) / "static"
    style = template_source(environment, "report.css").encode() + (folder / "viewer.css").read_bytes()
    contents = {"viewer.css": style} | {name: (folder / name).read_bytes() for name in ("htmx.min.js", "icon.svg")}
    return {
        name: StaticFile(content, _TYPES[name.rpartition(".")[2]], hashlib.sha256(content).hexdigest()[:16])
        for name, content in contents.items()
    }


class QueryError(AgentError):
    """The address asks for what there is not."""


class Query:
    """Values that are missing or empty are None. Every method raises QueryError."""

    def __init__(self, values: QueryParams) -> None:
        self._values = values

    def text(self, name: str) -> str | None:
        value = self._values.get(name, "")
        if len(value) > _MAX_TEXT:
            raise _wrong(name, value, f"at most {_MAX_TEXT} characters")
        return value or None

    def choice(self, name: str, choices: Iterable[str]) -> str | None:
        value = self.text(name)
        if value is not None and value not in (known := list(choices)):
            raise _wrong(name, value, f"one of {', '.join(known)}")
        return value

    def number(self, name: str) -> int | None:
        value = self.text(name)
        if value is None:
            return None
        if not _NUMBER.fullmatch(value):
            raise _wrong(name, value, "a whole number")
        return int(value)


def _wrong(name: str, value: str, wanted: str) -> QueryError:
    return QueryError(f"{name}='{printable(truncate(value, 60))}' in the address is not {wanted}", "viewer_bad_query")
