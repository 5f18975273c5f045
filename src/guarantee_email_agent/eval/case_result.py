"""What came of a scenario as the value that runs are kept and shown by."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any, Final

from guarantee_email_agent.email.no_reply import decides_reply, sender_reason
from guarantee_email_agent.eval.mocks import build_raw_email
from guarantee_email_agent.eval.models import (
    INVALID_FILE,
    EvalInput,
    EvalResult,
    EvalTestCase,
    InvalidScenario,
    find_harm,
    name_of,
)
from guarantee_email_agent.llm.port import TokenUsage
from guarantee_email_agent.llm.usage import ModelUsage
from guarantee_email_agent.runlog.records import NO_USAGE, Case, CaseResult, Check, Nearest, Usage
from guarantee_email_agent.runlog.suite_manifest import source_with_mail
from guarantee_email_agent.runlog.suite_statistics import FINGERPRINT_BYTES
from guarantee_email_agent.utils.addresses import parse_address
from guarantee_email_agent.utils.text import normalize_phrase

_PARAGRAPH_BREAK: Final = re.compile(r"\n\s*\n|\n(?=\s*[-*•])")
_SENTENCE_BREAK: Final = re.compile(r"(?<=[.!?])\s+")
PUNCTUATION: Final = ".,:;!?\"'()"
_MAX_REPLY_CHARS: Final = 4_000
_DIGIT: Final = re.compile(r"\d")
_SIGNS: Final = re.compile(r"[!-/:-@\[-`{-~]+")
_DIGITS: Final = re.compile(r"[0-9]+")
_SMALL_LETTERS: Final = re.compile(r"[a-z]+")
_WORDS: Final = re.compile(r"\w+")
_IGNORED_HEADERS: Final = frozenset({"date", "message-id", "received"})
_MAX_NAME_WORDS: Final = 3


def as_case(result: EvalResult, position: int = 0) -> Case:
    """Every run. position: as `at_position` has it."""
    case = result.case
    if case is None or result != EvalResult.of(result.test_case, case.runs):  # somebody else made it
        run = judged_case(result.test_case, (Check("", each) for each in result.failures), result.actual_output)
        run = run._replace(verdict=result.outcome, duration_ms=result.processing_time_ms, harm=result.harm)
        case = Case((run,))
    return at_position(case, position)


def at_position(case: Case, position: int) -> Case:
    """position: of the scenario in the run of the suite, from 1."""
    return Case(tuple([run._replace(position=position) for run in case.runs]))


def judged_case(
    scenario: EvalTestCase | InvalidScenario,
    checks: Iterable[Check],
    actual: Mapping[str, Any] = MappingProxyType({}),
    *,
    reading: Mapping[str, Any] | None = None,
    trace: Mapping[str, Any] | None = None,
    judgement: Mapping[str, Any] | None = None,
    step_ms: Sequence[float | None] = (),
) -> CaseResult:
    """One run, which passed where every check did. reading: how our own agent read the mail: `topic`, `language`,
    `numbers`, and what it looked up. trace: `conversation` and `execution_trace` of the record, where one was made.
    """
    known = scenario if isinstance(scenario, EvalTestCase) else None
    checks = tuple(checks)
    failed = [check for check in checks if not check.passed]
    response = dict(actual)
    duration_ms = int(response.pop("processing_time_ms", 0))  # apart: without it equal outputs are kept once
    found = find_harm(known, actual, of_our_agent=reading is not None) if failed and known is not None else ()
    crashed = bool(failed) and known is not None and not actual  # so that nobody knows what it did before
    expected = None if known is None else known.expected_output.reply_language
    return CaseResult(
        name=name_of(scenario),
        position=0,
        verdict="invalid" if known is None else "failed" if failed else "passed",
        category=scenario.category,
        # Of the reply that is expected, else of the mail as our agent read it.
        language=expected or str((reading or {}).get("language") or ""),
        description=" ".join(scenario.description.split()),
        file=scenario.file or "",
        duration_ms=duration_ms,
        checks=checks,
        harm=None if crashed else tuple(dict.fromkeys(found)),
        nearest=tuple(nearest_sentences(failed, response.get("response_body"))) if failed else (),
        needs_review=known is not None and known.review,
        must=scenario.must,
        source=None if known is None else stored_source(known),
        request=None if known is None else _request(known),
        response=response or None,
        trace=None if known is None else {"read": reading, **(trace or {})},
        judgement=dict(judgement) if judgement else None,
        step_ms=step_ms,
        mail=None if known is None else mail_fingerprint(known),
    )


def unusable_case(scenario: InvalidScenario) -> CaseResult:
    """The place of an unusable file in the results: failed, with the reason."""
    return judged_case(scenario, [Check(INVALID_FILE, scenario.reason)])


def with_failed(run: CaseResult, check: Check) -> CaseResult:
    """The same where one check more has failed."""
    return run._replace(verdict="failed", checks=(*run.checks, check))


def _request(case: EvalTestCase) -> Mapping[str, Any] | str:
    """The mail, with a task that came with it, or the task alone as text."""
    if not case.input.has_email:
        return case.input.instruction
    task = {} if case.input.task is None else {"task": case.input.task}
    return build_raw_email(case) | task


def as_usage(usage: ModelUsage | None) -> Usage:
    return NO_USAGE if usage is None else Usage(**usage.as_dict())


def as_model_usage(usage: Usage) -> ModelUsage | None:
    """The same back; None where nothing was asked of a model."""
    tokens = TokenUsage(*usage[1:5], uncounted=int(usage.tokens() is None))
    return ModelUsage(usage.calls, tokens, usage.cost_usd, usage.latency_ms) if usage != NO_USAGE else None


def stored_source(case: EvalTestCase) -> bytes | None:
    """The scenario's file as the store has it: where its mail is a file beside it, with a comment that tells that one's
    digest, so that another mail is another source. None where the scenario comes from no file.
    """
    if case.text is None:
        return None
    source = case.text.encode(errors="surrogatepass")
    email = case.input.email
    if email.raw is None:
        return source
    return source_with_mail(source, str(email.raw_file), email.raw)


def nearest_sentences(failed: Iterable[Check], reply: object) -> Iterator[Nearest]:
    """One for each missing phrase that has most of its words in common with a sentence of the reply."""
    of_reply = (each for each in failed if each.name.endswith("response_body_contains") and "turn " not in each.name)
    missing = [each.phrase for each in of_reply if each.phrase]
    if not missing or not isinstance(reply, str):
        return
    sentences = split_sentences(reply[:_MAX_REPLY_CHARS])
    for phrase in missing:
        if (found := _nearest(phrase, sentences)) is not None:
            yield found


def split_sentences(reply: str) -> list[str]:
    paragraphs = _PARAGRAPH_BREAK.split(reply)
    return [sentence for text in paragraphs for sentence in _SENTENCE_BREAK.split(" ".join(text.split())) if sentence]


def _nearest(phrase: str, sentences: Sequence[str]) -> Nearest | None:
    from difflib import SequenceMatcher  # start-up: both only for a failure

    from guarantee_email_agent.runlog.views.word_diff import diff_words

    wanted = phrase.split()
    folded = [fold_word(word) for word in wanted]
    best: tuple[int, str, str] | None = None
    for sentence in sentences:
        words = sentence.split()
        matcher = SequenceMatcher(None, folded, [fold_word(word) for word in words], autojunk=False)
        blocks = [block for block in matcher.get_matching_blocks() if block.size]
        common = sum(block.size for block in blocks)
        if 2 * common <= len(folded) or (best is not None and common <= best[0]):
            continue
        first, last = blocks[0], blocks[-1]
        start = max(0, first.b - first.a)
        end = min(len(words), last.b + last.size + len(folded) - last.a - last.size)
        diff = [*words[:start], *diff_words(wanted, words[start:end], fold_word), *words[end:]]
        best = (common, sentence, " ".join(diff))
    return None if best is None else Nearest(phrase, best[1], best[2])


def fold_word(word: str) -> str:
    """As words of replies are compared: as `normalize_phrase` has it, without punctuation around it."""
    return normalize_phrase(word).strip(PUNCTUATION)


def mail_fingerprint(case: EvalTestCase) -> bytes:
    """16 bytes that are the same for copies."""
    said = (_fold(repr([_ordered(turn.says) for turn in case.turns])),) if case.turns else ()
    facts = repr((*_what_the_agent_meets(case.input), *said)).encode(errors="backslashreplace")
    return hashlib.blake2b(facts, digest_size=FINGERPRINT_BYTES).digest()


def _what_the_agent_meets(met: EvalInput) -> tuple[object, ...]:
    mail = met.email
    address = parse_address(mail.from_address)
    display_name = mail.from_address.partition("<")[0].strip(' "')
    names = {word.casefold() for word in _WORDS.findall(display_name)}
    if address is not None:
        names.update(word.casefold() for word in _WORDS.findall(address.partition("@")[0]))
    is_name = len(display_name.split()) <= _MAX_NAME_WORDS
    written = mail.headers.items() if mail.raw is None else _deciding_headers(mail.raw)
    headers = sorted((name.casefold(), _fold(value)) for name, value in written)
    return (
        _fold(mail.subject, names),
        _fold(_without_signature(mail.body), names),
        address if address is None or sender_reason(address, frozenset()) else "a person",
        "" if is_name else _fold(display_name),
        [(name, value) for name, value in headers if name not in _IGNORED_HEADERS],
        [_fold(name) for name in mail.attachments],
        _fold(repr(_ordered(met.mock_responses))),
        met.previous_reply and _fold(repr(met.previous_reply)),
        met.agent and _fold(repr(met.agent)),
        *(() if met.task is None else (_fold(repr(_ordered(met.task))), _fold(repr(_ordered(met.world))))),
    )


def _deciding_headers(raw: bytes) -> Iterator[tuple[str, str]]:
    """Of a mail that came by itself most headers are of its way alone, and no two have the same."""
    from email.parser import BytesHeaderParser  # start-up: few mails came by themselves

    for name, value in BytesHeaderParser().parsebytes(raw).items():
        if decides_reply(name.lower(), text := str(value)):
            yield name, text


def _fold(text: str, names: Iterable[str] = ()) -> str:
    written = text.casefold().split()
    words = " ".join([word if word.isalpha() or not _DIGIT.search(word) else _fold_number(word) for word in written])
    for name in sorted(names):
        if name in words:
            words = re.sub(rf"\b{re.escape(name)}\b", "name", words)
    return words


def _fold_number(word: str) -> str:
    """`SN12345`, `HX-77-20391` and `tv.4` alike; signs that are not ASCII are a matter of their own."""
    return _DIGITS.sub("0", _SIGNS.sub("", _SMALL_LETTERS.sub("a", word)))


def _without_signature(body: str) -> str:
    """Without a last line of one to three capitalised words, a name by all appearance, below other text."""
    text, line_break, last = body.rstrip().rpartition("\n")
    words = last.strip(" ,.-").split()
    is_name = 0 < len(words) <= _MAX_NAME_WORDS and all(word[0].isupper() and word[-1].isalpha() for word in words)
    return text if line_break and is_name else body


def _ordered(value: object) -> object:
    """Mappings as lists in the order of their keys."""
    if isinstance(value, dict):
        return [(key, _ordered(value[key])) for key in sorted(value, key=str)]
    return [_ordered(item) for item in value] if isinstance(value, (list, tuple)) else value
