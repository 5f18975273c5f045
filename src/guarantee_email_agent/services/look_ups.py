"""The look-ups of a configuration, and the instruction files that they serve."""

from __future__ import annotations

from dataclasses import replace

from guarantee_email_agent.config.look_up_settings import LookUpSettings, all_labels
from guarantee_email_agent.config.mcp_server import LOOK_UP_TOOL
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.instructions.instruction_files import InstructionFiles
from guarantee_email_agent.instructions.look_up import FOUND, WARRANTY, Fact, LookUp, NumberFormat
from guarantee_email_agent.instructions.phrases import InvalidPhraseError, parse_phrase
from guarantee_email_agent.utils.errors import ConfigurationError

TABLE_TOOL = "find_row"
TABLE_ARGUMENT = "number"


def configured_look_ups(config: Config) -> tuple[LookUp, ...]:
    """The built-in one and those of `look_ups`. Raises ConfigurationError for a label that no text could hold."""
    patterns = tuple(each.pattern for each in config.warranty.serial_number.formats)
    warranty = replace(WARRANTY, format=replace(WARRANTY.format, patterns=patterns))
    return (warranty, *(_look_up(name, settings) for name, settings in config.look_ups.items()))


def instruction_files(config: Config) -> InstructionFiles:
    """The instruction files of a configuration, checked against its look-ups. Raises as `configured_look_ups` does."""
    settings = config.instructions
    return InstructionFiles(settings.main, settings.scenarios_dir, configured_look_ups(config))


def tool_of(settings: LookUpSettings) -> tuple[str, str]:
    """The tool that takes the number, and what it calls it."""
    if settings.table is not None:
        return TABLE_TOOL, TABLE_ARGUMENT
    tool = settings.tool or settings.server.tools[LOOK_UP_TOOL].tool
    return tool, settings.argument or settings.number


def _look_up(name: str, settings: LookUpSettings) -> LookUp:
    labels = all_labels(settings.labels)
    for label in labels:
        try:
            parse_phrase(label, None)
        except InvalidPhraseError as error:
            raise ConfigurationError(
                f"look_ups.{name}.labels: phrase '{label}' {error}", "config_invalid_value"
            ) from None
    described = settings.description or f"The {settings.number.replace('_', ' ')} that the customer gives."
    return LookUp(
        name=name,
        topics=settings.topics,
        number=settings.number,
        status="status",
        statuses=settings.statuses or (FOUND,),
        facts=tuple(
            Fact(fact, "word", form, required=fact in settings.required)
            if isinstance(form, tuple)
            else Fact(fact, form, required=fact in settings.required)
            for fact, form in settings.facts.items()
        ),
        format=NumberFormat(settings.number, described, settings.patterns, labels),
        status_key=settings.status_key,
        owner_key=settings.owner_key,
    )
