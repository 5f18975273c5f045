"""Faults of code: a condition the other way round, another boundary or constant, a dropped call, entry or result."""

from __future__ import annotations

import ast
from collections.abc import Iterator

from guarantee_email_agent.eval.mutation.instruction_faults import Fault, fault_in

FUNCTIONS_NOT_ON_THE_WAY = {
    "numbers of configured look-ups": ("_numbers_of_format",),
    "what only `answer` tells": ("explain_dropped", "_reasons", "_behind", "_not_taken"),
    "checks of the files": ("_problems_by_file", "untranslatable"),
    "what only a language model picks": ("_speaks_of_serial_number",),
    "ports, which the mocks take the place of": ("list_unprocessed", "is_waiting", "find_draft", "count_by_outcome"),
}
# To swap the arguments of these changes nothing.
_SYMMETRIC = ("max", "min")


def python_faults(name: str, text: str) -> Iterator[Fault]:
    starts = [0]
    for line in text.splitlines(keepends=True):
        starts.append(starts[-1] + len(line.encode()))
    source = text.encode()

    def place(node: ast.AST) -> tuple[int, int]:
        begin = starts[node.lineno - 1] + node.col_offset  # type: ignore[attr-defined]
        end = starts[node.end_lineno - 1] + node.end_col_offset  # type: ignore[attr-defined]
        return len(source[:begin].decode()), len(source[:end].decode())

    def planted(operator: str, node: ast.AST, replacement: str) -> Fault:
        return fault_in(name, text, operator, *place(node), replacement)

    def code(node: ast.AST) -> str:
        begin, end = place(node)
        return text[begin:end]

    for node in _behaviour(ast.parse(text)):
        if isinstance(node, (ast.If, ast.While, ast.IfExp)):
            yield planted("negate a condition", node.test, f"(not ({code(node.test)}))")
        elif isinstance(node, ast.comprehension):
            for test in node.ifs:
                yield planted("negate a condition", test, f"(not ({code(test)}))")
        elif isinstance(node, ast.Compare) and len(node.ops) == 1:
            other = _BOUNDARIES.get(type(node.ops[0]))
            if other:
                yield planted("move a boundary", node, f"({code(node.left)}) {other} ({code(node.comparators[0])})")
        elif isinstance(node, ast.BoolOp):
            other = " or " if isinstance(node.op, ast.And) else " and "
            yield planted("and for or", node, "(" + other.join(f"({code(value)})" for value in node.values) + ")")
            yield planted("drop a condition", node, f"({code(node.values[0])})")
        elif isinstance(node, ast.Constant) and type(node.value) is int:
            # One more or less makes no difference to a large limit; a zero that is lost does.
            yield planted("change a constant", node, str(node.value + 1 if node.value < _LARGE else node.value // 10))
        elif isinstance(node, ast.Constant) and type(node.value) is bool:
            yield planted("change a constant", node, str(not node.value))
        elif isinstance(node, ast.Return) and node.value is not None and code(node.value) not in _LIKE_NONE:
            yield planted("return early", node, "return None")
        elif isinstance(node, ast.Expr) and isinstance(node.value, (ast.Call, ast.Await)):
            yield planted("drop a call", node, "pass")
        elif (
            isinstance(node, ast.Call)
            and len(node.args) > 1
            and ast.unparse(node.func) not in _SYMMETRIC
            and not any(isinstance(argument, ast.Starred) for argument in node.args[:2])
        ):
            first, second = node.args[:2]
            begin, end = place(first)[0], place(second)[1]
            between = text[place(first)[1] : place(second)[0]]
            yield fault_in(name, text, "swap arguments", begin, end, code(second) + between + code(first))
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)) and len(node.elts) > 2:
            last = len(node.elts) // 2
            yield fault_in(name, text, "drop an entry", place(node.elts[last - 1])[1], place(node.elts[last])[1], "")
        elif isinstance(node, ast.Dict) and len(node.values) > 1:
            yield fault_in(name, text, "drop an entry", place(node.values[-2])[1], place(node.values[-1])[1], "")


_LARGE = 50
_BOUNDARIES = {
    ast.Lt: "<=",
    ast.LtE: "<",
    ast.Gt: ">=",
    ast.GtE: ">",
    ast.Eq: "!=",
    ast.NotEq: "==",
    ast.In: "not in",
    ast.NotIn: "in",
}


# An early None is no other result where the caller only asks whether there is one.
_LIKE_NONE = ("None", "False", '""', "()", "{}", "[]")


def _behaviour(node: ast.AST) -> Iterator[ast.AST]:
    """All nodes that decide something: no types, no texts for people, no logging."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Raise, ast.AnnAssign)) and not (isinstance(child, ast.AnnAssign) and child.value):
            continue
        if _only_tells(child) or (isinstance(child, ast.If) and not child.orelse and all(map(_only_tells, child.body))):
            continue
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)) and _is_beside_the_way(child.name):
            continue
        if isinstance(child, ast.Subscript) and _is_type(child):
            continue
        if isinstance(child, ast.If) and "TYPE_CHECKING" in ast.unparse(child.test):
            continue
        if isinstance(child, ast.keyword) and child.arg in ("metadata", "frozen", "slots", "kw_only", "exc_info"):
            continue
        yield child
        if isinstance(child, ast.AnnAssign):
            if child.value:
                yield child.value
                yield from _behaviour(child.value)
            continue
        if isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from _behaviour(ast.Module(child.body, []))  # not its annotations and defaults
            continue
        yield from _behaviour(child)


def _only_tells(node: ast.AST) -> bool:
    """Whether a statement logs, or words a problem of the mail for the report of a person."""
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "problem"
    if not isinstance(node, ast.Expr) or not isinstance(node.value, ast.Call):
        return False
    name, arguments = ast.unparse(node.value.func), node.value.args
    is_worded = bool(arguments) and (
        isinstance(arguments[0], (ast.Constant, ast.JoinedStr)) or ast.unparse(arguments[0]) == "problem"
    )
    return "logger" in name or (name.endswith("problems.append") and is_worded)


def _is_beside_the_way(function: str) -> bool:
    """Whether a function words an error, or serves what no scenario does."""
    if function in ("__str__", "__repr__") or "error" in function:
        return True
    return any(function in names for names in FUNCTIONS_NOT_ON_THE_WAY.values())


def _is_type(node: ast.Subscript) -> bool:
    name = ast.unparse(node.value)
    return name in ("Literal", "Final", "Callable", "Mapping", "Sequence", "Iterator", "tuple", "list", "dict", "cast")
