from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from guarantee_email_agent.files.problems import Problem, ProblemsError, dotted_path, locate_problems
from guarantee_email_agent.files.validation import build
from guarantee_email_agent.files.yaml import load_documents


def _even(value: int) -> str | None:
    return None if value % 2 == 0 else f"must be even, not {value}"


@dataclass(frozen=True, slots=True)
class Pet:
    name: str
    kind: Literal["cat", "dog"] = "cat"
    legs: int = field(default=4, metadata={"check": _even})


@dataclass(frozen=True, slots=True)
class Owner:
    sender: str = field(metadata={"key": "from"})
    pet: Pet
    weight: float = 1.0
    happy: bool = True
    nick: str | None = None
    tags: tuple[str, ...] = ()
    pets: tuple[Pet, ...] = ()
    headers: Mapping[str, str | tuple[str, ...]] = field(default_factory=dict)
    facts: Mapping[str, object] = field(default_factory=dict)
    home: Path = Path("home")
    file: str | None = field(default=None, metadata={"key": None})


@dataclass(frozen=True, slots=True)
class Range:
    low: int = 0
    high: int = 10

    def __post_init__(self) -> None:
        if self.low > self.high:
            raise ValueError("low must not be above high")


@dataclass(frozen=True, slots=True)
class Ranges:
    first: Range = Range()
    maybe: Range | None = None


GOOD: dict[str, Any] = {"from": "a@example.com", "pet": {"name": "Tom"}}


def problems(data: object, cls: type = Owner) -> list[Problem]:
    result = build(cls, data)
    assert isinstance(result, list)
    return result


class TestBuild:
    def test_every_type(self) -> None:
        built = build(
            Owner,
            {
                **GOOD,
                "weight": 3,
                "happy": False,
                "nick": "T",
                "tags": ["a", "b"],
                "pets": [{"name": "Rex", "kind": "dog", "legs": 2}],
                "headers": {"X-A": "1", "X-B": ["2", "3"]},
                "facts": {"any": [1, {"b": None}]},
                "home": "here/there",
            },
        )
        assert built == Owner(
            sender="a@example.com",
            pet=Pet("Tom"),
            weight=3.0,
            happy=False,
            nick="T",
            tags=("a", "b"),
            pets=(Pet("Rex", "dog", 2),),
            headers={"X-A": "1", "X-B": ("2", "3")},
            facts={"any": [1, {"b": None}]},
            home=Path("here/there"),
        )
        assert isinstance(built, Owner)
        assert type(built.weight) is float

    def test_field_that_is_not_in_the_file_is_given_by_the_caller(self) -> None:
        built = build(Owner, GOOD, {"file": "a.yaml"})
        assert isinstance(built, Owner)
        assert built.file == "a.yaml"


class TestProblems:
    def test_all_at_once_in_the_order_of_the_fields_then_unknown_keys_as_written(self) -> None:
        found = problems({"zzz": 1, "wieght": 2, "happy": "yes", "pet": {"legs": 3, "nam": "x"}})
        assert [(dotted_path(problem.path), problem.kind) for problem in found] == [
            ("from", "missing"),
            ("pet.name", "missing"),
            ("pet.legs", "value"),
            ("pet.nam", "unknown"),
            ("happy", "type"),
            ("zzz", "unknown"),
            ("wieght", "unknown"),
        ]

    @pytest.mark.parametrize(
        ("changes", "place", "message"),
        [
            ({"nick": 12345}, "nick", 'is the number 12345, not text; quote it: "12345"'),
            ({"nick": True}, "nick", 'is the word true, true or false in YAML, not text; quote it: "true"'),
            ({"nick": ["a"]}, "nick", "must be text, not a list"),
            ({"from": None}, "from", "must be text, but is empty"),
            ({"weight": "3.5"}, "weight", "must be a number, not the text '3.5'; remove the quotes"),
            ({"weight": "1_000"}, "weight", "must be a number, not the text '1_000'"),
            ({"weight": "1e400"}, "weight", "must be a number, not the text '1e400'"),
            ({"weight": float("nan")}, "weight", "must be a number, not nan"),
            ({"happy": "Yes"}, "happy", "must be true or false, not the text 'Yes'; write true without quotes"),
            ({"tags": None}, "tags", "must be a list, but is empty; write [] for none, or remove the key"),
            ({"tags": ["a", 1]}, "tags[1]", 'is the number 1, not text; quote it: "1"'),
            ({"pets": [{"name": "a"}, 3]}, "pets[1]", "must be a mapping of keys to values, not 3"),
            ({"pet": {"name": "a", "legs": 2.0}}, "pet.legs", "must be a whole number, not 2.0"),
            ({"pet": {"name": "a", "legs": 3}}, "pet.legs", "must be even, not 3"),
            (
                {"pet": {"name": "a", "kind": "dig"}},
                "pet.kind",
                "must be 'cat' or 'dog', not the text 'dig' – did you mean 'dog'?",
            ),
            ({"headers": {1: "x"}}, "headers.1", 'the key 1 is not text; quote it: "1"'),
            (
                {"facts": None},
                "facts",
                "must be a mapping of keys to values, but is empty; write {} for none, or remove the key",
            ),
            ({"home": ""}, "home", "must be a path, but is empty or holds a NUL"),
            ({True: 1}, "true", 'the key true is not text; quote it: "true"'),
            ({"hapy": 1}, "hapy", "unknown key 'hapy' – did you mean 'happy'?"),
            ({"nick": "x" * 60, "tags": "y" * 60}, "tags", f"must be a list, not the text '{'y' * 37}'…"),
        ],
    )
    def test_message(self, changes: dict[Any, object], place: str, message: str) -> None:
        [problem] = problems({**GOOD, **changes})
        assert (dotted_path(problem.path), problem.message) == (place, message)

    def test_check_over_several_fields_is_the_problem_of_their_section(self) -> None:
        [problem] = problems({"first": {"low": 11}}, Ranges)
        assert (problem.path, problem.kind, problem.message) == (("first",), "value", "low must not be above high")


class TestInSource:
    def located(self, text: str) -> list[Problem]:
        data: dict[str, object] = {}
        for document in load_documents(text):
            assert isinstance(document, dict)
            data.update(document)
        return locate_problems(problems(data), text)

    def test_missing_field_points_at_its_section(self) -> None:
        [problem] = self.located("---\nfrom: a\n---\npet:\n  legs: 2\n")
        assert (problem.kind, problem.line) == ("missing", 4)

    def test_missing_field_at_the_top_has_no_line(self) -> None:
        [problem] = self.located("from: a\n")
        assert problem.line is None

    def test_unknown_key_and_list_item(self) -> None:
        found = self.located("from: a\npet: {name: b}\ntags:\n  - x\n  - 0x1F\ntrue: 1\n")
        assert [(problem.line, problem.message) for problem in found] == [
            (5, 'is the number 0x1F, not text; quote it: "0x1F"'),
            (6, 'the key true is not text; quote it: "true"'),
        ]


SCALARS = st.none() | st.booleans() | st.integers() | st.floats() | st.text()
KEYS = st.sampled_from(["from", "pet", "name", "legs", "kind", "tags", "pets", "headers", "facts", "home"]) | st.text()
ANYTHING = st.recursive(SCALARS, lambda inner: st.lists(inner) | st.dictionaries(KEYS | st.integers(), inner))


@pytest.mark.slow
@settings(max_examples=200)
@given(ANYTHING)
def test_any_data_gives_an_owner_or_problems_of_one_line(data: object) -> None:
    result = build(Owner, data)
    if isinstance(result, list):
        assert result
        assert all(problem.message and "\n" not in problem.message for problem in result)
    else:
        assert isinstance(result, Owner)


def _refuse_words(words: Mapping[str, str]) -> None:
    raise ProblemsError(Problem((name,), "value", "is no word") for name in words)


@dataclass(frozen=True, slots=True)
class Lexicon:
    words: Mapping[str, str] = field(default_factory=dict, metadata={"check": _refuse_words})


@dataclass(frozen=True, slots=True)
class Shelf:
    book: Lexicon = Lexicon()

    def __post_init__(self) -> None:
        raise ProblemsError([Problem(("book", "words"), "value", "is forbidden")])


def test_check_may_find_several_problems_below_its_value() -> None:
    found = problems({"book": {"words": {"a": "x", "b": "y"}}}, Shelf)
    assert [dotted_path(problem.path) for problem in found] == ["book.words.a", "book.words.b"]


def test_dataclass_may_find_problems_in_its_fields() -> None:
    (problem,) = problems({}, Shelf)
    assert (dotted_path(problem.path), problem.message) == ("book.words", "is forbidden")
