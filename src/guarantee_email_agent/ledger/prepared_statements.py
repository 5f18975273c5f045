"""Statements that SQLAlchemy builds, and that run without it: compiled once, executed on the driver's own connection.

Through SQLAlchemy a statement takes several times as long as SQLite takes for it, and each mail takes some fifteen.
What is kept of it is the text of each, and what its types make of values; both drivers keep a text that comes again
prepared.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from types import MappingProxyType
from typing import Any, Final, TypeAlias

from sqlalchemy import Boolean, Connection, Delete, Insert, Select, Update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.engine import Dialect

_Statement: TypeAlias = Select[*tuple[Any, ...]] | Insert | Update | Delete
Statement: TypeAlias = _Statement | Mapping[str, _Statement]
"""One for all databases, or by the name of the dialect where they word it differently."""

Row: TypeAlias = Any
"""A named tuple of a statement's columns: texts, numbers, truth values and None."""

_NOTHING: Final[Mapping[str, Any]] = MappingProxyType({})
_MAX_PREPARED: Final = 256  # several times as many as there are

# With parameters by name: both drivers take them as a dictionary.
_DIALECTS: Final[dict[str, Dialect]] = {
    "sqlite": sqlite.dialect(paramstyle="named"),
    "postgresql": postgresql.psycopg.dialect(),  # type: ignore[no-untyped-call]  # SQLAlchemy's dialects have no types
}


class PreparedStatement:
    """A statement as one kind of database reads it. sql: its text."""

    __slots__ = ("_converters", "_fixed", "_make_row", "_truths", "sql")

    def __init__(self, statement: _Statement, dialect: Dialect, names: tuple[str, ...]) -> None:
        """names: of the parameters that each execution brings. Raises TypeError where they are not all there are."""
        compiled = statement.compile(dialect=dialect, column_keys=list(names))
        binds = {name: bind for bind, name in compiled.bind_names.items()}
        missing = {name for name, bind in binds.items() if bind.required} - set(names)
        if missing or compiled.post_compile_params:
            raise TypeError(f"The statement lacks {', '.join(sorted(missing)) or 'a list of fixed length'}: {compiled}")
        self.sql = str(compiled)
        self._converters: list[tuple[str, Callable[[Any], Any]]] = []
        for name, bind in binds.items():
            if convert := bind.type.dialect_impl(dialect).bind_processor(dialect):  # such as a list that goes as JSON
                self._converters.append((name, convert))
        self._fixed = {name: bind.effective_value for name, bind in binds.items() if name not in names}
        columns = [str(name) for name in statement.exported_columns.keys()]  # noqa: SIM118 - no mapping
        # Of columns that are known only here, so neither typed nor a literal.
        row_type: Any = namedtuple("Row", columns, rename=True)  # type: ignore[misc]  # noqa: PYI024
        self._truths = [at for at, column in enumerate(statement.exported_columns) if isinstance(column.type, Boolean)]
        self._make_row: Callable[[Sequence[Any]], Row] = row_type._make

    def row(self, values: tuple[Any, ...]) -> Row:
        """From what the driver gives."""
        if not self._truths:
            return self._make_row(values)
        converted = list(values)
        for at in self._truths:  # SQLite has numbers for them
            converted[at] = None if values[at] is None else bool(values[at])
        return self._make_row(converted)

    def parameters(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """As the driver takes them."""
        parameters = {**self._fixed, **values}
        for name, convert in self._converters:
            parameters[name] = convert(parameters[name])
        return parameters


@lru_cache(_MAX_PREPARED)
def prepare(statement: _Statement, dialect: str, names: tuple[str, ...]) -> PreparedStatement:
    """Compiled at the first call, and remembered."""
    return PreparedStatement(statement, _DIALECTS[dialect], names)


class PreparedConnection:
    """A connection that executes prepared statements: constants of a module, since each is remembered.

    Every method takes the values of the statement's open parameters by name, and of further columns that it is to
    write, and raises what the driver raises. sqlalchemy: the same connection, for the schema and for statements that
    are built as they are needed. driver: the same, as sqlite3 or psycopg have it.
    """

    __slots__ = ("_dialect", "driver", "sqlalchemy")

    def __init__(self, connection: Connection) -> None:
        self.sqlalchemy = connection
        self.driver: Any = connection.connection.driver_connection
        self._dialect = connection.dialect.name

    def execute(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> int:
        """How many rows it wrote."""
        prepared = self._prepare(statement, values)
        return int(self.driver.execute(prepared.sql, prepared.parameters(values)).rowcount)

    def rows(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> list[Row]:
        """Every row that it returns."""
        prepared = self._prepare(statement, values)
        return [prepared.row(row) for row in self.driver.execute(prepared.sql, prepared.parameters(values)).fetchall()]

    def row(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> Row | None:
        """The only row; None where there is none."""
        rows = self.rows(statement, values)
        return rows[0] if rows else None

    def one(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> Row:
        """The only row, where there always is one."""
        (row,) = self.rows(statement, values)
        return row

    def value(self, statement: Statement, values: Mapping[str, Any] = _NOTHING) -> Any:
        """The first column of the only row; None where there is none."""
        row = self.row(statement, values)
        return None if row is None else row[0]

    def _prepare(self, statement: Statement, values: Mapping[str, Any]) -> PreparedStatement:
        own = statement[self._dialect] if isinstance(statement, Mapping) else statement
        return prepare(own, self._dialect, tuple(values))
