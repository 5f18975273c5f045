"""Simulated histories: the agent's promises hold in each of them, and bugs planted on purpose are found."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

SUPPORT = Path(__file__).parents[1] / "support"
PACKAGE = Path(__file__).parents[2] / "src" / "guarantee_email_agent"
HISTORIES = 4_000
PARTS = 4


def test_every_invariant_holds() -> None:
    done = _simulate("--histories", "100")
    assert done.returncode == 0, done.stdout


@pytest.mark.slow
@pytest.mark.parametrize("part", range(PARTS))
def test_every_invariant_holds_in_many_more(part: int) -> None:
    size = HISTORIES // PARTS
    done = _simulate("--first", str(part * size), "--histories", str(size))
    assert done.returncode == 0, done.stdout


def test_a_seed_replays_exactly() -> None:
    trace, other = (_simulate("--seed", "112", PYTHONHASHSEED=seed).stdout for seed in ("1", "2"))
    assert len(trace.splitlines()) > 20
    assert other == trace
    program = "from simulation.__main__ import main; main(['--seed', '5']); print('next'); main(['--seed', '112'])"
    after_another = _run("-c", program).stdout
    assert after_another.partition("next\n")[2] == trace


@dataclass(frozen=True)
class Bug:
    """`before` stands once in `file`, and `after` is what a hasty change makes of it."""

    name: str
    file: str
    before: str
    after: str


BUGS = (
    Bug(
        "the mark is set before the reply is sent",
        "agent/mail_worker.py",
        "        live = self.processor.llm\n",
        '        live = self.processor.llm\n        await self.mailbox.mark(entry.id, "answered")\n',
    ),
    Bug(
        "the mark is set before the ledger is finished",
        "agent/mail_outcome.py",
        "        await asyncio.to_thread(self.ledger.finish, claim, outcome, _reason(code), written)\n"
        "        return await self._mark_ended(",
        "        await self.mark(entry, claim.location_key, result)\n"
        "        await asyncio.to_thread(self.ledger.finish, claim, outcome, _reason(code), written)\n"
        "        return await self._mark_ended(",
    ),
    Bug(
        "the lease is not checked",
        "ledger/tables.py",
        '        mails.c.fence == bindparam("at_fence"),\n        mails.c.owner.is_not(None),\n',
        "        mails.c.owner.is_not(None),\n",
    ),
    Bug(
        "the proof of a reply is ignored",
        "agent/mail_worker.py",
        "proof = await self.mailbox.find_sent(message_id, self.copy_wait_s)",
        'proof = "not_sent"',
    ),
    Bug(
        "a mail whose reply is unknown is answered again",
        "agent/mail_worker.py",
        "await self.mailbox.find_sent(message_id, self.copy_wait_s)\n",
        "await self.mailbox.find_sent(message_id, self.copy_wait_s)\n"
        '                proof = "not_sent" if proof == "unknown" else proof\n',
    ),
    Bug(
        "every try has a ticket key of its own",
        "agent/outbox.py",
        'self.claim.ticket_key or str(ticket_data["idempotency_key"])',
        "f\"{ticket_data['idempotency_key']}-{self.claim.fence}\"",
    ),
    Bug(
        "a mail whose reply is about to leave is handed over",
        "ledger/interventions.py",
        "            if row.outcome is None and row.stage not in BEFORE_SENDING:\n"
        "                raise _on_its_way(row)\n",
        "",
    ),
    Bug(
        "a mail that is released forgets that its reply may have left",
        "ledger/interventions.py",
        '(or_(mails.c.outcome.is_(None), mails.c.stage.in_(("sending", "sent"))), mails.c.stage),',
        '(mails.c.outcome == "sent", mails.c.stage),',
    ),
    Bug(
        "a mail that is given back forgets how far it was",
        "ledger/tables.py",
        "    _STAGES,\n    owner=None,\n    attempts=",
        '    _STAGES,\n    stage="claimed",\n    owner=None,\n    attempts=',
    ),
    Bug(
        "a mail that fails for ever never uses up its tries",
        "agent/mail_outcome.py",
        "counts = await self._is_at_fault(step, claim, outage=outage)",
        "counts = False",
    ),
    Bug(
        "an altered copy of a mail is answered as well",
        "ledger/conversations.py",
        '        "copy": 1,\n',
        '        "copy": 2,\n',
    ),
    Bug(
        "mail of years ago is answered",
        "email/hand_over.py",
        "days > policy.max_delay_days",
        "days < 0",
    ),
    Bug(
        "mails that a person took while no agent ran stay open",
        "agent/daemon.py",
        "await self._settle_unlisted(known.unlisted, now)",
        "await self._settle_unlisted(set(), now)",
    ),
    Bug(
        "a mail that a person gave back keeps its mark",
        "agent/mail_worker.py",
        "                    await self._unmark(mail_id)\n",
        "                    pass\n",
    ),
    Bug(
        "a mail that is taken after its reply left counts as not answered",
        "agent/mail_worker.py",
        "        if (result := await self._end_of_earlier_reply(entry, claim)) is not None:\n"
        '            return WorkResult("gone")',
        '        if (result := None) is not None:\n            return WorkResult("gone")',
    ),
    # Each of these takes something that few histories have: a change of mode, a full disk, a mark that is forgotten, a
    # list that is out of date.
    Bug(
        "a draft is looked for where the mode of today would have put it",
        "agent/mail_worker.py",
        'is_draft = claim.delivery == "draft"',
        'is_draft = self.settings.mode == "drafts"',
    ),
    Bug(
        "a mail is marked although the ledger could not be written",
        "agent/mail_outcome.py",
        "        await asyncio.to_thread(self.ledger.finish, claim, outcome, _reason(code), written)\n",
        "        with __import__('contextlib').suppress(AgentError):\n"
        "            await asyncio.to_thread(self.ledger.finish, claim, outcome, _reason(code), written)\n",
    ),
    Bug(
        "a mark that was set once is not set again",
        "agent/mail_worker.py",
        'if state.outcome == "observed" or self._observes:',
        'if state.outcome == "observed" or self._observes or state.marked:',
    ),
    Bug(
        "a mail that a person took over is reopened because a list is out of date",
        "agent/mail_worker.py",
        "            if not await self.mailbox.is_waiting(entry.id, self.settings.skip_seen):\n"
        "                return WorkResult(state.outcome)\n"
        "            reopen = self.ledger.reopen\n"
        "            if not await asyncio.to_thread(reopen, location_key, fence=state.fence, listed_at=listed_at):\n",
        "            late, reopen = listed_at + 3600, self.ledger.reopen\n"
        "            if not await asyncio.to_thread(reopen, location_key, fence=state.fence, listed_at=late):\n",
    ),
)


@pytest.mark.slow
@pytest.mark.parametrize("bug", BUGS, ids=lambda bug: bug.name)
def test_a_planted_bug_is_found(bug: Bug, tmp_path: Path) -> None:
    copy = tmp_path / PACKAGE.name
    shutil.copytree(PACKAGE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (copy / bug.file).read_text(encoding="utf-8")
    assert text.count(bug.before) == 1
    (copy / bug.file).write_text(text.replace(bug.before, bug.after), encoding="utf-8")
    done = _simulate("--histories", "4000", "--max-failures", "1", PYTHONPATH=f"{tmp_path}{os.pathsep}{SUPPORT}")
    assert done.returncode == 4, done.stdout


def _simulate(*options: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """In a process of its own, since it replaces functions of the agent, and holds back the collection of garbage."""
    return _run("-m", "simulation", "--jobs", "1", *options, **environment)


def _run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, *arguments],
        env=os.environ | {"PYTHONPATH": str(SUPPORT)} | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
