"""What a scenario file says wrongly of its tables: of `input.world`, of the tools that change it, and of its end."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from guarantee_email_agent.eval.call_checks import find_argument_problems, find_json_problems
from guarantee_email_agent.eval.checks import ExpectedTable
from guarantee_email_agent.eval.models import EvalExpectedOutput, EvalTestCase
from guarantee_email_agent.eval.tool_mocks import Effect, read_tool_mocks
from guarantee_email_agent.eval.world import Row, Tables
from guarantee_email_agent.files.problems import KeyPath, Problem, listed, suggestion


def find_world_problems(case: EvalTestCase) -> Iterator[Problem]:
    tables, mocks = case.input.world, case.input.mock_responses
    yield from find_json_problems({name: list(rows) for name, rows in tables.items()}, ("input", "world"))
    for server, tools in read_tool_mocks(mocks).items():
        declared = case.servers[server].by_name if server in case.servers else {}
        for name, entries in tools.items():
            arguments = declared[name].arguments if name in declared else None
            for index, entry in enumerate(entries):
                path: KeyPath = ("input", "mock_responses", server, name)
                path = (*path, index) if isinstance(mocks[server][name], list) else path
                if (effect := entry.effect) is not None:
                    yield from _find_effect_problems(effect, case, arguments, path)
                for place, each in enumerate(entry.in_turn):
                    if (effect := each.effect) is not None:
                        yield from _find_effect_problems(effect, case, arguments, (*path, "answers", place))
    yield from _find_state_problems(case, case.expected_output, ("expected_output",))
    for number, turn in enumerate(case.turns):
        yield from _find_state_problems(case, turn.expected_output, ("turns", number, "expected_output"))


def _find_effect_problems(
    effect: Effect, case: EvalTestCase, arguments: Sequence[str] | None, path: KeyPath
) -> Iterator[Problem]:
    """arguments: that the tool takes; None where it may take any."""
    if effect.table not in case.input.world:
        yield Problem((*path, effect.kind), "value", _no_table(effect.table, case.input.world))
        return
    yield from _find_unknown_columns(effect.where, case, effect.table, (*path, "where"))
    for key, said in (("where", effect.where), ("values", effect.values or {})):
        yield from find_argument_problems(said, (*path, key))
        for column, value in said.items():
            name = value[1:] if isinstance(value, str) and value.startswith("$") and value[1:2] != "$" else None
            if name is not None and arguments is not None and name not in arguments:
                hint = suggestion(name, arguments) or f"; it takes {', '.join(arguments) or 'none'}"
                yield Problem((*path, key, column), "value", f"names no argument of the tool{hint}")
    if effect.kind == "updates" and not effect.values:
        yield Problem((*path, "updates"), "value", "changes nothing; write values: {column: value}")
    elif effect.values is not None and effect.kind in ("reads", "deletes"):
        yield Problem((*path, "values"), "value", f"says nothing beside {effect.kind}; remove it")
    if effect.kind == "inserts" and (effect.where or effect.one):
        wrong = "says nothing beside inserts, which adds one row; remove it"
        yield Problem((*path, "where" if effect.where else "one"), "value", wrong)


def _find_state_problems(case: EvalTestCase, expected: EvalExpectedOutput, place: KeyPath) -> Iterator[Problem]:
    tables = case.input.world
    if expected.nothing_else_changed and not tables:
        yield Problem((*place, "nothing_else_changed"), "value", "needs input.world, whose tables might change")
    for name, table in expected.state.items():
        path = (*place, "state", name)
        if name not in tables:
            yield Problem(path, "value", _no_table(name, tables))
        elif table == ExpectedTable():
            yield Problem(path, "value", "expects nothing; name has, lacks or rows, or remove it")
        for key in ("has", "lacks"):
            for index, row in enumerate(getattr(table, key)):
                yield from find_argument_problems(row, (*path, key, index))
                yield from _find_unknown_columns(row, case, name, (*path, key, index))


def _find_unknown_columns(named: Row, case: EvalTestCase, table: str, path: KeyPath) -> Iterator[Problem]:
    """Which would fit no row, so that every table lacks it."""
    if (columns := _columns(case, table)) is not None:
        for column in sorted(named.keys() - columns.keys()):
            hint = suggestion(column, columns) or f"; it has {', '.join(columns) or 'no rows'}"
            yield Problem((*path, column), "value", f"is no column of {table}{hint}")


def _columns(case: EvalTestCase, table: str) -> dict[str, None] | None:
    """Those that rows of a table may have; None where a tool may add any."""
    columns = dict.fromkeys(column for row in case.input.world.get(table, ()) for column in row)
    for tools in read_tool_mocks(case.input.mock_responses).values():
        for each in (each for entries in tools.values() for entry in entries for each in (entry, *entry.in_turn)):
            if (effect := each.effect) is not None and effect.table == table:
                if effect.kind == "inserts" and effect.values is None:
                    return None
                columns |= dict.fromkeys(effect.values or ())
    return columns


def _no_table(name: str, tables: Tables) -> str:
    return f"{name!r} is no table of input.world{listed(name, tables)}"
