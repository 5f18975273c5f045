"""What a person says of each mail of a sample, without seeing what the agent would do; a scenario comes of it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.capture.scenario_file import file_text
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.look_up_source import look_up_place, mock_response
from guarantee_email_agent.files.report_files import write_whole
from guarantee_email_agent.files.text_file import InputFileError, read_text
from guarantee_email_agent.files.yaml import load_documents
from guarantee_email_agent.instructions.instruction import Instructions
from guarantee_email_agent.instructions.look_up import LookUp, look_up_of
from guarantee_email_agent.reading.number_reader import number_key
from guarantee_email_agent.reading.numbers import stands_in
from guarantee_email_agent.runlog.labelling import LabelField, LabelItem
from guarantee_email_agent.runlog.suite_manifest import read_manifest
from guarantee_email_agent.services.look_ups import instruction_files
from guarantee_email_agent.utils.errors import EvalError
from guarantee_email_agent.utils.text import printable

UNLABELLED: Final = "unlabelled"
_NUMBER_AT_END: Final = re.compile(r"_(\d{1,6})$")
_MAX_BYTES: Final = 1 << 24
_SEVERITIES: Final = (
    ("ordinary", "ordinary: counts in the pass rate"),
    ("critical", "critical: where it goes wrong, the gate is failed, whatever the rate"),
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What may become of a mail: a scenario instruction, and what a look-up said of the one number, if one decided."""

    scenario: str
    look_up: LookUp | None = None
    status: str = ""

    @property
    def key(self) -> str:
        return f"{self.scenario} {self.look_up.name} {self.status}" if self.look_up else self.scenario

    @property
    def words(self) -> str:
        return f"{self.scenario}, where {self.look_up.name} says {self.status}" if self.look_up else self.scenario


class MailLabels:
    """The `LabelSheet` of a folder of drawn mails."""

    def __init__(self, folder: Path, config: Config) -> None:
        """Raises InstructionError, and EvalError for a folder that is no sample any more."""
        if read_manifest(folder).kind != "development":
            raise label_error(f"{folder} is sealed, or was. Its labels stay")
        self.title = f"Mails of {printable(folder.name)}"
        self._folder, self._config = folder, config
        self._instructions = instruction_files(config).load()
        self._outcomes = {each.key: each for each in outcomes(self._instructions)}

    def items(self) -> list[LabelItem]:
        found = sorted((_number_of(file), file) for file in EvalLoader().scenario_files(self._folder))
        return [self._item(number, Path(file)) for number, file in found]

    def save(self, item: str, values: Mapping[str, str]) -> None:
        path = next(
            (Path(file) for file in EvalLoader().scenario_files(self._folder) if _number_of(file) == item), None
        )
        outcome, number = self._outcomes.get(values.get("outcome", "")), values.get("number", "").strip()
        if path is None or outcome is None or values.get("severity") not in dict(_SEVERITIES):
            raise label_error("Choose what should become of the mail, and how bad it is where something else does")
        with read_item(path, "sample") as data:
            mail = data["input"]["email"]
            text = f"{mail.get('subject')}\n{mail.get('body')}"
        if outcome.look_up is None and number:
            raise label_error(
                f"{outcome.scenario} rests on no single number. Leave the number out, or choose another outcome"
            )
        if outcome.look_up is not None and not (number_key(number) and stands_in(number, text)):
            raise label_error("Give the number that is to be looked up, as it stands in the mail")
        scenario_id = f"{outcome.scenario.replace('-', '_')}_{item}"
        target = path.with_name(f"{scenario_id}.yaml")
        changed = self._labelled(data, scenario_id, outcome, number, is_critical=values["severity"] == "critical")
        try:
            write_whole(target, file_text(changed, None).encode())
            if target != path:
                path.unlink()
        except OSError as error:
            raise label_error(f"{target} cannot be written ({error.strerror}). Check its folder") from None

    def _item(self, number: str, path: Path) -> LabelItem:
        names = ("from", "to", "received", "attachments", "headers")
        with read_item(path, "sample") as data:
            mail = data["input"]["email"]
            facts = "\n".join(f"{name}: {mail[name]}" for name in names if mail.get(name))
            previous = data["input"].get("previous_reply")
            answered = (("It answers a reply of ours", str(previous["scenario"])),) if previous else ()
            texts = (("Facts", facts), ("Subject", mail["subject"]), ("Mail", mail["body"]), *answered)
            now = _label_of(data)
        fields = (
            LabelField(
                "outcome",
                "What should become of it",
                tuple((each.key, each.words) for each in self._outcomes.values()),
                now.get("outcome", ""),
            ),
            LabelField("number", "The number that is to be looked up for it", value=now.get("number", "")),
            LabelField("severity", "Should something else become of it", _SEVERITIES, now.get("severity", "")),
        )
        return LabelItem(number, texts, fields, now.get("outcome", ""))

    def _labelled(
        self, data: dict[str, Any], scenario_id: str, outcome: Outcome, number: str, *, is_critical: bool
    ) -> dict[str, Any]:
        """The scenario that expects what the label says, and nothing of its words."""
        scenario = next(each for each in self._instructions.scenarios if each.name == outcome.scenario)
        expected: dict[str, Any] = {
            "email_sent": bool(scenario.templates),
            "ticket_created": scenario.ticket is not None,
            "scenario_instruction_used": outcome.scenario,
        }
        met = {name: value for name, value in data["input"].items() if name != "mock_responses"}
        if (look_up := outcome.look_up) is not None:
            answer = {look_up.status_key: outcome.status}
            met["mock_responses"] = {look_up.name: mock_response(look_up.name, answer, self._config)}
            server, tool, argument = look_up_place(look_up.name, self._config)
            between = r"[\W_]*+"  # however it is spelled; possessive: there is one way to match it
            pattern = f"^(?i:{between}(SN)?{between}{between.join(number_key(number))}{between})$"
            expected["calls"] = [{"server": server, "tool": tool, "arguments": {argument: {"matches": pattern}}}]
        description = f"A mail drawn at random, labelled {outcome.key}{f' {number}' if number else ''}"
        changed = {
            **data,
            "scenario_id": scenario_id,
            "description": description,
            "category": outcome.scenario,
            "must": is_critical,
            "input": met,
            "expected_output": expected,
        }
        return changed if is_critical else {name: value for name, value in changed.items() if name != "must"}


def outcomes(instructions: Instructions) -> Iterator[Outcome]:
    """All that may become of a mail, in the order of the instruction files."""
    for name, situations in instructions.situations().items():
        found: dict[str, Outcome] = {}
        for situation in situations:
            look_up = look_up_of(situation.topic, instructions.look_ups)
            is_told = look_up is not None and situation.status in look_up.told_statuses
            made = Outcome(name, look_up, str(situation.status)) if is_told else Outcome(name)
            found.setdefault(made.key, made)
        yield from found.values()


def _label_of(data: Mapping[str, Any]) -> dict[str, str]:
    """As it was saved; empty for none."""
    expected = data.get("expected_output")
    if not isinstance(expected, Mapping):
        return {}
    key = str(data["description"]).partition(" labelled ")[2]
    outcome = expected["scenario_instruction_used"]
    words = key.split(" ")
    is_told = len(words) > 2
    return {
        "outcome": " ".join(words[:3]) if is_told else outcome,
        "number": " ".join(words[3:]) if is_told else "",
        "severity": "critical" if data.get("must") else "ordinary",
    }


def _number_of(file: str) -> str:
    match = _NUMBER_AT_END.search(Path(file).stem)
    if match is None:
        raise label_error(f"{file} was not drawn by 'sample'. Take it out of the folder")
    return match[1]


@contextmanager
def read_item(path: Path, command: str) -> Iterator[Any]:
    """The mapping in a file that `command` wrote. Raises EvalError, also where the context misses a part of it."""
    try:
        (data,) = load_documents(read_text(path, _MAX_BYTES))
        yield data
    except InputFileError as error:
        raise label_error(f"{path}: {error.message}") from None
    except (AttributeError, LookupError, TypeError, ValueError):
        raise label_error(f"{path} was not written by '{command}'. Take it out of the folder") from None


def label_error(problem: str) -> EvalError:
    return EvalError(printable(problem), "eval_label_invalid")
