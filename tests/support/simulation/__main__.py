"""Runs histories from a shell: `scripts/simulate --histories 100000`, or one with all its calls: `--seed 4711`."""

import argparse
import gc
import logging
import os
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import cache
from itertools import islice

from simulation.history import History
from simulation.invariants import violations
from simulation.ledger_in_memory import LedgerInMemory

_CHUNK = 100
_HISTORIES_A_COLLECTION = 25


def main(arguments: Sequence[str] | None = None) -> int:
    """0, or 4 where a history violates an invariant."""
    options = _parse(arguments)
    logging.disable(logging.CRITICAL)  # thousands of lines on outages that were planned
    if options.seed is not None:
        history = History(options.seed, _ledger(), traced=True)
        history.run()
        print(*(history.trace or ()), sep="\n")
        found = violations(history)
        print(history.conditions, *found, sep="\n")
        return 4 if found else 0
    began, failed = time.monotonic(), []
    for problem in islice(_failures(options.first, options.histories, options.jobs), options.max_failures):
        failed.append(problem)
        print(problem, flush=True)
    seconds = time.monotonic() - began
    if failed:
        print(f"{len(failed)} histories violate an invariant. Replay one with --seed N")
        return 4
    print(f"{options.histories} histories in {seconds:.0f} s: every invariant holds")
    return 0


def _failures(first: int, histories: int, jobs: int) -> Iterator[str]:
    starts = range(first, first + histories, _CHUNK)
    chunks = [range(start, min(start + _CHUNK, first + histories)) for start in starts]
    if jobs <= 1:
        for chunk in chunks:
            yield from failures_of(chunk)
        return
    with ProcessPoolExecutor(jobs) as pool:
        try:
            for problems in pool.map(_all_failures_of, chunks):
                yield from problems
        finally:
            pool.shutdown(cancel_futures=True)


def _all_failures_of(seeds: Sequence[int]) -> list[str]:
    return list(failures_of(seeds))


def failures_of(seeds: Sequence[int]) -> Iterator[str]:
    """Runs a history for each seed. A line for each that violates an invariant, as it ends."""
    gc.disable()  # to go through all that is in memory, for every few hundred objects, takes a tenth of the time
    try:
        for number, seed in enumerate(seeds, 1):
            history = History(seed, _ledger())
            history.run()
            if problems := violations(history):
                yield f"seed {seed}: {'; '.join(problems)}"
            if number % _HISTORIES_A_COLLECTION == 0:
                gc.collect()
                gc.freeze()  # what is left is kept for good
    finally:
        gc.unfreeze()
        gc.enable()


@cache
def _ledger() -> LedgerInMemory:
    return LedgerInMemory()


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="scripts/simulate", description=(__doc__ or "").partition(":")[0])
    parser.add_argument("--histories", type=int, default=1000, metavar="N", help="how many (default: 1000)")
    parser.add_argument("--first", type=int, default=0, metavar="SEED", help="seed of the first one (default: 0)")
    parser.add_argument("--seed", type=int, metavar="SEED", help="run this one, and print each of its calls")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)")
    parser.add_argument("--max-failures", type=int, default=10, metavar="N", help="stop after so many (default: 10)")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
