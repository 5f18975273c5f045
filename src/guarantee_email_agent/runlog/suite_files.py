"""The scenario files of a folder, and whether one is as it was when it ran."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final

from guarantee_email_agent.files.text_file import InputFileError, decode_text, read_bytes
from guarantee_email_agent.runlog.suite_manifest import MANIFEST

MAX_SCENARIO_BYTES: Final = 1 << 20
SERVERS_FOLDER: Final = "servers"
CALIBRATION_FILE: Final = "rubric_calibration.json"
_SAYS_ID: Final = re.compile(rb"(?m)^[\"']?scenario_id[\"']?\s*:")
_RAW_FILE: Final = re.compile(rb"raw_file[\"']?:\s*[\"']?([^\s\"',}]+)")


def calibration_file(folder: Path) -> Path | None:
    """What people said of answers to rubrics: the nearest one, of the folder or of one that it lies in."""
    places = (place / CALIBRATION_FILE for place in (folder, *folder.absolute().parents))
    return next((place for place in places if place.is_file()), None)


def scenario_names(folder: str) -> Iterator[str]:
    """Paths within the folder. Raises OSError."""
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
                if entry.name.lower().endswith((".yaml", ".yml")):
                    if not f"/{within}".endswith(f"/{SERVERS_FOLDER}/") or _is_scenario(entry.path):
                        yield within + entry.name
                elif entry.is_dir(follow_symlinks=False):
                    waiting.append(f"{within}{entry.name}/")


def _is_scenario(path: str) -> bool:
    """Whether a file is one where others declare a server: it would guard nothing there, and nobody would know."""
    return _SAYS_ID.search(file_content(path)) is not None


def file_content(file: str) -> bytes:
    """Nothing of a file that cannot be read, which is no scenario."""
    try:
        return read_bytes(file, MAX_SCENARIO_BYTES)
    except InputFileError:
        return b""


def has_source(file: str, content: bytes, digest: bytes | None) -> bool:
    """Whether a scenario's file is that of which the store has the digest, as far as its text tells. content: of it."""
    if digest is None or hashlib.sha256(content).digest() == digest:
        return digest is not None
    try:
        source = decode_text(content).encode()
    except InputFileError:
        return False
    if b"raw_file" not in source:
        return source != content and hashlib.sha256(source).digest() == digest
    for name in _RAW_FILE.findall(source):  # the digest tells whether it is the mail, wherever the name stands
        with suppress(InputFileError, ValueError):
            raw = read_bytes(Path(file).with_name(name.decode()), MAX_SCENARIO_BYTES)
            if hashlib.sha256(source_with_mail(source, name.decode(), raw)).digest() == digest:
                return True
    return False


def source_with_mail(source: bytes, name: str, raw: bytes) -> bytes:
    """name: of the file of the mail; raw: what is in it."""
    comment = f"# {name}: SHA-256 {hashlib.sha256(raw).hexdigest()}\n"
    return source.removesuffix(b"\n") + b"\n" + comment.encode(errors="surrogatepass")
