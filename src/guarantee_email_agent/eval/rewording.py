"""`eval --accept`: where a reply was reworded on purpose, the scenarios that hold the old words follow.

A phrase that the reply had when the suite was green, and has no more, is taken from the same place of today's reply.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from difflib import SequenceMatcher
from pathlib import Path
from typing import Any, Final, NamedTuple

from guarantee_email_agent.eval.case_result import PUNCTUATION, fold_word
from guarantee_email_agent.eval.eval_recorder import user_name
from guarantee_email_agent.files.report_files import write_whole
from guarantee_email_agent.files.text_file import InputFileError
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.runlog.comparison import compare_runs
from guarantee_email_agent.runlog.records import CaseResult
from guarantee_email_agent.runlog.run_reader import RunStore
from guarantee_email_agent.runlog.run_writer import keep_facts
from guarantee_email_agent.utils.terminal import Terminal, TextStream, pluralize
from guarantee_email_agent.utils.text import and_more, has_phrase, printable

_CHECK: Final = "response_body_contains"
_MAX_NAMES: Final = 8


class _Phrase(NamedTuple):
    """What a scenario asks for, and what its reply says in that place now."""

    scenario: str
    file: Path
    before: str
    now: str


def accept_rewordings(store_file: Path, run_id: str, stream: TextStream, *, ask: bool, reason: str) -> None:
    """Of a run that has ended: show each difference that scenarios fail by, and rewrite their phrases after a yes.

    ask: at the terminal; else every difference is accepted. reason: kept with the run, beside the user's name.
    Raises StoreError, where no run of this suite was green before.
    """
    terminal = Terminal(stream)
    with RunStore(store_file) as store:
        run = store.find_run(run_id)
        baseline = store.find_green_before(run)
        comparison = compare_runs(store, baseline, run, max_details=0, counts_all=False)
        found: dict[tuple[str, str], list[_Phrase]] = {}
        others = 0
        for change in comparison.newly_failing:
            reworded = list(_reworded(store.find_case(baseline, change.name)[0], store.find_case(run, change.name)[0]))
            others += not reworded
            for difference, phrase in reworded:
                found.setdefault(difference, []).append(phrase)
    accepted = []
    by = user_name() or "unknown"
    for (before, now), phrases in sorted(found.items(), key=lambda item: -len(item[1])):
        names = list(dict.fromkeys(phrase.scenario for phrase in phrases))
        terminal.line(
            f"Reworded in {pluralize(len(names), 'scenario')}: '{printable(before)}' is now '{printable(now)}'"
        )
        terminal.line(f"    {printable(and_more(names, _MAX_NAMES))}")
        terminal.flush()
        if ask and not _says_yes(terminal):
            continue
        left = set()
        for phrase in phrases:
            if not (_rewrite(phrase, phrase.before, phrase.now) or _rewrite(phrase, before, now)):
                left.add(phrase.scenario)
                terminal.line(f"{printable(str(phrase.file))}: write {now!r} for {before!r} yourself")
        if written := [name for name in names if name not in left]:
            accepted.append({"before": before, "now": now, "scenarios": written, "by": by, "reason": reason})
    if accepted:
        keep_facts(store_file, run.number, {**run.facts, "accepted": accepted})
        holding = len({name for each in accepted for name in each["scenarios"]})
        terminal.outcome(f"✓ {pluralize(holding, 'scenario')} changed. Run eval again")
    elif not found:
        terminal.line("No scenario fails by a reworded phrase alone")
    if others:
        terminal.line(f"{pluralize(others, 'scenario')} newly failing for something else; nothing of it is accepted")
    terminal.flush()


def _reworded(before: CaseResult, now: CaseResult) -> Iterator[tuple[tuple[str, str], _Phrase]]:
    """Each missing phrase with the difference that it is missing by; none where the case fails for something else."""
    found = []
    for check in now.failed_checks:
        *turn, name = check.name.rsplit(": ", 1)
        phrase = check.phrase if name == _CHECK else None
        words = None if phrase is None else _same_place(phrase, _reply(before, *turn), _reply(now, *turn))
        if phrase is None or words is None:
            return
        found.append((words[:2], _Phrase(now.name, Path(now.file), phrase, words[2])))
    yield from found


def _reply(result: CaseResult, turn: str = "turn 1") -> str:
    """turn: of a later mail, as its checks are called."""
    response = result.response or {}
    bodies = [said["answer"] for said in response.get("turns", ())] or [response.get("response_body")]
    body = dict(enumerate(bodies, 1)).get(int(turn.removeprefix("turn ")))
    return body if isinstance(body, str) else ""


def _same_place(phrase: str, before: str, now: str) -> tuple[str, str, str] | None:
    """The words that went, those that came, and what stands now where `phrase` stood; None where nobody can tell."""
    wanted, old, new = phrase.split(), before.split(), now.split()
    folded, folded_new = [[fold_word(word) for word in words] for words in (old, new)]
    sought = list(map(fold_word, wanted))
    start = next((at for at in range(len(old) - len(sought) + 1) if folded[at : at + len(sought)] == sought), None)
    if start is None:
        return None
    end = start + len(wanted)
    first, last = 0, 0
    changed: list[tuple[int, int, int, int]] = []
    for kind, a, b, c, d in SequenceMatcher(None, folded, folded_new, autojunk=False).get_opcodes():
        same = kind == "equal"
        if a <= start < b:
            first = c + (start - a if same else 0)
        if a < end <= b:
            last = c + end - a if same else d
        if not same and a < end and b > start:
            changed.append((a, b, c, d))
    text = " ".join(new[first:last])
    if phrase[-1:] not in PUNCTUATION:
        text = text.rstrip(PUNCTUATION)
    if not text or not has_phrase(text, now):
        return None
    if not changed:  # but for punctuation
        return phrase, text, text
    (a, _, c, _), (_, b, _, d) = changed[0], changed[-1]
    return " ".join(old[a:b]), " ".join(new[c:d]), text


def _rewrite(phrase: _Phrase, before: str, now: str) -> bool:
    """Write `now` for `before` into the file where that gives the new phrase and nothing else reads differently."""
    try:
        text = phrase.file.read_bytes().decode()  # with its own line ends
        wanted = _with_phrase(load_documents(text), phrase)
        at = text.find(_CHECK)
        while (at := text.find(before, at + 1)) >= 0:
            changed = text[:at] + now + text[at + len(before) :]
            with suppress(InputFileError):
                if _with_phrase(load_documents(changed), phrase) == wanted:
                    write_whole(phrase.file, changed.encode())
                    return True
    except (OSError, ValueError, InputFileError):
        pass
    return False


def _with_phrase(data: Any, phrase: _Phrase) -> Any:
    """`data` with the new phrase in place of the old one in the lists of that check, white space aside."""
    if isinstance(data, list):
        return [_with_phrase(each, phrase) for each in data]
    if not isinstance(data, Mapping):
        return data
    return {
        key: [" ".join(str(phrase.now if each == phrase.before else each).split()) for each in value]
        if key == _CHECK and isinstance(value, list)
        else _with_phrase(value, phrase)
        for key, value in data.items()
    }


def _says_yes(terminal: Terminal) -> bool:
    terminal.line("Accept it, in all of them? [y/N]")
    terminal.flush()
    return sys.stdin.readline().strip().casefold() in ("y", "yes")
