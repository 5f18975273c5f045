"""`sample` draws mails at random, to be labelled, and `seal` makes of these a suite of which only totals are seen."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.email.parsing.email import Email
from guarantee_email_agent.email.processor_models import AnswerPolicy
from guarantee_email_agent.eval.capture.capture_command import NOT_FOUND, anonymous_reply
from guarantee_email_agent.eval.capture.scenario_file import anonymizer_for, anonymous_mail, file_text
from guarantee_email_agent.eval.dry_run import reply_of_thread
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import InvalidScenario
from guarantee_email_agent.eval.past_mails import (
    ANY_TIME,
    FoundMails,
    Period,
    find_mails,
    past_mails,
    read_mail,
)
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.scenario_validation import KnownNames
from guarantee_email_agent.eval.sealing.mail_labels import UNLABELLED
from guarantee_email_agent.files.report_files import write_whole
from guarantee_email_agent.files.text_file import write_new_file
from guarantee_email_agent.files.yaml import dump
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.runlog.suite_manifest import DEVELOPMENT, MANIFEST, read_manifest, suite_digest
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.services.ports import Thread
from guarantee_email_agent.utils.distribution import __version__
from guarantee_email_agent.utils.errors import EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.git_state import GitQuestion
from guarantee_email_agent.utils.terminal import Terminal, TextStream, pluralize
from guarantee_email_agent.utils.text import printable


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleOptions:
    """count: of mails to draw. to: the new folder. folder: with `.eml` files; the inbox if None. today: ISO 8601."""

    count: int
    to: Path
    seed: int
    today: str
    folder: Path | None = None
    period: Period = ANY_TIME


def sample_mails(
    options: SampleOptions, config: Config, stream: TextStream, find_thread: Callable[[Email], Thread | None]
) -> int:
    """Write the folder; the exit code. find_thread: the conversation with us that a mail goes on with.

    Raises ConfigurationError for a folder that holds something or cannot be written, and for fewer mails than are to be
    drawn, InstructionError, and MCPConnectionError and IntegrationError where the mailbox fails.
    """
    instructions = instruction_files(config).load()
    found, drawn = asyncio.run(_draw(options, config))
    make_new_folder(options.to)  # only now: what is refused leaves none behind
    own = AnswerPolicy.of(config).own_addresses
    for number, (raw, email) in enumerate(drawn, 1):
        scenario_id = f"{UNLABELLED}_{number:03d}"
        data = _unlabelled(scenario_id, options.today, email, raw, own, instructions, find_thread)
        write_into(options.to, f"{scenario_id}.yaml", file_text(data, None))
    manifest = {"kind": "development", "drawn_from": len(found.ids), "drawn": len(drawn)}
    manifest |= {"period": found.period, "seed": options.seed}
    write_into(options.to, MANIFEST, dump(manifest))
    terminal = Terminal(stream)
    drawn_from = f"{pluralize(len(found.ids), 'mail')} received {found.period}"
    terminal.outcome(
        f"✓ drew {pluralize(len(drawn), 'mail')} at random from {drawn_from} (seed {options.seed}) into "
        f"{printable(str(options.to))}"
    )
    for line in (*found.left_out(), NOT_FOUND):
        terminal.line(line)
    terminal.line(f"Label each with 'view --label {printable(str(options.to))}', then 'seal' it.")
    terminal.flush()
    return EXIT_SUCCESS


async def _draw(options: SampleOptions, config: Config) -> tuple[FoundMails, list[tuple[bytes, Email]]]:
    async with past_mails(config, options.folder) as mails:
        found = await find_mails(mails, options.period, options.count)
        chosen = random.Random(options.seed).sample(found.ids, options.count)  # noqa: S311 - its seed is to be known
        read = [await read_mail(mails, mail_id) for mail_id in chosen]
    if len(whole := [each for each in read if each is not None]) < len(read):
        raise ConfigurationError("A mail was moved while mails were drawn. Draw again", "sample_disturbed")
    return found, whole


def _unlabelled(
    scenario_id: str,
    today: str,
    email: Email,
    raw: bytes,
    own_addresses: frozenset[str],
    instructions: Instructions,
    find_thread: Callable[[Email], Thread | None],
) -> dict[str, Any]:
    previous = reply_of_thread(find_thread(email), instructions.scenarios)
    further = (previous.ticket_id,) if previous is not None and previous.ticket_id else ()
    anonymizer = anonymizer_for(email, raw, own_addresses, instructions.look_ups, further)
    met: dict[str, Any] = {"email": anonymous_mail(email, anonymizer, f"{today}T00:00:00Z")}
    if previous is not None:
        met["previous_reply"] = anonymous_reply(previous, anonymizer)
    return {
        "scenario_id": scenario_id,
        "description": "A mail drawn at random",
        "category": UNLABELLED,
        "created": today,
        "input": met,
    }


def make_new_folder(folder: Path) -> None:
    """Raises ConfigurationError for one that holds something or cannot be made."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        if not any(folder.iterdir()):
            return
    except OSError as error:
        raise _refused(folder, f"cannot be made ({error.strerror}). Name another folder with --to") from None
    raise _refused(folder, "is there already, and not empty. Name another folder with --to")


def write_into(folder: Path, name: str, text: str) -> None:
    """Raises as `make_new_folder` does."""
    try:
        write_new_file(folder / name, text.encode())
    except OSError as error:
        raise _refused(folder, f"cannot be written ({error.strerror}). Name another folder with --to") from None


def _refused(folder: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(f"{printable(str(folder))} {problem}", "sample_folder_unusable")


@dataclass(frozen=True, slots=True, kw_only=True)
class SealOptions:
    """What the command line decides, as `SuiteManifest` has it."""

    directory: Path
    threshold: float
    rule: Literal["rate", "proof"]
    openings: int = 1


def seal_suite(options: SealOptions, config: Config, stream: TextStream) -> int:
    """Write the manifest; the exit code.

    Raises ConfigurationError for a folder that was not drawn, is sealed already or has mails without a label, EvalError
    for one that cannot be read, and InstructionError.
    """
    folder, manifest = options.directory, read_manifest(options.directory)
    if manifest.kind != "development" or manifest.drawn_from is None:
        what = (
            "was not drawn by 'sample'" if manifest == DEVELOPMENT else f"is {manifest.kind.replace('_', ' ')} already"
        )
        raise _not_sealable(folder, f"{what}. Seal a folder that 'sample' made")
    loader = EvalLoader(known=KnownNames.of(EvalRunner(config).check_instructions()))
    files = loader.scenario_files(folder)
    if waiting := [file for file in files if Path(file).stem.startswith(f"{UNLABELLED}_")]:
        remedy = f"Label them with 'view --label {folder}'"
        raise _not_sealable(folder, f"has {pluralize(len(waiting), 'mail')} without a label. {remedy}")
    if broken := [each for each in loader.iter_entries(files) if isinstance(each, InvalidScenario)]:
        raise _not_sealable(folder, f"has {pluralize(len(broken), 'file')} that cannot be used: {broken[0].reason}")
    if len(files) != (manifest.drawn or len(files)) or not files:
        remedy = f"and {manifest.drawn or 'none'} were drawn, so they are no random sample. Restore them, or draw anew"
        raise _not_sealable(folder, f"has {pluralize(len(files), 'mail')}, {remedy}")
    place = folder if config.source is None else config.source.parent
    state = GitQuestion(place).answer()
    revision = __version__ if state is None else f"{state[0][:12]}{'+' if state[1] else ''}"
    sealed = replace(
        manifest,
        kind="sealed",
        sha256=suite_digest(folder),
        revision=revision,
        threshold=options.threshold,
        rule=options.rule,
        openings=options.openings,
    )
    said = {name: value for name, value in asdict(sealed).items() if value is not None and name != "opened_since"}
    try:
        write_whole(folder / MANIFEST, dump(said).encode())
    except OSError as error:
        raise _not_sealable(folder, f"cannot be written ({error.strerror}). Check its permissions") from None
    terminal = Terminal(stream)
    terminal.outcome(f"✓ sealed {pluralize(len(files), 'mail')} in {printable(str(folder))} (sha256 {sealed.sha256})")
    terminal.line(f"'eval --eval-dir {printable(str(folder))}' shows totals alone. Commit the folder before you go on.")
    terminal.flush()
    return EXIT_SUCCESS


def _not_sealable(folder: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(printable(f"{folder} {problem}"), "eval_suite_not_sealable")
