"""Where `answer` and `capture` have the answers of look-ups from: the command line, or the configured services."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.files.problems import listed
from guarantee_email_agent.instructions.look_up import FOUND, NOT_FOUND, OTHER_STATUS, WARRANTY, Fact, LookUp
from guarantee_email_agent.services.look_up_answer import parse_look_up_answer
from guarantee_email_agent.services.look_ups import tool_of
from guarantee_email_agent.utils.errors import ConfigurationError, IntegrationError
from guarantee_email_agent.utils.text import printable, truncate, word_key

_EXAMPLES: Final = {"date": "2027-01-31", "amount": "49.90 EUR", "name": "Parcel Post", "word": "full"}
_MAX_SHOWN: Final = 60


class GivenFact(NamedTuple):
    """One key of a look-up's answer as the command line gives it. option: what it was given by."""

    option: str
    look_up: str
    key: str
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LookUpSource:
    """answers: made-up ones, by the look-up's name; one without knows no number. ask: the configured services say."""

    answers: Mapping[str, Mapping[str, str]] = field(default_factory=dict)
    ask: bool = False

    def describe(self, look_up: LookUp) -> str:
        """Where the answer of one look-up comes from, in words."""
        if self.ask:
            return "asked now"
        if look_up.name in self.answers:
            return "as given"
        option = "--status" if look_up.is_of_warranties else f"--answer {look_up.name}.{look_up.status_key}=…"
        return f"nothing given, so no number is known; say {option}, or --look-up"

    def mock_responses(self, config: Config) -> dict[str, Mapping[str, object]]:
        """The answers as `mock_responses` of a scenario has them."""
        return {name: mock_response(name, answer, config) for name, answer in self.answers.items()}

    def check_asked(self, look_ups: Sequence[LookUp]) -> None:
        """Raises ConfigurationError for an answer that no mail can ask for. look_ups: of the declared topics."""
        names = [look_up.name for look_up in look_ups]
        if unused := next((name for name in self.answers if name not in names), None):
            asked = ", ".join(names) or "no look-up"
            raise _bad_usage(f"No topic of the instruction files asks {unused}; they ask {asked}. Leave out its answer")


def mock_response(name: str, answer: Mapping[str, object], config: Config) -> Mapping[str, object]:
    """What stands under a look-up's name in `mock_responses`: its answer, below the tool of a configured one."""
    return answer if name == WARRANTY.name else {tool_of(config.look_ups[name])[0]: answer}


def look_up_place(name: str, config: Config) -> tuple[str, str, str]:
    """Where the calls of a look-up are noted: server, tool and argument."""
    if name == WARRANTY.name:
        return "warranty", "check_warranty", WARRANTY.number
    return (name, *tool_of(config.look_ups[name]))


def look_up_source(given: Sequence[GivenFact], look_ups: Sequence[LookUp], *, ask: bool) -> LookUpSource:
    """What the options say. look_ups: of the configuration.

    Raises ConfigurationError(code="cli_bad_usage") for options that contradict each other, and an answer that no such
    service could give.
    """
    if ask and given:
        option = given[0].option.partition(" ")[0]
        raise _bad_usage(f"--look-up asks the configured services. Leave out it, or {option}")
    answers: dict[str, dict[str, str]] = {}
    for fact in given:
        answers.setdefault(fact.look_up, {})[fact.key] = fact.value
    for look_up in look_ups:
        of_this = [fact for fact in given if fact.look_up == look_up.name]
        if of_this:
            _check_status(of_this, look_up)
            _check_facts(of_this, look_up)
    return LookUpSource(answers=answers, ask=ask)


def parse_given_facts(texts: Iterable[str], look_ups: Sequence[LookUp]) -> list[GivenFact]:
    """`orders.status=shipped` as a fact of the look-up `orders`. Raises ConfigurationError(code="cli_bad_usage")."""
    by_name = {look_up.name: look_up for look_up in look_ups}
    found = []
    for text in texts:
        place, equals, value = text.partition("=")
        name, dot, key = place.partition(".")
        option = f"--answer {printable(truncate(place, _MAX_SHOWN))}"
        if not (equals and dot and value.strip()):
            raise _bad_usage(f"{option} gives no answer. Write it as --answer {_example(look_ups)}")
        if name not in by_name:
            raise _bad_usage(f"{option}: there is no look-up {name!r}{listed(name, tuple(by_name))}")
        if key not in (keys := answer_keys(by_name[name])):
            raise _bad_usage(f"{option}: {name} answers no {key!r}{listed(key, keys)}")
        found.append(GivenFact(option, name, key, value.strip()))
    return found


def answer_keys(look_up: LookUp) -> tuple[str, ...]:
    """What is read of a service's answer; whatever else it says reaches nobody."""
    return (look_up.status_key, *(fact.name for fact in look_up.facts), look_up.owner_key)


def _check_status(given: Sequence[GivenFact], look_up: LookUp) -> None:
    status = next((fact for fact in reversed(given) if fact.key == look_up.status_key), None)
    if status is None and look_up.statuses != (FOUND,):
        wanted = "--status" if look_up.is_of_warranties else f"--answer {look_up.name}.{look_up.status_key}=…"
        raise _bad_usage(f"{given[0].option} needs {wanted} beside it")
    known = (*look_up.told_statuses, OTHER_STATUS)
    if status is not None and word_key(status.value) not in map(word_key, known):
        raise _bad_usage(f"{status.option}={_shown(status.value)} is no status of it{listed(status.value, known)}")


def _check_facts(given: Sequence[GivenFact], look_up: LookUp) -> None:
    forms = {fact.name: fact for fact in look_up.facts}
    for each in given:
        fact = forms.get(each.key)
        if fact is not None and not _parsed(each, (fact.statuses or look_up.statuses)[0], look_up):
            raise _bad_usage(f"{each.option} {_shown(each.value)} is {_not_of_form(fact)}")
        if each.key == look_up.owner_key and not _parsed(each, NOT_FOUND, look_up):
            raise _bad_usage(f"{each.option} {_shown(each.value)} is no address. Write it as jane@example.com")


def _parsed(given: GivenFact, status: str, look_up: LookUp) -> bool:
    try:
        answer = parse_look_up_answer({look_up.status_key: status, given.key: given.value}, look_up)
    except IntegrationError:
        return False
    return given.key in answer.facts or bool(answer.owner_email)


def _not_of_form(fact: Fact) -> str:
    if fact.words:
        return f"none of {', '.join(fact.words)}"
    what = "plain word" if fact.form == "word" else f"{fact.form} that such a service could give"
    return f"no {what}. Write it as {_EXAMPLES[fact.form]}"


def _example(look_ups: Sequence[LookUp]) -> str:
    look_up = look_ups[-1]
    return f"{look_up.name}.{look_up.status_key}={look_up.statuses[0]}"


def _shown(value: str) -> str:
    return repr(truncate(value, _MAX_SHOWN))


def _bad_usage(message: str) -> ConfigurationError:
    return ConfigurationError(message, "cli_bad_usage")
