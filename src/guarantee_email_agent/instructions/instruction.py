"""The instruction files once they are read and checked."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from guarantee_email_agent.files.validation import all_matching
from guarantee_email_agent.instructions.hand_over_lexicon import HandOverLexicon, parse_hand_over
from guarantee_email_agent.instructions.lexicon import Lexicon
from guarantee_email_agent.instructions.look_up import WARRANTY, Fact, LookUp, look_up_of
from guarantee_email_agent.instructions.router import Condition, Situation, Topic, all_situations, is_triggered
from guarantee_email_agent.instructions.template import ReplyTemplate, Sentence, words_asked_for


@dataclass(frozen=True, slots=True)
class MainHeader:
    """Frontmatter of the main file."""

    name: str = field(metadata={"doc": "name of the instruction"})
    description: str = field(metadata={"doc": "what it is for, for the person who edits it"})
    trigger: str = field(metadata={"doc": "when it applies, in words"})
    version: str = field(metadata={"doc": "version of the text, quoted"})
    link_hosts: tuple[str, ...] = field(
        default=(),
        metadata={
            "doc": "hosts that replies may name in links and mail addresses",
            "check": all_matching(r"[\w-]+(?:\.[\w-]+)+", "bare hosts, such as example.com"),
        },
    )
    default_language: str = field(
        default="en",
        metadata={"doc": "language of the replies in a scenario's own file, and where it has no other"},
    )


@dataclass(frozen=True, slots=True)
class ScenarioHeader:
    """Frontmatter of a scenario file."""

    name: str = field(metadata={"doc": "name of the scenario; the file is called the same"})
    description: str = field(metadata={"doc": "what it is for, for the person who edits it"})
    trigger: tuple[Condition, ...] = field(metadata={"doc": "situations in which it applies, one list item each"})
    version: str = field(metadata={"doc": "version of the text, quoted"})
    ticket: Mapping[str, str] | None = field(
        default=None, metadata={"doc": "fields of the ticket that the instruction decides; without it no ticket"}
    )
    asks_for: str | None = field(
        default=None, metadata={"doc": "the number that the reply asks for; a mail that brings it is answered again"}
    )


@dataclass(frozen=True, slots=True)
class ScenarioInstruction:
    """What happens in one kind of situation. No `templates` means that no reply is sent; each has a `language`."""

    name: str
    trigger: tuple[Condition, ...]
    ticket: Mapping[str, str] | None
    body: str
    templates: tuple[ReplyTemplate, ...]
    asks_for: str | None = None
    approved_text: str = field(init=False)
    """Every word that the author wrote into its replies, in any language."""

    languages: frozenset[str] = field(init=False)
    sentence_ids: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        parts = (part for template in self.templates for part in template.all_parts())
        ids = tuple(dict.fromkeys(part.id for part in parts if isinstance(part, Sentence)))
        object.__setattr__(self, "sentence_ids", ids)
        object.__setattr__(self, "approved_text", "\n".join(each.literal_text() for each in self.templates))
        object.__setattr__(self, "languages", frozenset(each.language for each in self.templates if each.language))

    def templates_in(self, language: str) -> tuple[ReplyTemplate, ...]:
        return tuple(each for each in self.templates if each.language == language)


@dataclass(frozen=True, slots=True)
class Instructions:
    """A complete, checked set: every situation has exactly one scenario.

    main_body: how every mail is read. topics: what a mail may be about; `unclear` is none of them. lexicon: the words
    by which it is read without a model. look_ups: those that serve one of the topics. unphrased: topics that no
    phrase of the lexicon speaks for, so that they take a language model. untranslated: as `translations` has it, of
    languages in which nobody is answered for that.
    """

    main_body: str
    topics: tuple[Topic, ...]
    lexicon: Lexicon = field(repr=False, compare=False)
    scenarios: tuple[ScenarioInstruction, ...]
    look_ups: tuple[LookUp, ...] = (WARRANTY,)
    default_language: str = "en"
    unphrased: tuple[str, ...] = ()
    untranslated: Mapping[str, Mapping[str, int]] = field(default_factory=dict, hash=False)
    languages: tuple[str, ...] = field(init=False)
    """The languages that a reply may have, the default one first."""
    _words: dict[str, frozenset[str]] = field(default_factory=dict, init=False, repr=False, compare=False)
    _routes: dict[Situation, ScenarioInstruction] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        others = frozenset().union(*(each.languages for each in self.scenarios)) - {self.default_language}
        object.__setattr__(self, "languages", (self.default_language, *sorted(others)))

    def look_up_for(self, topic: str) -> LookUp | None:
        """The look-up that serves a topic."""
        return look_up_of(topic, self.look_ups)

    def words_of(self, fact: Fact) -> frozenset[str]:
        """What a reply may say of a fact that is a word: its own words, else those that some condition names."""
        if (words := self._words.get(fact.name)) is None:
            templates = (template for scenario in self.scenarios for template in scenario.templates)
            words = self._words[fact.name] = frozenset(fact.words or words_asked_for(fact.name, templates))
        return words

    def reply_language(self, scenario: ScenarioInstruction, language: str) -> str:
        """`language` where the scenario has replies in it, else the default one."""
        return language if language in scenario.languages else self.default_language

    @property
    def hand_over(self) -> HandOverLexicon:
        """The words that leave a mail to a person, and the reasons that a model may add."""
        return parse_hand_over(self.route(Situation(hand_over=True)).body)

    def situations(self) -> dict[str, list[Situation]]:
        """Those in which each scenario is used, by its name."""
        found: dict[str, list[Situation]] = {each.name: [] for each in self.scenarios}
        for situation in all_situations((topic.name for topic in self.topics), self.look_ups):
            found[self.route(situation).name].append(situation)
        return found

    def route(self, situation: Situation) -> ScenarioInstruction:
        if (scenario := self._routes.get(situation)) is None:
            scenario = next(each for each in self.scenarios if is_triggered(each.trigger, situation))
            self._routes[situation] = scenario
        return scenario
