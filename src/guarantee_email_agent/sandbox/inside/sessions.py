"""Named sessions of one kind, so many at most."""

from __future__ import annotations

import itertools
import time
from typing import Generic, Protocol, TypeVar

from .api_request import InvalidArgumentError, RequestError


class Session(Protocol):
    """used: seconds since 1970."""

    name: str
    used: float

    @property
    def running(self) -> bool: ...

    def close(self) -> None: ...


S = TypeVar("S", bound=Session)


class Sessions(Generic[S]):
    """Where there are `limit` of them, the one that was used longest ago makes room."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._sessions: dict[str, S] = {}
        self._numbers = itertools.count(1)

    def __len__(self) -> int:
        return len(self._sessions)

    def __contains__(self, name: str | None) -> bool:
        return name in self._sessions

    def all(self) -> list[S]:
        return list(self._sessions.values())

    def find(self, name: str) -> S:
        """Raises RequestError."""
        if name not in self._sessions:
            raise RequestError(404, f"there is no session {name[:80]}")
        session = self._sessions[name]
        session.used = time.time()
        return session

    def free_name(self, name: str | None) -> str:
        """`name`, or a number, with room for a session of that name. Raises RequestError."""
        if name is None:
            name = next(number for number in map(str, self._numbers) if number not in self._sessions)
        elif not name or len(name) > 200:
            raise InvalidArgumentError("id", "must have 1 to 200 characters")
        if len(self._sessions) >= self.limit:
            idle = [session for session in self._sessions.values() if not session.running]
            if not idle:
                raise RequestError(503, f"{self.limit} sessions are busy already. End some of them")
            self.close(min(idle, key=lambda session: session.used))
        return name

    def add(self, session: S) -> S:
        self._sessions[session.name] = session
        return session

    def close(self, *sessions: S) -> list[str]:
        """Their names."""
        for session in sessions:
            if self._sessions.get(session.name) is session:
                del self._sessions[session.name]
            session.close()
        return [session.name for session in sessions]
