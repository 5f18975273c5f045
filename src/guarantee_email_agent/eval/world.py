"""Tables that the mocked tools of a scenario read and change, so that the outcome is judged, and not the way to it."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from guarantee_email_agent.eval.call_checks import has_arguments, pair_up
from guarantee_email_agent.eval.checks import ExpectedTable, format_value
from guarantee_email_agent.eval.tool_mocks import Effect, EffectError
from guarantee_email_agent.runlog.records import Check
from guarantee_email_agent.utils.terminal import pluralize
from guarantee_email_agent.utils.text import and_more

Row = Mapping[str, object]
Tables = Mapping[str, Sequence[Row]]

_MISSING: Final = object()
_MAX_SHOWN: Final = 5


@dataclass(slots=True)
class _Row:
    """before: None for one that the agent added. now: None for one that it deleted. began: as a turn met it."""

    before: dict[str, object] | None
    now: dict[str, object] | None
    began: dict[str, object] | None = None


class World:
    """The tables of one run."""

    def __init__(self, tables: Tables) -> None:
        self._tables = {
            name: [_Row(dict(row), copy.deepcopy(dict(row))) for row in rows] for name, rows in tables.items()
        }

    def apply(self, effect: Effect, arguments: Mapping[str, Any]) -> object:
        """The rows that it read, changed or deleted, as a list; with `one`, and of an insert, the row itself.

        Raises EffectError.
        """
        rows = self._tables[effect.table]
        if effect.kind == "inserts":
            added = dict(arguments) if effect.values is None else _filled(effect.values, arguments)
            rows.append(_Row(None, copy.deepcopy(added)))
            return added
        fitting = self._find(effect, arguments)
        if effect.one and len(fitting) != 1:
            raise EffectError(
                f"{len(fitting)} rows of {effect.table} fit" if fitting else f"no row of {effect.table} fits"
            )
        answer: list[object] = []
        values = _filled(effect.values or {}, arguments)
        for row in fitting:
            assert row.now is not None
            if effect.kind == "updates":
                row.now |= copy.deepcopy(values)
            answer.append(copy.deepcopy(row.now))
            if effect.kind == "deletes":
                row.now = None
        return answer[0] if effect.one else answer

    def _find(self, effect: Effect, arguments: Mapping[str, Any]) -> list[_Row]:
        """The rows that `where` fits. A filter that the caller left out filters nothing, but what changes rows needs
        every one: a row that nobody named must not change.
        """
        wanted: dict[str, object] = {}
        for column, value in effect.where.items():
            if (filled := _fill(value, arguments, as_matcher=True)) is not _MISSING:
                wanted[column] = filled
            elif effect.kind != "reads":
                raise EffectError(f"the argument {str(value)[1:]} is missing")
        return [row for row in self._tables[effect.table] if row.now is not None and has_arguments(row.now, wanted)]

    def begin_turn(self) -> None:
        for row in (row for rows in self._tables.values() for row in rows):
            row.began = copy.deepcopy(row.now)

    def as_dict(self, *, of_turn: bool = False) -> dict[str, Any]:
        """tables: as they are now. changes: each row that is not as it was, `before` or `after` None for none.

        of_turn: as it was when the turn began.
        """
        rows = [
            (name, row.began if of_turn else row.before, row.now) for name in self._tables for row in self._tables[name]
        ]
        return {
            "tables": {
                name: [copy.deepcopy(row.now) for row in rows if row.now is not None]
                for name, rows in self._tables.items()
            },
            "changes": [
                {"table": name, "before": before, "after": copy.deepcopy(now)}
                for name, before, now in rows
                if _is_changed(before, now)
            ],
        }


def _filled(values: Row, arguments: Mapping[str, Any]) -> dict[str, object]:
    """Without what an argument would say that the caller left out."""
    filled = {name: _fill(value, arguments) for name, value in values.items()}
    return {name: value for name, value in filled.items() if value is not _MISSING}


def _fill(value: object, arguments: Mapping[str, Any], *, as_matcher: bool = False) -> object:
    """`$name` is an argument of the call, `$$name` that text itself.

    as_matcher: what the caller says is compared as it is, though it may look like a matcher.
    """
    if not isinstance(value, str) or not value.startswith("$"):
        return value
    if value.startswith("$$"):
        return value[1:]
    if (given := arguments.get(value[1:], _MISSING)) is _MISSING or not as_matcher:
        return given
    return {"equals": given}


def _is_changed(before: Row | None, now: Row | None) -> bool:
    """One that was added and deleted is not."""
    if before is None or now is None:
        return before is not now
    return bool(_changed_columns(before, now))


def _changed_columns(before: Row, after: Row) -> set[str]:
    """As JSON has values: 1 is not true. No column of a row goes."""
    return {name for name, value in after.items() if not has_arguments(before, {name: {"equals": value}})}


# What must hold at the end --------------------------------------------------------------------------------------------


def check_state(
    expected: Mapping[str, ExpectedTable], actual: Mapping[str, Any], *, nothing_else: bool
) -> Iterator[Check]:
    """`state` and `nothing_else_changed`. actual: with `world`, as `World.as_dict` has it."""
    if (world := actual.get("world")) is None:
        yield Check("state", "nothing was reported")
        return
    for name, table in expected.items():
        rows = world["tables"].get(name, ())
        found = _format_rows(rows)
        paired = pair_up(table.has, rows, lambda wanted, row: has_arguments(row, wanted))
        for index, wanted in enumerate(table.has):
            yield _point(index in paired, f"{name} has no such row", _format(wanted), found)
        for unwanted in table.lacks:
            fitting = [row for row in rows if has_arguments(row, unwanted)]
            shown = _format_rows(fitting) if fitting else "there is none"
            yield _point(not fitting, f"{name} has such a row", f"no {_format(unwanted)}", shown)
        if table.rows is not None:
            reason = f"{name} has {pluralize(len(rows), 'row')}"
            yield _point(len(rows) == table.rows, reason, pluralize(table.rows, "row"), found)
    if nothing_else:
        others = list(_other_changes(expected, world["changes"]))
        shown = and_more(list(map(_format_change, others)), _MAX_SHOWN) or "nothing else changed"
        reason = pluralize(len(others), "other change") if others else ""
        yield Check("nothing_else_changed", reason, "nothing else changed", shown, not others)


def _other_changes(
    expected: Mapping[str, ExpectedTable], changes: Sequence[Mapping[str, Any]]
) -> Iterator[Mapping[str, Any]]:
    """Those that no entry of `has` or `lacks` names: of a row that was there also each column that changed."""
    for name in dict.fromkeys(change["table"] for change in changes):
        table = expected.get(name, ExpectedTable())
        ours = [change for change in changes if change["table"] == name]
        added = [change for change in ours if change["before"] is None]
        named = [added[index] for index in pair_up([each["after"] for each in added], table.has, has_arguments)]
        for change in ours:
            before, after = change["before"], change["after"]
            if before is None:
                is_named = any(change is each for each in named)
            elif after is None:
                is_named = any(has_arguments(before, entry) for entry in table.lacks)
            else:
                changed = _changed_columns(before, after)
                is_named = any(has_arguments(after, entry) and changed <= entry.keys() for entry in table.has)
            if not is_named:
                yield change


def _point(passed: bool, reason: str, expected: str, actual: str) -> Check:
    return Check("state", "" if passed else reason, expected, actual, passed)


def _format(row: Row) -> str:
    return format_value(dict(row))


def _format_rows(rows: Sequence[Row]) -> str:
    return and_more(list(map(_format, rows)), _MAX_SHOWN) or "(no row)"


def _format_change(change: Mapping[str, Any]) -> str:
    table, before, after = change["table"], change["before"], change["after"]
    if before is None:
        return f"{table} got {_format(after)}"
    if after is None:
        return f"{table} lost {_format(before)}"
    columns = {name: after[name] for name in sorted(_changed_columns(before, after))}
    return f"{table}: {_format(before)} got {_format(columns)}"
