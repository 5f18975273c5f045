"""An executor whose workers know nothing of this process but what was sent."""

import pickle
from collections.abc import Callable, Generator, Iterable
from typing import Any


class Elsewhere:
    """Work, items and results come out of pickles. `sent`: those of what came to a worker."""

    slots = 1

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def map_in_order(self, work: Callable[[Any], Any], items: Iterable[Any]) -> Generator[Any, None, None]:
        self.sent.append(pickle.dumps(work))
        for item in items:
            self.sent.append(pickle.dumps(item))
            result = pickle.loads(self.sent[0])(pickle.loads(self.sent[-1]))
            yield pickle.loads(pickle.dumps(result))
