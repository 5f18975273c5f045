"""What administrators do in a history: restart agents with other settings, lose a ledger and restore it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from guarantee_email_agent.config.settings import Mode
from simulation.agent import OTHER_SETTINGS, SETTINGS
from simulation.ledger_in_memory import BackUp

if TYPE_CHECKING:
    from simulation.history import History

RESTORE_S: Final = 60.0
"""From the loss of a ledger until another one lies there: longer than what was begun before can take."""

_RESTART_S: Final = 60.0


class Administration:
    """mode, settings: of agents that start now. is_ledger_lost: and not restored yet. lost_ledgers: how many."""

    def __init__(self, history: History) -> None:
        self._history = history
        self.mode = history.conditions.modes[0]
        self.settings = SETTINGS
        self.is_ledger_lost = False
        self.lost_ledgers = 0
        self._back_up: BackUp = {}

    def plan(self) -> None:
        history = self._history
        random, conditions = history.random, history.conditions
        for mode in conditions.modes[1:]:
            history.later(random.random() * random.choice((10.0, 100.0, 1000.0)), self._switch_mode, mode)
        for _ in range(conditions.changes):
            history.later(random.random() * random.choice((5.0, 50.0, 500.0)), self._change_settings)
        if conditions.restores:
            back_up_s = random.random() * random.choice((5.0, 50.0))
            if random.random() < 0.7:  # else there is none, and a new ledger takes its place
                history.later(back_up_s, self._make_back_up)
            history.later(back_up_s + random.random() * random.choice((5.0, 50.0, 500.0)), self._lose_ledger)

    def _switch_mode(self, mode: Mode) -> None:
        self._history.note("the mode is now", mode)
        self.mode = mode
        self._restart_agents()

    def _change_settings(self) -> None:
        self.settings = self._history.random.choice(OTHER_SETTINGS)
        self._history.note("other settings")
        self._restart_agents()

    def _restart_agents(self) -> None:
        """One by one: for a while there are some with the settings from before beside others."""
        history = self._history
        for agent in history.agents.values():
            if agent.process.alive:
                history.later(history.random.random() * _RESTART_S, history.stop, agent.process)

    def _make_back_up(self) -> None:
        self._history.note("the ledger is backed up")
        self._back_up = self._history.ledger.back_up()

    def _lose_ledger(self) -> None:
        """With its disk; the agents go down with it."""
        self._history.note("the ledger is lost")
        self.is_ledger_lost = True
        self.lost_ledgers += 1
        for agent in self._history.agents.values():
            self._history.kill(agent.process)
        self._history.later(RESTORE_S, self._restore_ledger)

    def _restore_ledger(self) -> None:
        self._history.note("the ledger is restored")
        self._history.ledger.restore(self._back_up)
        self._history.forget_fences()
        self.is_ledger_lost = False
