"""What the scenario suite notices: faults are planted one at a time in a copy of the project, and the suite runs on it.

    uv run --quiet python benchmarks/planted_faults.py [--only FILE …] [--count 212] [--results FILE] [--mirrored-tests]

Faults of code go into the modules that a scenario's mail passes through: a condition the other way round, another
boundary or constant, a dropped call, entry or result, swapped arguments. Faults of instruction files are those of a
hasty edit: a sentence, condition or trigger gone, a ticket field or status changed, placeholders swapped, a firm phrase
softened. The sample is the same every time. A fault counts as noticed where a scenario fails, or where the suite does
not run any more; the first failing scenario ends a run. `--results` keeps each outcome as a JSON line, so that an
interrupted run goes on where it was; `--again` tries what survived once more. Where the suite is silent,
`--mirrored-tests` asks the tests of the fault's module; they count apart. `equivalent_faults.yaml` names the faults
that nothing can show, with the reason. `--known` plants the faults of `known_faults.yaml` instead, each of which has to
be noticed. The exit code is 1 where the suite notices less than `--floor` percent.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from faults.fault import TESTS, Outcome, equivalent_faults, identity
from faults.known_faults import known_faults
from faults.sampling import all_faults, sample
from faults.trial import ROOT, Trial, mirrored_tests

from guarantee_email_agent.eval.mutation.instruction_faults import Fault


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    equivalent = equivalent_faults()
    faults = sample([fault for fault in all_faults(ROOT) if _is_asked_for(fault, options.only)], options.count)
    known = _known(options.results, again=options.again)
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        trial = Trial(Path(folder))
        if (fails := trial.first_failure()) is not None:
            print(f"The suite fails without any fault: {fails}. Mend it first.", file=sys.stderr)
            return 2
        if options.known:
            return _try_known(trial)
        for number, fault in enumerate(faults, 1):
            if identity(fault) in equivalent:
                continue
            tests = mirrored_tests(fault.file) if options.mirrored_tests else options.tests
            outcome = known.get(fault.key) or trial.try_fault(fault, tests)
            if fault.key not in known and options.results:
                with options.results.open("a", encoding="utf-8") as results:
                    results.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
            outcomes.append(outcome)
            if sys.stderr.isatty():
                print(f"\r{number}/{len(faults)}", end="", file=sys.stderr, flush=True)
    return _report(outcomes, [fault for fault in faults if identity(fault) in equivalent], options.floor)


def _try_known(trial: Trial) -> int:
    survived = 0
    for known in known_faults(ROOT):
        noticed_by = trial.try_fault(known.fault, known.tests).noticed_by
        survived += noticed_by is None
        print(f"{known.name}: {noticed_by or 'NOT NOTICED'}", flush=True)
    return 1 if survived else 0


def _is_asked_for(fault: Fault, only: Sequence[str]) -> bool:
    return not only or any(part in fault.file for part in only)


def _known(results: Path | None, *, again: bool) -> dict[str, Outcome]:
    if results is None or not results.exists():
        return {}
    outcomes = [Outcome(**json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines()]
    return {each.key: each for each in outcomes if each.noticed_by is not None or not again}


def _report(outcomes: Sequence[Outcome], equivalent: Sequence[Fault], floor: float) -> int:
    groups = {"code": ".py", "instruction files": ".md"}
    for title, ending in groups.items():
        group = [each for each in outcomes if each.file.endswith(ending)]
        if not group:
            continue
        print(f"{title}: {_share(group)}")
        totals = Counter(each.file for each in group)
        noticed = Counter(each.file for each in group if each.by_suite)
        for file in sorted(totals):
            print(f"  {file}: {noticed[file]} of {totals[file]} noticed")
            for each in group:
                if each.file == file and not each.by_suite:
                    by_tests = " (tests notice)" if each.noticed_by else ""
                    print(f"    {each.line}: {each.operator}{by_tests}\n      - {each.before}\n      + {each.after}")
    if equivalent:
        print(f"equivalent, not counted: {len(equivalent)}")
    print(f"all: {_share(outcomes)}")
    return 0 if 100 * sum(each.by_suite for each in outcomes) >= floor * len(outcomes) else 1


def _share(outcomes: Sequence[Outcome]) -> str:
    noticed = sum(each.by_suite for each in outcomes)
    by_tests = sum(each.noticed_by == TESTS for each in outcomes)
    share = f"{noticed} of {len(outcomes)} noticed ({100 * noticed / max(1, len(outcomes)):.1f} %)"
    return f"{share}, {by_tests} more by tests" if by_tests else share


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="FILE", help="part of a file's path; several")
    parser.add_argument("--count", type=int, default=212, help="how many faults of code (default: 212)")
    parser.add_argument("--results", type=Path, help="JSON lines; what stands there is not tried again")
    parser.add_argument("--again", action="store_true", help="try what survived once more")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="tests to run where the suite is silent")
    parser.add_argument("--mirrored-tests", action="store_true", help="the same with the tests of the fault's module")
    parser.add_argument("--known", action="store_true", help="plant the faults of known_faults.yaml instead")
    parser.add_argument("--floor", type=float, default=0, metavar="PERCENT", help="fail where fewer are noticed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
