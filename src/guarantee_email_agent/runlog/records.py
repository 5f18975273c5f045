"""What is kept of a run, as plain data: the store knows no scenario, no task and no judge.

Everything that a verdict depends on is an `Input`: an instruction file, a setting, a judge. The inputs that results
share are an `InputSet`, so that two results can be compared by one digest, and two sets name by name. Named tuples and
not dataclasses: those take six times as long to define, at the start of every `eval`.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any, Final, Literal, NamedTuple, Self

from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import cost_text, time_taken

Outcome = Literal["passed", "failed", "inconclusive", "interrupted", "crashed"]
"""What a run came to. inconclusive: the rate was reached, and the proof that was asked for was not. interrupted: by a
signal, or it was killed. crashed: it ended in an error of its own."""

Verdict = Literal["passed", "failed", "error", "invalid"]
"""error: no verdict came. invalid: a file that could not be used, which counts as failed."""

WORSE: Final[Sequence[Verdict]] = ("passed", "failed", "invalid", "error")

COUNTED: Final = ("response", "trace", "judgement")
"""Parts of a transcript that statistics look at."""
PARTS: Final = ("source", "request", "response", "trace", "judgement")
"""Of a transcript; `CaseResult` explains them."""


INCOMPLETE: Final = "incomplete"
"""The kind of an input that is none: its name says what is not known of what verdicts depend on."""


class KeptRun(NamedTuple):
    """Where a run is kept. keep_runs: how many are, None for all. now: the time, ISO 8601."""

    file: Path
    keep_runs: int | None
    now: Callable[[], str]


class Input(NamedTuple):
    """Something that verdicts depend on. kind: `instruction`, `lexicon`, `setting`, `model`, `judge`, `record` …

    digest: SHA-256 of its content. content: kept, too, unless None.
    """

    kind: str
    name: str
    digest: bytes
    content: bytes | None = None

    @classmethod
    def of(cls, kind: str, name: str, content: bytes, *, keep: bool = True) -> Input:
        return cls(kind, name, hashlib.sha256(content).digest(), content if keep else None)


class InputSet:
    """Inputs of one or many results. `digest` tells any two different sets apart."""

    __slots__ = ("digest", "inputs")

    def __init__(self, inputs: Iterable[Input]) -> None:
        # What our own code imports, a judge's may import, too.
        by_name: dict[tuple[str, str], Input] = {}
        for each in inputs:
            known = by_name.setdefault(each[:2], each)
            if known.digest != each.digest:  # two files of one name
                by_name[each[:2]] = Input.of(each.kind, each.name, known.digest + each.digest, keep=False)
        self.inputs = tuple(by_name[key] for key in sorted(by_name))
        digest = hashlib.sha256()
        for each in self.inputs:
            for part in (each.kind.encode(), each.name.encode("utf-8", "surrogateescape"), each.digest):
                digest.update(len(part).to_bytes(8, "big") + part)
        self.digest = digest.digest()

    @property
    def incomplete(self) -> tuple[str, ...]:
        """Why a verdict may depend on more; empty where it does not."""
        return tuple(each.name for each in self.inputs if each.kind == INCOMPLETE)


def changed_inputs(before: Iterable[Input], after: Iterable[Input]) -> Iterator[tuple[str, str, str]]:
    """What is not the same in two sets of inputs: `added`, `removed` or `changed`, kind and name."""
    old, new = ({(each.kind, each.name): each.digest for each in inputs} for inputs in (before, after))
    for key in sorted(old.keys() | new.keys()):
        was, now = old.get(key), new.get(key)
        if was != now:
            yield "added" if was is None else "removed" if now is None else "changed", *key


class Check(NamedTuple):
    """A check of a result, and how it came out; `str` gives what people read of one that failed.

    expected, actual: in their written form; None where there is nothing to compare. phrase: that the reply was to hold,
    or not to hold.
    """

    name: str
    reason: str = ""
    expected: str | None = None
    actual: str | None = None
    passed: bool = False
    phrase: str | None = None

    def __str__(self) -> str:
        if self.expected is None:
            return self.summary
        return f"{self.summary}\n  expected: {self.expected}\n  actual:   {self.actual}"

    def as_dict(self) -> dict[str, Any]:
        """As JSON holds it, without what says nothing."""
        row = {"name": self.name, "passed": self.passed, "expected": self.expected, "actual": self.actual}
        if self.phrase is not None:
            row["phrase"] = self.phrase
        return row if self.passed else {**row, "reason": self.reason}

    @classmethod
    def of_dict(cls, row: Mapping[str, Any]) -> Self:
        return cls(**{name: row[name] for name in cls._fields if name in row})

    @property
    def summary(self) -> str:
        """The check and why it failed, without what was expected."""
        return f"{self.name}: {self.reason}" if self.name else self.reason


class Usage(NamedTuple):
    """What a result took of a model. cost_usd: None where a price is not known. latency_ms: waiting for answers."""

    calls: int = 0
    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_write_tokens: int = 0
    cost_usd: float | None = 0.0
    latency_ms: int = 0

    def plus(self, other: Usage) -> Usage:
        """Both together; price and tokens are known where both are."""
        known = cost_of((self.cost_usd, other.cost_usd))
        is_told = None not in (self.tokens(), other.tokens())
        counts = (one + more if is_told else 0 for one, more in zip(self[1:5], other[1:5], strict=True))
        sent, received, read, written = counts
        waited_ms = self.latency_ms + other.latency_ms
        return Usage(self.calls + other.calls, sent, received, read, written, known, waited_ms)

    def tokens(self) -> dict[str, int] | None:
        """By kind; None where the answers did not say, or nobody saw them."""
        if (self.calls or self.cost_usd is None) and not any(self[1:5]):
            return None
        return dict(zip(("input", "output", "cache_read", "cache_write"), self[1:5], strict=True))

    def answers(self) -> int | None:
        """None where something was taken, and nobody counted by how many."""
        return self.calls or (0 if self[1:6] == NO_USAGE[1:6] else None)

    def as_json(self) -> dict[str, Any]:
        """What is not known is null."""
        unknown = () if self.tokens() else self._fields[1:5]
        return self._asdict() | {"calls": self.answers(), **dict.fromkeys(unknown)}

    def describe(self, *, waited: bool = False) -> str:
        """For people: how many answers if that is known, tokens and cost. waited: and how long the answers took."""
        sent = self.input_tokens + self.cache_read_tokens + self.cache_write_tokens
        tokens = f"{sent:,} tokens sent, {self.output_tokens:,} received" if self.tokens() else "tokens not known"
        after = f" of the model after {time_taken(self.latency_ms)}" if waited else ""
        answers = "" if self.answers() is None else f"{pluralize(self.calls, 'answer')}{after}, "
        return f"{answers}{tokens}, {cost_text(self.cost_usd)}"


NO_USAGE = Usage()


def cost_of(costs: Iterable[float | None]) -> float | None:
    """All together; None where one is not known."""
    total = 0.0
    for cost in costs:
        if cost is None:
            return None
        total += cost
    return total


class Nearest(NamedTuple):
    """The sentence of a reply that comes nearest to a missing phrase.

    diff: the sentence with `[-words of the phrase that it lacks-]` and `{+words in their place+}`.
    """

    phrase: str
    sentence: str
    diff: str

    def __str__(self) -> str:
        return f"nearest to {self.phrase!r}: {self.diff}"


class Place(NamedTuple):
    """Where a result stands in a run store: its id; number and id of its run, and when that began, ISO 8601.

    input_set: as `RunStore.inputs` takes it; None where nobody knows on what it depended. source_hash: SHA-256. source,
    response, judgement: by which contents of one store are told apart.
    """

    id: int = 0
    run: int = 0
    run_id: str = ""
    started: str = ""
    input_set: int | None = None
    source_hash: bytes | None = None
    source: int | None = None
    response: int | None = None
    judgement: int | None = None


NOT_STORED: Final = Place()


class CaseResult(NamedTuple):
    """What came of one repetition of one case: of a scenario, or of the work on a task.

    name: of the scenario's or task's file, which tells the cases of a run apart. position: of the case in the run, and
    repetition: of the result in the case, both from 1. file: as it was reached when it ran. duration_ms: what the work
    took. usage: of the model. checks: all, passed ones too. harm: what would have harmed somebody, in words; None where
    nobody looked. needs_review: nobody has decided yet that what is expected is right. must: it closes the gate alone
    where it fails. mail: a digest of the source that copies of it share. step_ms: milliseconds of each step of the
    trace; empty where they are not known. taken_over: the id of the earlier run that gave it. of: how many records
    a task has, each a case of its own. inputs: None where it is not sure which they were, as for files that
    somebody edited just then. place: of one that was read of a store.

    What happened, each part None where there is none: source, the file of the case as it was; request, what the agent
    got (a mail); response, what came of it (reply, ticket, calls); trace, the way there (messages of the model, steps);
    judgement, what a judge said and printed. All but the source are what JSON can hold.
    """

    name: str
    position: int
    verdict: Verdict
    repetition: int = 1
    category: str = ""
    language: str = ""
    description: str = ""
    file: str = ""
    duration_ms: float = 0.0
    usage: Usage = NO_USAGE
    inputs: InputSet | None = None
    checks: tuple[Check, ...] = ()
    harm: tuple[str, ...] | None = ()
    nearest: tuple[Nearest, ...] = ()
    needs_review: bool = False
    must: bool = False
    source: bytes | None = None
    request: Any = None
    response: Any = None
    trace: Any = None
    judgement: Mapping[str, Any] | None = None
    step_ms: Sequence[float | None] = ()
    mail: bytes | None = None
    taken_over: str = ""
    of: int = 1
    place: Place = NOT_STORED

    @property
    def passed(self) -> bool:
        return self.verdict == "passed"

    @property
    def failed_checks(self) -> tuple[Check, ...]:
        return tuple(check for check in self.checks if not check.passed)

    @property
    def score(self) -> float | None:
        """From 0 to 1, as the judge has it; None where it does not say."""
        return (self.judgement or {}).get("score")

    @property
    def rubric(self) -> Sequence[Mapping[str, Any]]:
        """The answers of a model to questions on the work, as `judging.rubric` has them."""
        answers: Sequence[Mapping[str, Any]] = (self.judgement or {}).get("rubric", ())
        return answers

    @property
    def reading(self) -> Mapping[str, Any] | None:
        """How our own agent read the mail; None of another one."""
        read = self.trace.get("read") if isinstance(self.trace, Mapping) else None
        return read if isinstance(read, Mapping) else None

    def as_judged(self) -> dict[str, Any]:
        """As the store holds what was judged: the judgement with the checks, and what is known beside them."""
        named = any(check.name for check in self.checks)  # the verdict on a task is no list
        listed = {"checks": [check.as_dict() for check in self.checks]} if named else {}
        known: dict[str, Any] = {
            "file": self.file,
            "nearest": [each._asdict() for each in self.nearest],
            "needs_review": self.needs_review,
            "must": self.must,
            "of": self.of if self.of > 1 else None,
        }
        harm = {} if self.passed or self.harm is None else {"harmful": list(self.harm)}
        return {**(self.judgement or {}), **listed, **harm, **{name: each for name, each in known.items() if each}}


class Case(NamedTuple):
    """All repetitions of a case, which is as good as the worst of them."""

    runs: tuple[CaseResult, ...]

    @property
    def shown(self) -> CaseResult:
        """The first that did not pass, else the first."""
        first, *others = self.runs
        return next((run for run in others if not run.passed), first) if others and first.passed else first

    @property
    def name(self) -> str:
        """Of the scenario or task, with the record's number where there are several: `inventory (2 of 3)`."""
        shown = self.shown
        return shown.name if shown.of == 1 else f"{shown.name} ({shown.repetition} of {shown.of})"

    @property
    def verdict(self) -> Verdict:
        return max((run.verdict for run in self.runs), key=WORSE.index)

    @property
    def passed(self) -> bool:
        return {run.verdict for run in self.runs} <= {"passed"}

    @property
    def passed_runs(self) -> int:
        return sum(run.passed for run in self.runs)

    @property
    def duration_ms(self) -> float:
        return sum(run.duration_ms for run in self.runs)

    @property
    def cost_usd(self) -> float | None:
        """None where one is not known."""
        return cost_of(run.usage.cost_usd for run in self.runs)

    @property
    def failed_checks(self) -> tuple[Check, ...]:
        """Of the repetition that is shown, which they name where others passed."""
        shown = self.shown
        if len({run.passed for run in self.runs}) < 2:
            return shown.failed_checks
        which = f"run {shown.repetition} of {len(self.runs)}: "
        return tuple(each._replace(name=f"{which}{each.name}") for each in shown.failed_checks)

    @property
    def harm(self) -> tuple[str, ...]:
        """Of every repetition that failed, as far as it is known."""
        return tuple(dict.fromkeys(reason for run in self.runs for reason in run.harm or ()))


class SuiteKey(NamedTuple):
    """What makes two runs comparable: the same suite and selection, worked on in the same way."""

    command: str
    suite: str
    selection: tuple[str, ...] = ()
    agent: str = ""
    llm: str = ""


class Run(NamedTuple):
    """A run: what it began with, how it ended, and what it came to.

    suite: the folder, relative to the project where it lies in it. selection: what of it was asked for; empty for all.
    agent: as `--agent` has it; empty for our own. model, parameters: who answered, and how it was asked.
    options: further ones of the command line, by name. started, ended: ISO 8601. planned: how many results a whole run
    has without repetitions. threshold: percent. outcome: None while it goes on. git_dirty: whether files differed from
    the revision.

    number: in the store, 0 before it is there. total to invalid: cases, of which one with several repetitions passed
    where they all did; failed includes invalid. tokens, cost_usd: of all that was asked of a model; None where it is
    not known of one result. mails, mails_passed: distinct mails of a suite, and of how many every copy passed; None
    before its end, of tasks, and of runs of earlier versions. duration_s: None without an end. facts: what else is to
    be known of the run, by name, as JSON can hold it.
    """

    id: str
    command: str
    suite: str
    started: str
    planned: int
    package_version: str
    selection: tuple[str, ...] = ()
    agent: str = ""
    llm: str = ""
    model: str = ""
    parameters: Mapping[str, Any] = MappingProxyType({})
    options: Mapping[str, Any] = MappingProxyType({})
    repeat: int = 1
    threshold: float = 100.0
    require_proof: bool = False
    number: int = 0
    git_revision: str | None = None
    git_dirty: bool | None = None
    ended: str | None = None
    duration_s: float | None = None
    outcome: Outcome | None = None
    exit_code: int | None = None
    total: int = 0
    passed: int = 0
    failed: int = 0
    error: int = 0
    invalid: int = 0
    tokens: int | None = 0
    cost_usd: float | None = 0.0
    mails: int | None = None
    mails_passed: int | None = None
    facts: Mapping[str, Any] = MappingProxyType({})

    @classmethod
    def of_row(cls, row: Sequence[Any]) -> Self:
        """row: the columns of that name."""
        made = cls._make(row)
        told: Any = {each: dict(json.loads(getattr(made, each) or "{}")) for each in ("parameters", "options", "facts")}
        return made._replace(
            selection=tuple(json.loads(str(made.selection))),
            **told,
            require_proof=bool(made.require_proof),
            git_dirty=None if made.git_dirty is None else bool(made.git_dirty),
            duration_s=None if made.ended is None else float(made.duration_s or 0),  # nobody wrote how long it took
        )

    @property
    def key(self) -> SuiteKey:
        return SuiteKey(self.command, self.suite, self.selection, self.agent, self.llm)

    @property
    def commit(self) -> str:
        """The revision in Git that it ran at, and whether files were changed since; empty where there is none."""
        if self.git_revision is None:
            return ""
        unknown = " (not known whether files were changed since)" if self.git_dirty is None else ""
        return f"{self.git_revision[:12]}{' with changed files' if self.git_dirty else unknown}"

    @property
    def taken(self) -> str:
        """For people: tokens and cost; empty where nothing was asked of a model."""
        if self.tokens == 0 and self.cost_usd == 0:
            return ""
        least = "at least " if self.ended is None else ""  # what is under way has not told
        tokens = "tokens not known" if self.tokens is None else f"{least}{self.tokens:,} tokens"
        return f"{tokens}, {cost_text(self.cost_usd)}"

    @property
    def reached(self) -> str:
        """For people: how many of the planned results it has; empty for all. Of `grade` the counts are of tasks, which
        may have several results each.
        """
        if self.command == "grade":
            return "" if self.outcome in ("passed", "failed") else f"not all of {self.planned:,}"
        return f"{self.total:,} of {self.planned:,}" if self.total < self.planned else ""

    @property
    def state(self) -> str:
        """The outcome in a word or two, also while there is none."""
        return self.outcome or "going on"


RUN_HEAD: Final = Run._fields[: Run._fields.index("number")]
"""What a run begins with."""


class GroupCounts(NamedTuple):
    """How the cases of one category and language came out."""

    category: str
    language: str
    passed: int
    total: int

    @property
    def failed(self) -> int:
        return self.total - self.passed


class ResultFilter(NamedTuple):
    """Which results of a run; None for any. text: in name or description, whatever its case."""

    verdicts: tuple[Verdict, ...] | None = None
    category: str | None = None
    language: str | None = None
    text: str | None = None
