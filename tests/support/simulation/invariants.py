"""What has to hold of every history, whatever went wrong in it."""

from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from guarantee_email_agent.config.settings import Mode
from guarantee_email_agent.email.identity import reply_message_id, ticket_key
from guarantee_email_agent.ledger.interventions import BY_HAND
from simulation.agent import MAX_ATTEMPTS, REPLIES_TO_ONE_ADDRESS, SETTINGS, identity_of, location_of
from simulation.faults import Conditions
from simulation.history import History
from simulation.inbox import ALTERED, ROBOT
from simulation.letters import OUTCOMES, TICKET_KINDS, Letter

_MAY_HAVE_REPLY: Final = frozenset({"answered", "unknown"})
_MAY_HAVE_DRAFT: Final = frozenset({"drafted", "unknown"})
_REPLIED: Final[dict[Mode, str]] = {"answer": "answered", "drafts": "drafted", "observe": "observed"}


def violations(history: History) -> list[str]:
    """One line for each thing that is wrong."""
    copies: defaultdict[str, list[Letter]] = defaultdict(list)
    answers: Counter[str] = Counter()
    for letter in [*history.inbox.letters.values(), *history.inbox.deleted]:
        copies[letter.content].append(letter)
    rows = {row.mail_key: row for row in history.ledger.mails()}
    mail_keys = history.ledger.mail_keys()
    found = list(history.violations)
    for content, letters in copies.items():
        found += (f"{content}: {problem}" for problem in _problems(letters, rows, mail_keys, history))
        message_id = reply_message_id(identity_of(letters[0].raw))
        answers[content.removesuffix(ALTERED)] += message_id in history.drafts or message_id in {
            each.message_id for each in history.replies
        }
    if not history.conditions.restores:  # which may have lost the first one
        found += (f"{content}: answered, and an altered copy of it, too" for content, n in answers.items() if n > 1)
    found += (f"{key} is left open, and with nobody" for key in history.left_open())
    keys = {ticket_key(identity_of(letters[0].raw)) for letters in copies.values()}
    found += (f"a ticket has another key than its mail: {key}" for key in history.tickets.keys() - keys)
    to_robots = Counter(each.to for each in history.replies if each.to.startswith(ROBOT))
    # A restored ledger counts from its back-up on.
    most = REPLIES_TO_ONE_ADDRESS * (2 if history.conditions.restores else 1)
    found += (f"{to} got {count} replies" for to, count in to_robots.items() if count > most)
    found += (f"a note on no ticket: {key}" for key, on in history.notes.items() if on not in history.tickets.values())
    if not history.conditions.restores:
        found += (
            f"{key} lies nowhere, and will never end"
            for key, row in rows.items()
            if row.outcome is None and key not in mail_keys.values()
        )
    if "answer" not in history.conditions.modes and (history.replies or history.tickets):
        found.append("a reply or a ticket, although no agent was to answer")
    if "drafts" not in history.conditions.modes and history.drafts:
        found.append("a draft, although no agent was to store one")
    return found


def _problems(
    letters: Sequence[Letter], rows: Mapping[str, Any], mail_keys: Mapping[str, str], history: History
) -> Iterator[str]:
    """letters: one mail and its copies."""
    identity = identity_of(letters[0].raw)
    replies = [each for each in history.replies if each.message_id == reply_message_id(identity)]
    has_draft = reply_message_id(identity) in history.drafts
    if len(replies) + has_draft > 1:
        yield f"answered {len(replies)} times{', and drafted' if has_draft else ''}"
    outcomes = set()
    taken_by_place = False
    for letter in letters:
        # One that could not be read at first is known by its location until it can.
        known_by = [mail_keys.get(location_of(mail_id), "") for mail_id in (letter.id, *letter.earlier_ids)]
        here = [rows[key] for key in known_by if key in rows]
        # Before it could be read, perhaps; and not given back since.
        taken = next((each for each in here if each.reason == BY_HAND and each.outcome is not None), None)
        taken_by_place |= taken is not None and taken.mail_key != identity
        now_here = rows.get(mail_keys.get(location_of(letter.id), ""))
        if now_here is not None and now_here.outcome is not None:
            row = now_here
        else:
            row = taken or rows.get(identity) or next(iter(here), None)
        outcome = row.outcome if row is not None else None
        if letter.id in history.inbox.letters and letter.taken_care_of_at is None:
            if history.conditions.restores and letter.mark is not None:
                pass  # a mark of before: it alone guards what a restored ledger has forgotten
            elif outcome is None:
                yield "it has no outcome"
            elif letter.mark is None and history.administration.mode == "observe":
                pass  # who only observes does not set the mark that another agent left out
            elif letter.withheld and letter.mark in {each.outcome for each in here}:
                pass  # given up where it lay, though a copy of it could be read
            elif letter.mark != _mark_of(outcome) and not any(map(history.people.is_by_hand, letters)):
                yield f"marked {letter.mark}, and {outcome} in the ledger"
        if outcome is not None:
            outcomes.add(outcome)
            if row.reason != BY_HAND:
                yield from _wrong_outcome(letter, outcome, history)
    if ticket_key(identity) in history.tickets and letters[0].kind not in TICKET_KINDS:
        yield "a ticket, which it was not to have"
    known = rows.get(identity)
    by_hand = taken_by_place or (known is not None and known.reason == BY_HAND)
    if replies:
        # A restored ledger may have given up, or left to a person, what an agent answered before.
        if not outcomes & _MAY_HAVE_REPLY and not by_hand and not history.conditions.restores:
            yield f"answered, and {', '.join(sorted(outcomes))} in the ledger"
        if letters[0].kind in TICKET_KINDS and not letters[0].follow_up and ticket_key(identity) not in history.tickets:
            yield "answered without its ticket"
        # What an agent has listed it answers, however old it grows meanwhile.
        taken = [None if each.is_too_old else each.taken_care_of_at for each in letters]
        if None not in taken and max(each.at for each in replies) > max(taken) + SETTINGS.mail_budget_s + 60.0:
            yield "answered long after a person took care of it"
    elif "answered" in outcomes:
        yield "no reply was sent, and answered in the ledger"
    if has_draft and outcomes and not outcomes & _MAY_HAVE_DRAFT and not by_hand and not history.conditions.restores:
        yield f"drafted, and {', '.join(sorted(outcomes))} in the ledger"
    if not has_draft and "drafted" in outcomes:
        yield "no draft was stored, and drafted in the ledger"
    if "observed" in outcomes and (replies or has_draft or ticket_key(identity) in history.tickets):
        yield "more than observed"


def _mark_of(outcome: str) -> str | None:
    return None if outcome == "observed" else outcome


def _wrong_outcome(letter: Letter, outcome: str, history: History) -> Iterator[str]:
    if outcome == "quarantined":
        if history.faults < MAX_ATTEMPTS and not history.conditions.outages and not letter.withheld | letter.refused:
            yield f"given up after {history.faults} faults"
    elif outcome == "unknown":
        if history.conditions.keeps_proof:
            yield "nobody can tell whether it was answered, and the mailbox could"
    elif outcome not in _expected_outcomes(letter, history.conditions):
        yield f"ended as {outcome}"


def _expected_outcomes(letter: Letter, conditions: Conditions) -> set[str]:
    modes = conditions.modes
    expected = set(OUTCOMES[letter.kind])
    if letter.is_altered:
        expected.add("handed_over")
    if letter.follow_up:
        expected.add("handed_over")
        # A customer's own answer counts as a machine's only where it seems to come sooner than a person writes: clocks
        # jump, or a restored ledger knows its reply as of the second time that it was to be sent.
        if conditions.clock_jumps or conditions.restores or letter.kind == "robot":
            expected.add("not_answered")
    found: set[str] = expected - {"answered"} if set(modes) != {"observe"} else set()
    if "answered" in expected:
        found |= {_REPLIED[mode] for mode in modes}
    return found | ({"observed"} if "observe" in modes else set())
