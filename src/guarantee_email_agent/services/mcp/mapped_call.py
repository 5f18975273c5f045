"""One call by its mapping: our arguments in the shape of another server's tool, and its answer in the shape of ours."""

from __future__ import annotations

import copy
import json
from collections.abc import Iterator, Mapping
from typing import Any, Final

from guarantee_email_agent.config.mcp_server import AnswerForm, AnswerSource, ArgumentTarget, Form, OwnTool, ToolMapping
from guarantee_email_agent.utils.field_path import (
    MISSING,
    FieldPathError,
    json_or_missing,
    parse_field_path,
    put_at,
    value_at,
)
from guarantee_email_agent.utils.text import printable, word_key

MAX_TEXT_CHARS: Final = 10_000
"""Of a field of an answer, but for a text to look through: it is an id, a date, a word."""

MAX_NUMBER: Final = 2**64
"""Of an answer: ids have 64 bits at most, with a sign or without."""

MAX_ITEMS: Final = 100_000
_DETAILS: Final = "details"
_SEARCHED: Final = "idempotency_key"


class UnmappedArgumentError(ValueError):
    """A call for which the mapping has no place. The message has the argument, and never a customer's words."""


class UnreadableAnswerError(ValueError):
    """An answer that the mapping cannot read; the message is a verb phrase about it, without anything it holds."""


def build_arguments(mapping: ToolMapping, own: OwnTool, given: Mapping[str, Any]) -> dict[str, Any]:
    """The other tool's arguments. Raises UnmappedArgumentError."""
    built: dict[str, Any] = {}
    for path, value in mapping.constants.items():
        put_at(built, parse_field_path(path), copy.deepcopy(value))
    known = {name: value for name, value in given.items() if name in own.arguments or name in mapping.arguments}
    further = {name: value for name, value in given.items() if name not in known}
    if further:
        if _DETAILS not in mapping.arguments:
            raise UnmappedArgumentError(f"has no place for {', '.join(sorted(further))}; map details")
        known[_DETAILS] = further
    joined: dict[str, list[str]] = {}
    targets = mapping.targets
    for name, value in known.items():
        target = targets.get(name)
        if target is None:
            continue
        for path in target.paths:
            if path in mapping.joined_paths:
                joined.setdefault(path, []).extend(_lines(name, _written(name, value, target)))
            else:
                put_at(built, parse_field_path(path), _written(name, value, target))
    for path, lines in joined.items():
        put_at(built, parse_field_path(path), "\n".join(lines))
    return built


def _written(name: str, value: Any, target: ArgumentTarget) -> Any:
    if target.values:
        translated = target.values.get(value if isinstance(value, str) else json.dumps(value), MISSING)
        if translated is MISSING:
            raise UnmappedArgumentError(f"has no value for what {name} is now; add it to the values")
        return translated
    return value if target.form is None else _in_form(name, value, target.form)


def _in_form(name: str, value: Any, form: Form) -> Any:
    if form == "text":
        return value if isinstance(value, str) else json.dumps(value)
    if not isinstance(value, str):
        return value
    if is_whole_number(value):
        return int(value)
    raise UnmappedArgumentError(f"cannot write {name} as {form}, which it is not")


def is_whole_number(text: str) -> bool:
    """Whether a field for whole numbers, of 64 bits as nearly all are, can hold it."""
    return text.isascii() and text.isdigit() and len(text) <= 18


def cannot_exist(mapping: ToolMapping, own: OwnTool, given: Mapping[str, Any]) -> bool:
    """Whether the server's numbers are whole ones, and what a customer calls a number is none of them."""
    target = mapping.targets.get(own.echoed) if own.echoed is not None else None
    if target is None or target.form != "number" or target.values:
        return False
    return not is_whole_number(str(given.get(str(own.echoed))))


def _lines(name: str, value: Any) -> list[str]:
    """`name: value`, on one line, so that a value cannot pass for a line of its own."""
    if isinstance(value, Mapping):
        return [line for key, item in value.items() for line in _lines(str(key), item)]
    return [f"{name}: {printable(value if isinstance(value, str) else json.dumps(value))}"]


def answer_content(structured: Any, text: str) -> Any:
    """The structured content, else the text as JSON; MISSING where it is none."""
    return json_or_missing(text) if structured is None else structured


def prose(content: Any, text: str) -> str | None:
    """What a tool says in words where others give data; None where it gives data.

    Servers wrap a text that a tool returns as `{"result": text}`, to have structured content.
    """
    if content is MISSING:
        return text
    if isinstance(content, dict) and len(content) == 1:
        (content,) = content.values()
    return content if isinstance(content, str) and json_or_missing(content) is MISSING else None


def says_not_found(mapping: ToolMapping, text: str) -> bool:
    """Whether a text that the tool answers is the one for what there is not."""
    phrase = mapping.not_found.text if mapping.not_found else None
    return phrase is not None and phrase.strip().casefold() in text.casefold()


def is_empty(mapping: ToolMapping, content: Any) -> bool:
    """Whether the answer shows by something empty that there is no such thing.

    Raises UnreadableAnswerError where the answer lacks even that, since then the server was changed, and where it has
    an `error` beside it in other words than those for what there is not: nothing was found because nothing was read.
    """
    path = mapping.not_found.empty if mapping.not_found else None
    if path is None:
        return False
    value = _value(content, path)
    if value is MISSING:
        raise UnreadableAnswerError(f"has no {path}, by which it is known that nothing was found")
    if value is not None and value not in ("", [], {}):
        return False
    if any(not says_not_found(mapping, error) for error in _errors_beside(content, path)):
        raise UnreadableAnswerError(f"has nothing at {path}, and an error beside it")
    return True


def _errors_beside(content: Any, path: str) -> Iterator[str]:
    """What the objects that a path leads through say under `error` or `errors`."""
    steps = parse_field_path(path)
    for length in range(max(1, len(steps))):
        holder = value_at(content, steps[:length])
        if isinstance(holder, str):
            holder = json_or_missing(holder)
        if isinstance(holder, Mapping):
            for error in filter(None, (holder.get("error"), holder.get("errors"))):
                yield error if isinstance(error, str) else json.dumps(error, ensure_ascii=False)


def read_answer(mapping: ToolMapping, own: OwnTool, content: Any, given: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of our tool's answer. given: our arguments, which the answer may have to repeat.

    Raises UnreadableAnswerError.
    """
    answer: dict[str, Any] = {}
    for name, source in mapping.sources.items():
        value = _value(content, source.path)
        if value is MISSING:
            # An owner that has gone missing is no device that anybody may ask about.
            if name in own.required or name == "owner_email":
                raise UnreadableAnswerError(f"has no {source.path}, which is its {name}")
        elif own.answer[name] == "list":
            answer[name] = _items(value, source, own)
        elif value is not None or name in own.required:
            answer[name] = _translated(name, _typed(name, value, own.answer[name], source), source)
    _check_echo(mapping, own, answer, given)
    return answer


def _check_echo(mapping: ToolMapping, own: OwnTool, answer: Mapping[str, Any], given: Mapping[str, Any]) -> None:
    """Raises UnreadableAnswerError for an answer that is not seen to be about what was asked for."""
    name = own.echoed
    if (
        name is None
        or name not in mapping.sources
        or (name not in answer and word_key(str(answer.get("status"))) == "not_found")
    ):
        return
    if name not in answer:
        raise UnreadableAnswerError(f"has no {mapping.sources[name].path}, which is its {name}")
    target = mapping.targets.get(name)
    as_number = target is not None and target.form == "number"
    repeated, asked = (_key(str(each)) for each in (answer[name], given.get(name)))
    if as_number:
        repeated, asked = (each.lstrip("0") for each in (repeated, asked))
    if repeated != asked:
        raise UnreadableAnswerError(f"is about another {name}")


def _items(value: Any, source: AnswerSource, own: OwnTool) -> list[dict[str, Any]]:
    if not isinstance(value, list) or len(value) > MAX_ITEMS:
        raise UnreadableAnswerError(f"has no list at {source.path}")
    found = []
    seen: set[str] = set()
    for item in value:
        fields: dict[str, Any] = {}
        for name in own.items:
            path = source.each[name]
            content = _value(item, path)
            seen.update((name,) if content is not MISSING else ())
            if content is MISSING and name != _SEARCHED:
                raise UnreadableAnswerError(f"has an item without {path}, which is its {name}")
            is_text = content is not MISSING and content is not None
            fields[name] = _typed(name, content if is_text else "", own.items[name], AnswerSource(path))
        found.append(fields)
    if found and _SEARCHED not in seen:
        # One ticket may have no text; where none has any, the server was changed, and no ticket would be found again.
        raise UnreadableAnswerError(f"has no item with {source.each[_SEARCHED]}, which is its {_SEARCHED}")
    return found


def _value(content: Any, path: str) -> Any:
    try:
        return value_at(content, parse_field_path(path))
    except FieldPathError as error:
        raise UnreadableAnswerError(f"{error} ({path})") from None


def _typed(name: str, value: Any, form: AnswerForm, source: AnswerSource) -> Any:
    """Raises UnreadableAnswerError for another type, half a character, or more than a field may hold."""
    is_number = isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= MAX_NUMBER
    if source.values and isinstance(value, bool | int | None):
        value = json.dumps(value)
    if form == "text_or_number" and is_number:
        return value
    if is_number and isinstance(value, int):
        value = str(value)  # the number of a ticket
    if isinstance(value, str) and _is_usable(value, one_line=name != _SEARCHED):
        return value
    raise UnreadableAnswerError(f"has an unusable {source.path}, which is its {name}")


def _is_usable(text: str, *, one_line: bool) -> bool:
    if len(text) > MAX_TEXT_CHARS and one_line:
        return False
    return not one_line or not any(ord(sign) < 32 or 127 <= ord(sign) < 160 or sign in "\u2028\u2029" for sign in text)


def _translated(name: str, value: Any, source: AnswerSource) -> Any:
    if not source.values:
        return value
    if not isinstance(value, str):
        value = json.dumps(value)
    known = {_key(theirs): ours for theirs, ours in source.values.items()}
    if (ours := known.get(_key(value))) is not None:
        return ours
    if name == "status":
        return "other"  # a word that nobody said the meaning of is never repeated
    raise UnreadableAnswerError(f"has a {source.path} that is none of the values of {name}")


def _key(word: str) -> str:
    """As words and numbers are compared: case, spaces, hyphens and underscores do not count."""
    return "".join(sign for sign in word.casefold() if sign not in " -_")
