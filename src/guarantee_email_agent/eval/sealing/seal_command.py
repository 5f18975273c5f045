"""The whole of `seal`: a labelled sample becomes a suite of which only totals are seen."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Literal

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.models import InvalidScenario
from guarantee_email_agent.eval.runner import EvalRunner
from guarantee_email_agent.eval.scenario_validation import KnownNames
from guarantee_email_agent.eval.sealing.mail_labels import unlabelled
from guarantee_email_agent.files.report_files import write_whole
from guarantee_email_agent.files.yaml import dump
from guarantee_email_agent.runlog.suite_manifest import DEVELOPMENT, MANIFEST, read_manifest, suite_digest
from guarantee_email_agent.utils.errors import EXIT_SUCCESS, ConfigurationError
from guarantee_email_agent.utils.git_state import GitQuestion
from guarantee_email_agent.utils.terminal import Terminal, TextStream, pluralize
from guarantee_email_agent.utils.text import printable
from guarantee_email_agent.utils.version import __version__


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
        raise _refused(folder, f"{what}. Seal a folder that 'sample' made")
    loader = EvalLoader(known=KnownNames.of(EvalRunner(config).check_instructions()))
    files = loader.scenario_files(folder)
    if waiting := unlabelled(files):
        remedy = f"Label them with 'view --label {folder}'"
        raise _refused(folder, f"has {pluralize(len(waiting), 'mail')} without a label. {remedy}")
    if broken := [each for each in loader.iter_entries(files) if isinstance(each, InvalidScenario)]:
        raise _refused(folder, f"has {pluralize(len(broken), 'file')} that cannot be used: {broken[0].reason}")
    if len(files) != (manifest.drawn or len(files)) or not files:
        remedy = f"and {manifest.drawn or 'none'} were drawn, so they are no random sample. Restore them, or draw anew"
        raise _refused(folder, f"has {pluralize(len(files), 'mail')}, {remedy}")
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
        raise _refused(folder, f"cannot be written ({error.strerror}). Check its permissions") from None
    terminal = Terminal(stream)
    terminal.outcome(f"✓ sealed {pluralize(len(files), 'mail')} in {printable(str(folder))} (sha256 {sealed.sha256})")
    terminal.line(f"'eval --eval-dir {printable(str(folder))}' shows totals alone. Commit the folder before you go on.")
    terminal.flush()
    return EXIT_SUCCESS


def _refused(folder: Path, problem: str) -> ConfigurationError:
    return ConfigurationError(printable(f"{folder} {problem}"), "eval_suite_not_sealable")
