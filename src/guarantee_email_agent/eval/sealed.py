"""A sealed suite runs whole, and only totals are shown of it, unless it is opened: then it counts as seen."""

from __future__ import annotations

import hashlib
import os
import random
from dataclasses import replace
from pathlib import Path
from typing import Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.runlog.records import Case, CaseResult
from guarantee_email_agent.runlog.suite_manifest import MANIFEST, SuiteManifest, read_manifest
from guarantee_email_agent.runlog.suite_statistics import handling_of
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.text import printable

_OF_PARTS: Final = (
    *("only", "baseline", "no_regressions", "last_failed", "fail_fast", "changed", "resume", "records_dir"),
    *("caution_curve", "verbose"),
)


def sealed_options(options: EvalOptions, config: Config) -> tuple[EvalOptions, SuiteManifest]:
    """What a suite's manifest makes of the options, and that manifest, with an opening that is to come.

    Raises ConfigurationError for what would show or leave out cases of a sealed suite, for a part of one, for one that
    is yet to be sealed, and for a threshold that was not sealed.
    """
    if (around := _sealed_around(options.directory)) is not None:
        raise _refused(around, "is sealed, or drawn to be, and runs whole. Name that folder")
    manifest, folder = read_manifest(options.directory), options.directory
    if manifest.is_closed and manifest.kind != "sealed":
        raise _refused(folder, "was drawn to be sealed. 'seal' it before anybody sees a result")
    if manifest.kind != "sealed":
        if options.open:
            raise _refused(folder, "is not sealed, or was opened as often as announced. Leave --open out")
        return options, manifest
    for name in _OF_PARTS:
        if getattr(options, name) not in (None, False, ()):
            option = "records" if name == "records_dir" else name.replace("_", "-")
            raise _refused(folder, f"is sealed, runs whole, and shows totals alone. Remove --{option}")
    if (threshold := manifest.threshold) is not None:
        if options.threshold not in (config.eval.pass_threshold, threshold):
            raise _refused(folder, f"was sealed with a threshold of {threshold:g} %. Leave --threshold out")
        proof = options.require_proof or manifest.rule == "proof"
        options = replace(options, threshold=threshold, require_proof=proof)
    return options, replace(manifest, opened=manifest.opened + 1) if options.open else manifest


def refuse_sealed(folder: Path) -> None:
    """Raises ConfigurationError where a folder or a file is, or is in, a sealed suite: only `eval` keeps it closed."""
    if (sealed := _sealed_around(folder / "_")) is not None:
        raise _refused(sealed, "is sealed, or drawn to be, and shows totals alone. Run it with `eval` alone")


class BlindCases:
    """Takes from results all that says which mail each is of, and what came of it, but what totals are counted from."""

    def __init__(self, count: int) -> None:
        """count: of the cases."""
        self._places = list(range(1, count + 1))
        random.SystemRandom().shuffle(self._places)
        self._key = os.urandom(16)

    def case(self, case: Case) -> Case:
        return Case(tuple(map(self.result, case.runs)))

    def result(self, run: CaseResult) -> CaseResult:
        place = self._places[run.position - 1]
        actual = run.response if isinstance(run.response, dict) else {}
        mail = None if run.mail is None else hashlib.blake2b(run.mail, digest_size=16, key=self._key).digest()
        return CaseResult(
            name=f"mail_{place:03d}",
            position=place,
            verdict=run.verdict,
            repetition=run.repetition,
            usage=run.usage,
            harm=("not shown",) if run.harm else run.harm,
            must=run.must,
            response={"email_sent": bool(actual.get("email_sent")), "handling": handling_of(actual)},
            trace=None if run.reading is None else {"read": {}},
            mail=mail,
        )


def _sealed_around(folder: Path) -> Path | None:
    """The sealed suite that a folder lies in; None for none, and for one itself."""
    for place in Path(os.path.abspath(folder)).parents:
        if (place / MANIFEST).is_file() and read_manifest(place).is_closed:
            return place
    return None


def _refused(folder: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(f"{printable(str(folder))} {problem}", "eval_suite_sealed")
