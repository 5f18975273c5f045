"""What a Python file depends on beside itself, as its source shows: modules, files, variables of the environment.

Nothing is run. What the source does not show is told in words, so that nobody takes the rest for all of it.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from guarantee_email_agent.files.text_file import FileSignature, file_signature, read_start

if TYPE_CHECKING:
    import ast

MAX_SOURCE_BYTES: Final = 10_000_000
_MAX_PATH: Final = 250
_MAX_CACHED: Final = 1_000
_OWN_PACKAGE: Final = "guarantee_email_agent"
_NOT_ON_DISK: Final = ("/dev/", "/proc/", "/sys/")
_COMPILED: Final = (".so", ".pyd")
_READS: Final = frozenset({"open", "read_text", "read_bytes"})
_WRITES: Final = frozenset({"write_text", "write_bytes", "touch", "unlink"})
_LOADS: Final = frozenset({"read_csv", "read_json", "read_excel", "read_parquet", "loadtxt", "fromfile", "copyfile"})
_OPENERS: Final = ("io", "os", "codecs")
_UPWARDS: Final = ("parent", "parents", "dirname", "pardir")
_OF_PATHS: Final = frozenset({"__file__", "Path", "PurePath", "pathlib", "os", "str", "open", "io", "codecs", "json"})
_LISTS: Final = frozenset({"glob", "iglob", "rglob", "iterdir", "listdir", "scandir", "walk"})
_IMPORTS: Final = frozenset({"__import__", "import_module"})
_RUNS_CODE: Final = frozenset(
    {"exec", "eval", "run_path", "run_module", "spec_from_file_location", "SourceFileLoader", "CDLL", "dlopen"}
)
_READS_ANY: Final = "reads a file that only a run tells"
_STARTS: Final = frozenset({"system", "popen", "Popen", "check_output", "check_call", "create_subprocess_exec"})
_STARTERS: Final = frozenset({"subprocess", "pty", "multiprocessing"})


class FollowedCode(NamedTuple):
    """files: paths, also of what was looked for in vain. modules: top-level ones that are neither beside the code nor
    of Python itself. variables: names in the environment. unknown: what cannot be told, in words.
    """

    files: tuple[str, ...] = ()
    modules: frozenset[str] = frozenset()
    variables: frozenset[str] = frozenset()
    unknown: tuple[str, ...] = ()

    def __add__(self, other: object) -> FollowedCode:
        assert isinstance(other, FollowedCode)
        return FollowedCode(
            tuple(dict.fromkeys(self.files + other.files)),
            self.modules | other.modules,
            self.variables | other.variables,
            tuple(dict.fromkeys(self.unknown + other.unknown)),
        )


NOTHING: Final = FollowedCode()


class _Source(NamedTuple):
    """What stands in one file. imports: module, level of a relative import, names that may be modules in it.

    texts: that may name files. opened: names of files that are read, each with its line.
    """

    imports: frozenset[tuple[str, int, tuple[str, ...]]] = frozenset()
    texts: frozenset[str] = frozenset()
    opened: tuple[tuple[int, str], ...] = ()
    variables: frozenset[str] = frozenset()
    unknown: tuple[tuple[int, str], ...] = ()


_sources: dict[str, tuple[FileSignature, _Source]] = {}


def follow_code(entries: Iterable[str], places: Sequence[str] = ()) -> FollowedCode:
    """The Python files `entries` with all that they import from their own folder and from `places`, and read there."""
    code = FollowedCode()
    for entry in entries:
        if entry not in code.files:
            code += _follow([entry], (os.path.dirname(entry), *places))
    return code


def follow_text(text: str, places: Sequence[str] = ()) -> FollowedCode:
    """The same of code that is in no file."""
    source = read_source(text)
    files, modules = _imported("", source, places)
    return _follow(files, places) + FollowedCode(
        modules=frozenset(modules), variables=source.variables, unknown=tuple(what for _, what in source.unknown)
    )


def _follow(waiting: list[str], search: Sequence[str]) -> FollowedCode:
    found: dict[str, None] = {}
    modules: set[str] = set()
    variables: set[str] = set()
    unknown: list[str] = []
    entries = tuple(waiting)
    while waiting:
        path = waiting.pop()
        if path in found:
            continue
        found[path] = None
        name = os.path.basename(path)
        if path.endswith(_COMPILED):
            unknown.append(f"{name}: the libraries of a compiled module are not followed")
        if not path.endswith(".py") and path not in entries:
            continue
        source = _source(path)
        variables |= source.variables
        unknown += (f"{name}, line {line}: it {what}" for line, what in source.unknown)
        files, others = _imported(path, source, search)
        waiting += files
        modules |= others
        beside = {text: os.path.normpath(os.path.join(os.path.dirname(path), text)) for text in source.texts}
        waiting += sorted(each for each in beside.values() if not each.startswith(_NOT_ON_DISK) and _is_file(each))
        # What does not lie beside it may lie anywhere.
        lost = [line for line, text in source.opened if not _is_file(beside[text])]
        unknown += (f"{name}, line {line}: it {_READS_ANY}" for line in lost)
    return FollowedCode(tuple(found), frozenset(modules), frozenset(variables), tuple(unknown))


def _imported(path: str, source: _Source, search: Sequence[str]) -> tuple[list[str], set[str]]:
    """The files that it imports, and the top-level modules that are not there."""
    files: list[str] = []
    modules: set[str] = set()
    for module in sorted(source.imports):
        found, others = _resolve(path, module, search)
        files += found
        modules |= others
    return files, modules


def _is_file(path: str) -> bool:
    try:
        return os.path.isfile(path)
    except ValueError:  # a NUL in it
        return False


def _resolve(
    importer: str, module: tuple[str, int, tuple[str, ...]], search: Sequence[str]
) -> tuple[list[str], set[str]]:
    """The files of a module, and its top-level name where it is not there."""
    name, level, members = module
    parts = name.split(".") if name else []
    if level:
        folder = os.path.dirname(importer)
        for _ in range(level - 1):
            folder = os.path.dirname(folder)
        search = (folder,)
    for folder in search:
        files = list(_module_files(folder, parts))
        inner = os.path.join(folder, *parts)
        for member in members:
            files += _module_files(inner, [member])
        if files or (parts and os.path.isdir(os.path.join(folder, parts[0]))):
            return files, set()
    is_known = level or not parts or parts[0] in sys.stdlib_module_names or parts[0] == _OWN_PACKAGE
    return [], set() if is_known else {parts[0]}


def _module_files(folder: str, parts: Sequence[str]) -> Iterator[str]:
    """Of each package on the way to a module, and of itself."""
    for part in parts:
        try:
            names = os.listdir(folder)
        except OSError:
            return
        if f"{part}.py" in names:
            yield os.path.join(folder, f"{part}.py")
        yield from (
            os.path.join(folder, name) for name in names if name.startswith(f"{part}.") and name.endswith(_COMPILED)
        )
        folder = os.path.join(folder, part)
        if part in names and os.path.isfile(init := os.path.join(folder, "__init__.py")):
            yield init


def _source(path: str) -> _Source:
    signature = file_signature(path)
    known = _sources.get(path)
    if known is not None and known[0] == signature:
        return known[1]
    try:
        content = read_start(path, MAX_SOURCE_BYTES + 1)
    except OSError:
        return _Source()  # that it cannot be read is told where it runs
    if len(_sources) >= _MAX_CACHED:
        _sources.clear()
    _sources[path] = signature, read_source(content)
    return _sources[path][1]


def read_source(content: bytes | str) -> _Source:
    """What a source text shows; nothing of one that Python cannot read, since that one cannot run."""
    import ast  # few suites have judges

    if len(content) > MAX_SOURCE_BYTES:
        return _Source(unknown=((1, "too large to be looked at"),))
    try:
        return _Reading(ast.parse(content)).source()
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return _Source()


class _Reading:
    """One source text, gone through once."""

    def __init__(self, tree: ast.AST) -> None:
        import ast

        self._ast = ast
        self._nodes = list(ast.walk(tree))
        self._values: dict[str, list[ast.AST]] = {}
        self._variables: set[str] = set()
        self._imports: set[tuple[str, int, tuple[str, ...]]] = set()
        self._unknown: list[tuple[int, str]] = []
        self._opened: list[tuple[int, str]] = []
        self._written: set[str] = set()
        self._seen: set[int] = set()  # mentions of the environment that are understood

    def source(self) -> _Source:
        ast = self._ast
        for node in self._nodes:
            if isinstance(node, ast.Assign | ast.AnnAssign | ast.NamedExpr) and node.value is not None:
                for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                    if isinstance(target, ast.Name):
                        self._values.setdefault(target.id, []).append(node.value)
            elif isinstance(node, ast.arg):  # of which only a run tells what they are
                self._values.setdefault(node.arg, []).append(node)
            elif isinstance(node, ast.For | ast.AsyncFor | ast.comprehension | ast.AugAssign):
                for target in ast.walk(node.target):
                    if isinstance(target, ast.Name):
                        self._values.setdefault(target.id, []).append(node)
        for node in self._nodes:
            if isinstance(node, ast.Import):
                self._imports.update((alias.name, 0, ()) for alias in node.names)
            elif isinstance(node, ast.ImportFrom):
                self._imports.add((node.module or "", node.level, tuple(alias.name for alias in node.names)))
            elif isinstance(node, ast.Call):
                self._read_call(node)
            elif isinstance(node, ast.Subscript) and self._is_environ(node.value):
                self._read_variable(node.value, node.slice)
            elif isinstance(node, ast.Compare) and self._is_environ(node.comparators[0]):
                self._read_variable(node.comparators[0], node.left)
        # What is handed to a function that nobody here knows is mostly read; a name without an ending is mostly none.
        texts = {text for node in self._nodes for text in self._text(node) if os.path.splitext(text)[1]} - self._written
        for node in self._nodes:
            if self._is_environ(node) and id(node) not in self._seen:
                self._add_unknown(node, "reads the environment as a whole")
            elif isinstance(node, ast.Attribute) and node.attr == "path" and self._name(node.value) == "sys":
                self._add_unknown(node, "looks at where modules are imported from, which it can change")
        opened = tuple(sorted(set(self._opened)))
        names = frozenset(texts.union(text for _, text in opened))
        unknown = tuple(sorted(set(self._unknown)))
        return _Source(frozenset(self._imports), names, opened, frozenset(self._variables), unknown)

    def _read_call(self, call: ast.Call) -> None:
        ast = self._ast
        name = self._name(call.func)
        owner = call.func.value if isinstance(call.func, ast.Attribute) else None
        if owner is not None and self._is_environ(owner):
            self._read_variable(owner, call.args[0] if call.args else owner)
        elif name == "getenv":
            self._read_variable(call, call.args[0] if call.args else call)
        elif name in _IMPORTS:
            modules = list(self._text(call.args[0])) if call.args else []
            self._imports.update((module, 0, ()) for module in modules if not module.startswith("."))
            if not modules or modules[0].startswith("."):
                self._add_unknown(call, "imports what only a run tells")
        elif (name in _RUNS_CODE and (owner is None or name not in ("exec", "eval"))) or self._name(owner) == "ctypes":
            self._add_unknown(call, "runs code that only a run tells")
        elif (
            name in _STARTS
            or self._name(owner) in _STARTERS
            or (self._name(owner) == "os" and name.startswith(("exec", "spawn")))
        ):
            self._add_unknown(call, "starts another program")
        elif name in _LISTS:
            self._add_unknown(call, "reads whatever lies in a folder")
        elif name in _WRITES or (name in _READS and self._writes(call, owner)):
            self._written.update(self._texts([*([] if owner is None else [owner]), *call.args[:1]], 0))
        elif name in _READS | _LOADS:
            is_method = owner is not None and name in _READS and self._name(owner) not in _OPENERS
            path = [owner] if is_method and owner is not None else call.args[:1]
            texts = list(self._texts(path, 0)) if all(map(self._is_told, path)) else []
            if texts:
                self._opened.append((call.lineno, os.path.join(*texts)))
            else:
                self._add_unknown(call, _READS_ANY)

    def _writes(self, call: ast.Call, owner: ast.AST | None) -> bool:
        modes = [keyword.value for keyword in call.keywords if keyword.arg == "mode"]
        at = 1 if owner is None or self._name(owner) in _OPENERS else 0
        modes += call.args[at : at + 1]
        return any(text[:1] in ("w", "a", "x") and len(text) <= 3 for mode in modes for text in self._text(mode))

    def _is_told(self, path: ast.AST) -> bool:
        """Whether an expression names a file beside the source, by names that stand for one value each."""
        nodes = list(self._expanded(path, 0))
        is_beside = sum(self._name(node) in _UPWARDS for node in nodes) <= 1
        return is_beside and not any(isinstance(node, self._ast.arg) for node in nodes)

    def _expanded(self, path: ast.AST, depth: int) -> Iterator[ast.AST]:
        """What an expression consists of, with what its names stand for; an `arg` for what nobody can tell."""
        for node in self._ast.walk(path):
            yield node
            if isinstance(node, self._ast.Name) and node.id not in _OF_PATHS:
                values = self._values.get(node.id, ())
                if len(values) == 1 and depth < 3:
                    yield from self._expanded(values[0], depth + 1)
                else:
                    yield self._ast.arg(node.id)

    def _texts(self, nodes: Iterable[ast.AST], depth: int) -> Iterator[str]:
        """The texts in expressions, also in those that their names stand for."""
        ast = self._ast
        for node in nodes:
            for each in ast.walk(node):
                yield from self._text(each)
                if isinstance(each, ast.Name) and depth < 3:
                    yield from self._texts(self._values.get(each.id, ()), depth + 1)

    def _text(self, node: ast.AST) -> Iterator[str]:
        """A constant that can be a path."""
        if isinstance(node, self._ast.Constant) and isinstance(node.value, str):
            text = node.value
            if 0 < len(text) <= _MAX_PATH and text.strip(".") and not {"\n", "\0"} & set(text):
                yield text

    def _is_environ(self, node: ast.AST) -> bool:
        return isinstance(node, self._ast.Attribute | self._ast.Name) and self._name(node) in ("environ", "environb")

    def _read_variable(self, environ: ast.AST, name: ast.AST) -> None:
        found = list(self._texts([name], 2))
        self._seen.add(id(environ))
        self._variables.update(found)
        if not found:
            self._add_unknown(environ, "reads variables of the environment that only a run tells")

    def _name(self, node: ast.AST | None) -> str:
        ast = self._ast
        return node.attr if isinstance(node, ast.Attribute) else node.id if isinstance(node, ast.Name) else ""

    def _add_unknown(self, node: ast.AST, what: str) -> None:
        self._unknown.append((getattr(node, "lineno", 1), what))
