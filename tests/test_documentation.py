"""The documents name everything that there is; `docs/check.py` runs their commands."""

import re
import runpy
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from guarantee_email_agent.instructions.instruction import ScenarioHeader
from guarantee_email_agent.instructions.instruction_files import TICKET_FIELDS_OF_CODE
from guarantee_email_agent.instructions.lexicon import LEXICON_ELEMENTS
from guarantee_email_agent.instructions.look_up import TICKET_NUMBER, WARRANTY
from guarantee_email_agent.instructions.router import EXAMPLE_ELEMENT, NUMBER_COUNTS, TOPIC_ELEMENT, UNCLEAR, Condition

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "src" / "guarantee_email_agent"
TRIGGER_PARTS = tuple(Condition.__dataclass_fields__)


def _document(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def _dependencies() -> list[str]:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    groups = [project["project"]["dependencies"], *project["dependency-groups"].values()]
    return [re.split(r"[^\w.-]", requirement)[0] for group in groups for requirement in group]


def _options_of_eval() -> list[str]:
    command = [sys.executable, "-m", "guarantee_email_agent", "eval", "--help"]
    shown = subprocess.run(command, capture_output=True, encoding="utf-8", check=True).stdout
    return sorted(set(re.findall(r"(?m)^  (?:-\w, )?(--[\w-]+)", shown)) - {"--help"})


@pytest.mark.parametrize("name", [*LEXICON_ELEMENTS, TOPIC_ELEMENT, EXAMPLE_ELEMENT])
def test_every_element_of_the_main_instruction_is_explained(name: str) -> None:
    assert f"`<{name}>`" in _document("instructions.md")


@pytest.mark.parametrize("name", [*WARRANTY.placeholders, TICKET_NUMBER])
def test_every_placeholder_is_explained(name: str) -> None:
    assert f"`{{{name}}}`" in _document("instructions.md")


@pytest.mark.parametrize("name", [*WARRANTY.fact_names, *TRIGGER_PARTS, UNCLEAR, *NUMBER_COUNTS, *WARRANTY.situations])
def test_every_fact_and_every_part_of_a_trigger_is_explained(name: str) -> None:
    assert f"`{name}`" in _document("instructions.md")


@pytest.mark.parametrize("name", [*ScenarioHeader.__dataclass_fields__, *TICKET_FIELDS_OF_CODE])
def test_every_key_of_a_frontmatter_is_explained(name: str) -> None:
    assert f"`{name}`" in _document("instructions.md").partition("### Frontmatter")[2].partition("### Triggers")[0]


def test_every_option_of_eval_is_explained() -> None:
    document = _document("evaluation.md")
    assert [option for option in _options_of_eval() if f"`{option}" not in document] == []


def test_every_package_is_explained() -> None:
    packages = [path.parent.name for path in PACKAGE.glob("*/__init__.py")]
    assert [name for name in packages if f"`{name}/`" not in _document("architecture.md")] == []


def test_every_dependency_has_its_reason() -> None:
    assert [name for name in _dependencies() if f"`{name}`" not in _document("dependencies.md")] == []


def test_every_attack_names_a_test_that_exists() -> None:
    named = re.findall(r"^\|.*\| `([\w/]+\.py)::(test_\w+)` \|$", _document("security.md"), re.MULTILINE)
    assert len(named) >= 26
    for file, name in named:
        assert f"def {name}(" in (ROOT / "tests" / file).read_text(encoding="utf-8"), f"{file}::{name}"


@pytest.mark.parametrize(
    ("shown", "printed", "kept"),
    [
        ("a … y z", "a b y z w", "a … y z w"),
        ("a … y", "a b c x", "a … x"),
        ("… y … z", "a y b z", "… y … z"),
        ("a … y", "b", "b …"),
        ("a y", "a b", "a b"),
    ],
)
def test_what_is_left_out_of_an_output_stays_so_and_nothing_else_goes(shown: str, printed: str, kept: str) -> None:
    check = runpy.run_path(str(ROOT / "docs" / "check.py"))
    assert check["_shortened"](shown.split(), printed.split()) == kept.split()
