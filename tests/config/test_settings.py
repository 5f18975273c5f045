"""The settings and what is written about them: the reference and the commented file cannot fall behind."""

import json
import re
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

from guarantee_email_agent.config.look_up_settings import LookUpSettings
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.scenario_schema import json_schema
from guarantee_email_agent.files.yaml import locate

ROOT = Path(__file__).parents[2]


def settings(section: Any, prefix: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any, str]]:
    """Path, default and meaning of every setting."""
    for field in fields(section):
        if field.metadata.get("key", field.name) is None:
            continue
        value, path = getattr(section, field.name), (*prefix, field.name)
        if is_dataclass(value):
            yield from settings(value, path)
        elif path == ("look_ups",):
            continue  # documented in a table of its own
        else:
            yield path, value, field.metadata["doc"]


def as_yaml(value: Any) -> str:
    if isinstance(value, Path):
        return str(value)
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    return json.dumps(list(value) if isinstance(value, tuple) else value).strip('"')


def test_reference_lists_every_setting_with_its_default_and_nothing_else() -> None:
    reference = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    documented = re.findall(r"^\| `\w+\..*$", reference, re.MULTILINE)
    servers = re.compile("|".join(map(re.escape, ("mcp.warranty_api", "mcp.ticketing_system", "mailbox.server"))))
    rows = {  # the servers have one row for each of their keys
        f"| `{servers.sub('SERVER', '.'.join(path))}` | `{as_yaml(value)}` | {doc} |": None
        for path, value, doc in settings(Config())
    }
    assert documented == list(rows)


def test_an_operators_list_stays_one() -> None:
    assert len(list(settings(Config()))) <= 85


def test_reference_lists_every_key_of_a_look_up() -> None:
    reference = (ROOT / "docs" / "configuration.md").read_text(encoding="utf-8")
    section = reference.partition("### look_ups")[2].partition("### llm")[0]
    documented = re.findall(r"^\| `(\w+)` \| .* \| .* \|$", section.partition("| form |")[0], re.MULTILINE)
    assert sorted(documented) == sorted(field.name for field in fields(LookUpSettings))


def test_commented_file_holds_every_setting() -> None:
    text = (ROOT / "config.yaml").read_text(encoding="utf-8")
    assert [path for path, _, _ in settings(Config()) if locate(text, path) is None] == []


def test_every_setting_says_what_it_means_in_a_sentence() -> None:
    assert [path for path, _, doc in settings(Config()) if not re.fullmatch(r"[A-Z`].{9,}\.", doc)] == []


def test_schema_carries_the_limits() -> None:
    schema = json_schema(Config, "config.yaml of the warranty e-mail agent")
    assert list(schema["properties"]) == [
        *("mcp", "mailbox", "warranties", "warranty", "tickets", "look_ups"),
        *("instructions", "llm", "eval", "store", "agent", "metrics", "logging"),
    ]
    threshold = schema["properties"]["eval"]["properties"]["pass_threshold"]
    assert (threshold["exclusiveMinimum"], threshold["maximum"], threshold["default"]) == (1, 100, 99.0)
