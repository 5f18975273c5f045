"""What a suite shows of new mail, by its `_manifest.yml`: nothing, what its first opening did, or a bound."""

from __future__ import annotations

import errno
import hashlib
import math
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from guarantee_email_agent.files.problems import ProblemsError
from guarantee_email_agent.files.text_file import InputFileError, decode_text, names, read_bytes, read_text
from guarantee_email_agent.files.validation import build, number, setting
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.runlog.statistics import upper_bound
from guarantee_email_agent.utils.errors import ConfigurationError
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import printable

if TYPE_CHECKING:
    from guarantee_email_agent.files.python_code import FollowedCode

MANIFEST: Final = "_manifest.yml"
_MAX_BYTES: Final = 1 << 20
_ALPHA: Final = 0.05
_OF_SEAL: Final = ("drawn_from", "period", "sha256", "revision")
_OPENED: Final = re.compile(r"^opened: *(\d+).*\n", re.MULTILINE)


class DistinctMails(NamedTuple):
    """How many distinct mails there are, and of how many every copy passed."""

    total: int
    passed: int


@dataclass(frozen=True, slots=True)
class SuiteManifest:
    """The kind of a suite. Without a file it is one that the agent was built on."""

    kind: Literal["development", "held_out", "sealed"] = setting("development", "What the agent's authors know of it.")
    first_passed: int | None = number(None, "Held out: how many of its mails passed when it was first opened.", 0)
    first_total: int | None = number(None, "Held out: of how many.", 1)
    opened_since: int = number(0, "Held out: how often it was looked at since.", 0)
    drawn_from: int | None = number(None, "Sealed: of how many mails its own were drawn at random.", 1)
    drawn: int | None = number(None, "Sealed: how many were, none of which may be missing.", 1)
    period: str | None = setting(None, "Sealed: when those were received, such as September and October.")
    sha256: str | None = setting(None, "Sealed: of the lines that `sha256sum` prints of its files.")
    revision: str | None = setting(None, "Sealed: of the agent, before which it was sealed.")
    openings: int = number(1, "Sealed: how often it may be opened; each takes its share of the 5 % of doubt.", 1)
    opened: int = number(0, "Sealed: how often it was.", 0)
    seed: int | None = number(None, "Of the draw, which the same mails give again.", 0)
    threshold: float | None = number(None, "Sealed: percent that the gate asks for.", 1, 100, above=True)
    rule: Literal["rate", "proof"] = setting("rate", "Sealed: what has to reach it, the pass rate or its lower bound.")

    def as_facts(self) -> dict[str, Any]:
        """As a run keeps it, beside what else is known of it; nothing of a suite without a manifest."""
        return {} if self == DEVELOPMENT else {"manifest": asdict(self)}

    @property
    def is_closed(self) -> bool:
        """Whether nobody is to see its cases: it is sealed, or was drawn to be."""
        return self.kind == "sealed" or (self.kind == "development" and self.drawn_from is not None)

    @classmethod
    def of_facts(cls, facts: Mapping[str, Any]) -> SuiteManifest:
        return cls(**facts.get("manifest", {}))

    def lower_bound(self, passed: int, total: int) -> float | None:
        """Percent of new mail that passes at least, with 95 % confidence, rounded down; None where nothing says so.

        passed, total: distinct mails of a whole run.
        """
        return round(100 - self._most(total - passed, total), 1) if self.kind == "sealed" and total else None

    def why_unproven(self, bound: float | None) -> str:
        """Why a rate is not proven, in a few words. bound: as `lower_bound` gives it."""
        if bound is not None:
            return f"proven is a rate of {bound}%"
        suite = {"development": "that the agent was built on", "held_out": "that was opened before"}.get(self.kind)
        return f"a suite {suite or 'of which only a part ran'} proves no rate on new mail"

    def conclusion(
        self, passed: int, total: int, counts: Mapping[str, int] | None = None, harmful: int | None = None
    ) -> str:
        """For a suite that is held out or sealed, what follows on its counts of distinct mails.

        counts: what became of each mail, where each is distinct and the agent ours. harmful: mails; None if not known.
        """
        if self.kind == "held_out":
            since = f"opened {self.opened_since} times since" if self.opened_since != 1 else "opened once since"
            if self.first_passed is None or self.first_total is None:
                return f"These mails were held out, and {since}: nothing is proven by what was looked at before."
            wrong = self.first_total - self.first_passed
            most = _percent(upper_bound(wrong, self.first_total, _ALPHA / self.openings))
            first = f"{self.first_passed} of {self.first_total} passed when they were first opened"
            bound = f"of mails drawn like them, at most {most} % went wrong then, with 95 % confidence"
            return f"These mails were held out: {first} ({bound}), and they were {since}."
        times = {0: "not opened yet", 1: "opened once"}.get(self.opened, f"opened {self.opened} times")
        times += f" of {self.openings} announced" if self.openings > 1 else ""
        drawn = f"drawn at random from the {self.drawn_from:,} received in {self.period}"
        sealed = f"sealed (sha256 {(self.sha256 or '')[:12]}…) before revision {self.revision}, {times}"
        said = [f"{pluralize(total, 'mail')}, {drawn}, {sealed}: {total - passed} wrong."]
        confidence = "With 95 % confidence" if self.openings == 1 else "With 95 % confidence in all its openings"
        said.append(
            f"{confidence} at most {self._most(total - passed, total)} % of mail like that period's goes wrong."
        )
        if counts:
            answered, mails = counts["answered"], counts["mails"]
            parts = [f"at least {round(100 - self._most(mails - answered, mails), 1)} % of it is answered"]
            parts.append(f"of the answers at most {self._most(answered - counts['right'], answered)} % are wrong")
            if harmful is not None:
                parts.append(f"at most {self._most(harmful, mails)} % of it is harmed")
            said.append(f"Each for itself: {', '.join(parts)}.")
        return " ".join(said)

    def _most(self, wrong: int, total: int) -> float:
        return _percent(upper_bound(wrong, total, _ALPHA / self.openings))


DEVELOPMENT: Final = SuiteManifest()


def read_manifest(folder: Path) -> SuiteManifest:
    """Of the suite in a folder. Raises ConfigurationError for one that cannot be used, or whose seal is broken."""
    path = folder / MANIFEST
    if not os.path.lexists(path):
        if os.path.lexists(other := path.with_suffix(".yaml")):
            raise _error(other, f"nobody reads a manifest of this name. Call it {MANIFEST}")
        return DEVELOPMENT
    try:
        documents = load_documents(read_text(path, _MAX_BYTES))
        made = build(SuiteManifest, documents[0] if len(documents) == 1 else documents or {})
        if isinstance(made, list):
            raise _error(path, str(ProblemsError(made)))
        if made.first_total is not None and (made.first_passed or 0) > made.first_total:
            raise _error(path, f"first_passed is {made.first_passed} of first_total {made.first_total}. Correct one")
        if made.kind != "sealed":
            return made
        if missing := [name for name in _OF_SEAL if not getattr(made, name)]:
            raise _error(path, f"a sealed suite lacks {', '.join(missing)}. Add it")
        digest = suite_digest(folder)
    except InputFileError as error:
        raise _error(path, error.message) from None
    if digest != made.sha256:
        problem = f"the seal is broken: the files of this folder have the digest {digest}, not {made.sha256}"
        raise _error(path, f"{problem}. Restore them, or say kind: held_out")
    # Whoever has seen what was announced to be seen can tune on it from then on.
    return made if made.opened < made.openings else replace(made, kind="held_out", opened_since=made.opened - 1)


def suites_around(folder: Path) -> Iterator[tuple[Path, SuiteManifest]]:
    """The folders with a manifest that a folder lies in, the nearest first. Raises as `read_manifest` does."""
    for place in Path(os.path.abspath(folder)).parents:
        if (place / MANIFEST).is_file():
            yield place, read_manifest(place)


def refuse_drawn(folder: Path, remedy: str = "Name another folder") -> None:
    """Raises ConfigurationError for a folder of, or in, a suite that was drawn at random, before a file is added."""
    for place, manifest in suites_around(folder / "_"):
        if manifest.drawn_from is not None:
            problem = (
                f"these mails were drawn at random, and one file more would break the draw, and any seal. {remedy}"
            )
            raise _error(place / MANIFEST, problem)


def keep_opening(folder: Path, first: DistinctMails | None = None) -> None:
    """Write into the manifest of a sealed suite that it is opened once more, or how its first opening went.

    Raises ConfigurationError.
    """
    from guarantee_email_agent.files.report_files import write_whole  # every run reads one, few write it

    path = folder / MANIFEST
    try:
        text = path.read_text(encoding="utf-8").rstrip("\n") + "\n"
        if first is None:
            opened = sum(int(count) for count in _OPENED.findall(text))
            text = f"{_OPENED.sub('', text)}opened: {opened + 1}\n"
        elif "\nfirst_passed:" not in text:  # by another run that was begun at the same time
            text += f"first_passed: {first.passed}\nfirst_total: {first.total}\n"
        write_whole(path, text.encode())
    except OSError as error:
        raise _error(path, f"the opening cannot be kept ({error.strerror}). Make it writable") from None


def suite_digest(folder: Path) -> str:
    """Of what `sha256sum` prints of all its files in the C locale, but for names that begin with `_` or `.`."""
    names: list[str] = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name[0] not in "._"]
        names += (os.path.relpath(os.path.join(place, name), folder) for name in files if name[0] not in "._")
    names.sort(key=os.fsencode)
    lines = (f"{hashlib.sha256(read_bytes(folder / name, 1 << 28)).hexdigest()}  {name}\n" for name in names)
    return hashlib.sha256(b"".join(map(os.fsencode, lines))).hexdigest()


def _percent(share: float) -> float:
    """Rounded up to one decimal: a bound may not get better by being written."""
    return min(100.0, math.ceil(1000 * share - 1e-6) / 10)


def _error(path: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(f"{printable(str(path))}: {printable(problem)}", "eval_manifest_invalid")


MAX_SCENARIO_BYTES: Final = 1 << 20
SERVERS_FOLDER: Final = "servers"
CALIBRATION_FILE: Final = "rubric_calibration.json"
_OF_PROJECT: Final = ("config.yaml", "pyproject.toml", ".git")
_SAYS_ID: Final = re.compile(rb"(?m)^[\"']?scenario_id[\"']?\s*:")
_RAW_FILE: Final = re.compile(rb"raw_file[\"']?:\s*[\"']?([^\s\"',}]+)")


def calibration_file(folder: Path) -> Path | None:
    """What people said of answers to rubrics: the nearest one, of the folder or of one that it lies in."""
    places = (place / CALIBRATION_FILE for place in (folder, *folder.absolute().parents))
    return next((place for place in places if place.is_file()), None)


def suite_folders(suite: Path) -> Iterator[Path]:
    """The folders in which scenarios of a suite may lie, itself first."""
    for folder, folders, files in os.walk(suite):
        is_other = MANIFEST in files and folder != os.fspath(suite)
        folders[:] = [] if is_other else sorted(name for name in folders if name[0] not in "._")
        if not is_other:
            yield Path(folder)


def folders_above(suite: str | Path) -> Iterator[str]:
    """Where servers of a suite may be declared, too: it may be a part of one. The nearest first, up to the project."""
    place = os.path.abspath(suite)
    while not os.path.lexists(os.path.join(place, MANIFEST)) and (place := os.path.dirname(last := place)) != last:
        if any(os.path.lexists(os.path.join(place, name)) for name in _OF_PROJECT):
            return
        yield place


def judge_files(suite: Path) -> list[str]:
    """The Python files of a suite."""
    folders = suite_folders(suite)
    return [os.path.abspath(folder / name) for folder in folders for name in names(folder, ".py", hidden=".")]


def suite_files(suite: Path, judges: FollowedCode) -> Iterator[tuple[tuple[str, str], str]]:
    """Kind and name, and the path, of each file of a suite but its scenarios. judges: of `judge_files`."""
    for folder in suite_folders(suite):
        if (file := calibration_file(folder)) is not None:
            yield ("rubric", os.path.relpath(file, suite)), os.fspath(file)
    for folder in (*suite_folders(suite), *map(Path, folders_above(suite))):
        for name in names(folder / SERVERS_FOLDER, ".yaml"):
            path = os.path.join(folder, SERVERS_FOLDER, name)
            yield ("server", os.path.relpath(path, suite)), path
    yield from named_files("judge", judges, os.path.abspath(suite))


def named_files(kind: str, code: FollowedCode, folder: str) -> Iterator[tuple[tuple[str, str], str]]:
    """Each file by its path from the folder, or by its name where it lies elsewhere."""
    used: dict[str, int] = {}
    for path in code.files:
        inside = path.startswith(f"{folder}{os.sep}")
        name = Path(path[len(folder) + 1 :]).as_posix() if inside else os.path.basename(path)
        used[name] = used.get(name, 0) + 1
        yield (kind, name if used[name] == 1 else f"{name} ({used[name]})"), path


def scenario_names(folder: str) -> Iterator[str]:
    """Paths within the folder. Raises OSError, with ELOOP for a link to a folder that has scenarios."""
    waiting = [""]
    while waiting:
        within = waiting.pop()
        with os.scandir(os.path.join(folder, within) if within else folder) as scanned:
            found = list(scanned)
            if within and MANIFEST in [entry.name for entry in found]:
                continue  # a suite of its own
            for entry in found:
                if entry.name[0] in "._":
                    continue
                if entry.name.lower().endswith((".yaml", ".yml", ".yaml.txt")):
                    if not f"/{within}".endswith(f"/{SERVERS_FOLDER}/") or _SAYS_ID.search(
                        file_content(entry.path)
                    ):  # among declared servers a scenario would guard nothing, and nobody would know
                        yield within + entry.name
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{within}{entry.name}/")
                elif entry.is_dir() and _leads_to_others(entry.path, folder):  # which nobody would run, or seal
                    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), entry.path)


def _leads_to_others(link: str, suite: str) -> bool:
    """Whether scenarios that are not of the suite lie in a linked folder, which is no suite of its own."""
    there, here = os.path.realpath(link), os.path.realpath(suite)
    if os.path.commonpath((there, here)) in (there, here) or os.path.lexists(os.path.join(there, MANIFEST)):
        return False
    return next(scenario_names(there), None) is not None


def file_content(file: str) -> bytes:
    """Nothing of a file that cannot be read, which is no scenario."""
    try:
        return read_bytes(file, MAX_SCENARIO_BYTES)
    except InputFileError:
        return b""


def has_source(file: str, content: bytes, digest: bytes | None, suite: str) -> bool:
    """Whether a scenario's file is that of which the store has the digest, as far as its text tells. content: of it."""

    def is_stored(source: bytes) -> bool:
        return hashlib.sha256(source_in_suite(source, file, suite)).digest() == digest

    if digest is None or is_stored(content):
        return digest is not None
    try:
        source = decode_text(content).encode()
    except InputFileError:
        return False
    if b"raw_file" not in source:
        return source != content and is_stored(source)
    for name in _RAW_FILE.findall(source):  # the digest tells whether it is the mail, wherever the name stands
        with suppress(InputFileError, ValueError):
            raw = read_bytes(Path(file).with_name(name.decode()), MAX_SCENARIO_BYTES)
            if is_stored(source_with_mail(source, name.decode(), raw)):
                return True
    return False


def source_with_mail(source: bytes, name: str, raw: bytes) -> bytes:
    """name: of the file of the mail; raw: what is in it."""
    return _with_comment(source, f"{name}: SHA-256 {hashlib.sha256(raw).hexdigest()}")


def source_in_suite(source: bytes, file: str, suite: str) -> bytes:
    """With its folder within the suite: in another one other judges and servers lie beside it."""
    folder = os.path.dirname(file.removeprefix(os.path.join(suite, "")))
    return _with_comment(source, f"in the folder {folder}") if folder else source


def _with_comment(source: bytes, comment: str) -> bytes:
    return source.removesuffix(b"\n") + f"\n# {comment}\n".encode(errors="surrogatepass")
