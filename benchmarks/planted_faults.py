"""What the scenario suite notices: faults are planted one at a time in a copy of the project, and the suite runs on it.

    uv run --quiet python benchmarks/planted_faults.py [--only FILE …] [--count 212] [--results FILE] [--tests PATH …]

Faults of code go into the modules that a scenario's mail passes through: a condition the other way round, another
boundary or constant, a dropped call, entry or result, swapped arguments. Faults of instruction files are those of a
hasty edit: a sentence, condition or trigger gone, a ticket field or status changed, placeholders swapped, a firm phrase
softened. The sample is the same every time. A fault counts as noticed where a scenario fails, or where the suite does
not run any more; the first failing scenario ends a run. `--results` keeps each outcome as a JSON line, so that an
interrupted run goes on where it was; `--again` tries what survived once more. `equivalent_faults.yaml` names the faults
that nothing can show, with the reason. The exit code is 1 where less than `--floor` percent are noticed.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import hashlib
import itertools
import json
import os
import py_compile
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path

from guarantee_email_agent.files.yaml import load_documents

ROOT = Path(__file__).resolve().parents[1]
PACKAGE = Path("src/guarantee_email_agent")
EQUIVALENT = Path(__file__).with_name("equivalent_faults.yaml")
DEADLINE_S = 120

PIPELINE = (
    "email/*.py",
    "email/parsing/*.py",
    "instructions/*.py",
    "interpreter/*.py",
    "integrations/ports.py",
    "integrations/written_date.py",
)
NOT_ON_THE_WAY = {
    "email/grounding.py": "marks drafts that a person sends; scenarios judge what leaves unattended",
    "email/claim_words.py": "the same",
    "email/harmless_words.py": "the same",
    "email/parsing/mime.py": "takes apart raw bytes; a scenario's mail is a mapping",
    "email/parsing/charsets.py": "the same",
    "email/parsing/flowed.py": "the same",
    "instructions/reply_checks.py": "refuses bad instruction files; the suite's are good",
    "instructions/claims.py": "the same",
    "instructions/fact_checks.py": "the same",
    "instructions/phishing.py": "the same",
    "instructions/required_rules.py": "the same",
    "instructions/trigger_checks.py": "the same",
    "instructions/safe_regex.py": "the same",
    "instructions/instruction_files.py": "the same",
    "instructions/reply_languages.py": "the same",
    "interpreter/look_up_numbers.py": "reads the numbers of configured look-ups; the suite's instructions have none",
}

FUNCTIONS_NOT_ON_THE_WAY = {
    "raw bytes": (
        "_from_bytes",
        "_parse_received_date",
        "parse_header_fields",
        "parse_parameters",
        "_join_continuations",
    ),
    "drafts for a person": ("write_freely", "as_draft", "_list_objections", "_draft", "drafts"),
    "numbers of configured look-ups": ("_numbers_of_format",),
    "what only a language model picks": ("_speaks_of_serial_number",),
    "ports, which the mocks take the place of": ("list_unprocessed", "is_waiting", "find_draft", "count_by_outcome"),
}
# To swap the arguments of these changes nothing.
_SYMMETRIC = ("max", "min")

# Runs the suite in a process of its own, without the terminal, and says which scenario failed first.
DRIVER = """
import sys
from pathlib import Path
from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.eval.loader import EvalLoader
from guarantee_email_agent.eval.runner import EvalRunner

def finish(coroutine):
    try:
        coroutine.send(None)
    except StopIteration as done:
        return done.value
    raise RuntimeError("a scenario waited for something")

runner = EvalRunner(load_config())
entries = EvalLoader().discover_test_cases(Path("evals/scenarios")).entries
for number in range(7):  # every seventh at a time: neighbours resemble each other
    for case in entries[number::7]:
        if not hasattr(case, "input") or not finish(runner.run_test_case(case)).passed:
            sys.exit("failed: " + case.scenario_id)
print("survived")
"""


@dataclass(frozen=True, slots=True)
class Fault:
    """One place of a file with other text in it. `start` and `end` are offsets in characters."""

    file: str
    operator: str
    start: int
    end: int
    replacement: str
    line: int
    before: str
    after: str
    occurrence: int = 0

    @property
    def key(self) -> str:
        """The same as long as the line is, wherever it moves."""
        parts = (self.file, self.operator, self.before, self.after, str(self.occurrence))
        return hashlib.sha256("\0".join(parts).encode()).hexdigest()[:16]


@dataclass(frozen=True, slots=True)
class Outcome:
    key: str
    file: str
    operator: str
    line: int
    before: str
    after: str
    noticed_by: str | None


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parse(arguments)
    equivalent = equivalent_faults()
    faults = sample([fault for fault in all_faults(ROOT) if _is_asked_for(fault, options.only)], options.count)
    known = _known(options.results, again=options.again)
    outcomes = []
    with tempfile.TemporaryDirectory() as folder:
        copy = _copy_project(Path(folder))
        if (fails := _first_failure(copy)) is not None:
            print(f"The suite fails without any fault: {fails}. Mend it first.", file=sys.stderr)
            return 2
        for number, fault in enumerate(faults, 1):
            if identity(fault) in equivalent:
                continue
            outcome = known.get(fault.key) or _try(fault, copy, options.tests)
            if fault.key not in known and options.results:
                with options.results.open("a", encoding="utf-8") as results:
                    results.write(json.dumps(asdict(outcome), ensure_ascii=False) + "\n")
            outcomes.append(outcome)
            if sys.stderr.isatty():
                print(f"\r{number}/{len(faults)}", end="", file=sys.stderr, flush=True)
    return _report(outcomes, [fault for fault in faults if identity(fault) in equivalent], options.floor)


def all_faults(root: Path) -> list[Fault]:
    """Every fault that can be planted, in the order of files and places."""
    faults: list[Fault] = []
    for pattern in PIPELINE:
        for path in sorted((root / PACKAGE).glob(pattern)):
            if path.relative_to(root / PACKAGE).as_posix() not in NOT_ON_THE_WAY:
                name, text = path.relative_to(root).as_posix(), path.read_text(encoding="utf-8")
                faults += python_faults(name, text)
    for path in sorted((root / "instructions").rglob("*.md")):
        faults += instruction_faults(path.relative_to(root).as_posix(), path.read_text(encoding="utf-8"))
    seen: Counter[str] = Counter()
    numbered = []
    for fault in dict.fromkeys(faults):
        numbered.append(replace(fault, occurrence=seen[fault.key]))
        seen[fault.key] += 1
    return numbered


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
        return _fault(name, text, operator, *place(node), replacement)

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
            yield planted("change a constant", node, str(node.value + 1))
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
            yield _fault(name, text, "swap arguments", begin, end, code(second) + between + code(first))
        elif isinstance(node, (ast.Tuple, ast.List, ast.Set)) and len(node.elts) > 2:
            last = len(node.elts) // 2
            yield _fault(name, text, "drop an entry", place(node.elts[last - 1])[1], place(node.elts[last])[1], "")
        elif isinstance(node, ast.Dict) and len(node.values) > 1:
            yield _fault(name, text, "drop an entry", place(node.values[-2])[1], place(node.values[-1])[1], "")


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
        if isinstance(child, ast.Expr) and isinstance(child.value, ast.Call) and _only_tells(child.value):
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


def _only_tells(call: ast.Call) -> bool:
    """Whether a call logs, or words a problem of the mail for the report of a person."""
    name = ast.unparse(call.func)
    is_worded = bool(call.args) and isinstance(call.args[0], (ast.Constant, ast.JoinedStr))
    return "logger" in name or (name == "problems.append" and is_worded)


def _is_beside_the_way(function: str) -> bool:
    """Whether a function words an error, or serves what no scenario does."""
    if function in ("__str__", "__repr__") or "error" in function:
        return True
    return any(function in names for names in FUNCTIONS_NOT_ON_THE_WAY.values())


def _is_type(node: ast.Subscript) -> bool:
    name = ast.unparse(node.value)
    return name in ("Literal", "Final", "Callable", "Mapping", "Sequence", "Iterator", "tuple", "list", "dict", "cast")


_REPLY = re.compile(r"<reply\b[^>]*>.*?</reply>", re.DOTALL)
_SENTENCE = re.compile(r"(?<=[\n>.!?])\s*(?P<text>[^<>{}\n][^<>]*?[.!?])(?=\s|<)", re.DOTALL)
_TRIGGER_VALUE = re.compile(
    r"(?<=intent: )\w+|(?<=topic: )[\w-]+|(?<=serial_numbers: )\w+|(?<=warranty_status: \[)\w+"
    r"|(?<=automatic: )\w+|(?<=hand_over: )\w+"
)
_OTHER_VALUE = {
    "warranty": "unclear",
    "other": "warranty",
    "unclear": "other",
    "none": "several",
    "one": "none",
    "several": "none",
    "valid": "expired",
    "expired": "other",
    "withheld": "other",
    "true": "false",
}
_SOFTER = (
    (r"\bis valid\b", "should be valid"),
    (r"\bis not\b", "may not be"),
    (r"\bcannot\b", "can hardly"),
    (r"\bneed just one thing\b", "would like something"),
    (r"\bserial number\b", "number"),
    (r"\bfully covered\b", "covered"),
    (r"\bhas expired\b", "may have expired"),
    (r"\bconfirms neither\b", "may not confirm"),
    (r"\bgeneral support\b", "support"),
    (r"\bclarify\b", "repeat"),
)


def instruction_faults(name: str, text: str) -> Iterator[Fault]:
    """Only what code reads: the prose for a language model, and the word lists, have checks of their own."""
    front = text.index("\n---", 3) if text.startswith("---") else 0
    for found in re.finditer(r"^ +- \{.*\}\n", text[:front], re.MULTILINE):
        yield _fault(name, text, "drop a trigger", found.start(), found.end(), "")
    for found in re.finditer(_TRIGGER_VALUE, text[:front]):
        if found[0] in _OTHER_VALUE:
            yield _fault(name, text, "change a trigger", found.start(), found.end(), _OTHER_VALUE[found[0]])
    for found in re.finditer(r"^  (?P<field>\w+): (?P<value>\w+)$", text[:front], re.MULTILINE):
        yield _fault(name, text, "change a ticket field", found.start("value"), found.end("value"), "other_value")
        yield _fault(name, text, "drop a ticket field", found.start(), found.end() + 1, "")
    for found in re.finditer(r"^asks_for: .*\n", text[:front], re.MULTILINE):
        yield _fault(name, text, "drop a key", found.start(), found.end(), "")
    for reply in _REPLY.finditer(text):
        yield from _reply_faults(name, text, reply.start(), reply.end())
    for found in re.finditer(r'(?<=<reply) \w+="\w+"', text):
        yield _fault(name, text, "remove a condition", found.start(), found.end(), "")


def _reply_faults(name: str, text: str, begin: int, end: int) -> Iterator[Fault]:
    for found in _SENTENCE.finditer(text, begin, end):
        if '="' not in found["text"] and len(found["text"]) > 8:
            yield _fault(name, text, "drop a sentence", found.start("text"), found.end("text"), "")
    for found in re.finditer(r"<if [^>]*>(.*?)</if>", text[begin:end], re.DOTALL):
        yield _fault(name, text, "remove a condition", begin + found.start(), begin + found.end(), found[1])
        yield _fault(name, text, "drop a sentence", begin + found.start(), begin + found.end(), "")
    for found in re.finditer(r"<optional [^>]*>.*?</optional>\n?", text[begin:end], re.DOTALL):
        yield _fault(name, text, "drop a sentence", begin + found.start(), begin + found.end(), "")
    for found in re.finditer(r'<sentence id="(?!thanks")[^>]*>.*?</sentence>\n?', text[begin:end], re.DOTALL):
        yield _fault(name, text, "drop a sentence", begin + found.start(), begin + found.end(), "")
    placeholders = list(re.finditer(r"\{\w+\}", text[begin:end]))
    for one, other in itertools.pairwise(placeholders):
        swapped = other[0] + text[begin + one.end() : begin + other.start()] + one[0]
        yield _fault(name, text, "swap placeholders", begin + one.start(), begin + other.end(), swapped)
    for firm, soft in _SOFTER:
        if (match := re.search(firm, text[begin:end])) and not _inside_tag(text, begin + match.start()):
            yield _fault(name, text, "soften a phrase", begin + match.start(), begin + match.end(), soft)


def _inside_tag(text: str, position: int) -> bool:
    return text.rfind("<", 0, position) > text.rfind(">", 0, position)


def _fault(name: str, text: str, operator: str, start: int, end: int, replacement: str) -> Fault:
    first, last = text.rfind("\n", 0, start) + 1, text.find("\n", end)
    last = len(text) if last < 0 else last
    before, after = text[first:last], text[first:start] + replacement + text[end:last]
    line = text.count("\n", 0, start) + 1
    return Fault(name, operator, start, end, replacement, line, before.strip(), after.strip())


def sample(faults: list[Fault], count: int) -> list[Fault]:
    """All faults of instruction files, and `count` of the code, those whose hash is smallest: always the same."""
    edited = [fault for fault in faults if fault.file.endswith(".md")]
    code = sorted((fault for fault in faults if fault.file.endswith(".py")), key=lambda fault: fault.key)
    chosen = [*edited, *code[:count]]
    return sorted(chosen, key=lambda fault: (fault.file, fault.start, fault.key))


def _is_asked_for(fault: Fault, only: Sequence[str]) -> bool:
    return not only or any(part in fault.file for part in only)


def _copy_project(folder: Path) -> Path:
    for name in ("src", "instructions", "evals", "tests", "tasks", "docs"):
        shutil.copytree(ROOT / name, folder / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in ("config.yaml", "pyproject.toml", "README.md"):
        shutil.copy(ROOT / name, folder / name)
    # By content: two faults within one second, of one size, would pass for one another by time.
    compileall.compile_dir(folder / "src", quiet=2, invalidation_mode=py_compile.PycInvalidationMode.CHECKED_HASH)
    return folder


def _try(fault: Fault, copy: Path, tests: Sequence[str]) -> Outcome:
    path = copy / fault.file
    good = path.read_text(encoding="utf-8")
    path.write_text(good[: fault.start] + fault.replacement + good[fault.end :], encoding="utf-8")
    try:
        noticed = _first_failure(copy)
        if noticed is None and tests:
            command = [sys.executable, "-m", "pytest", "-q", "-x", "-n", "0", "-p", "no:cacheprovider", *tests]
            noticed = "tests" if _run(command, copy).returncode else None
    except subprocess.TimeoutExpired:
        noticed = "deadline"
    finally:
        path.write_text(good, encoding="utf-8")
    return Outcome(fault.key, fault.file, fault.operator, fault.line, fault.before, fault.after, noticed)


def _first_failure(copy: Path) -> str | None:
    done = _run([sys.executable, "-c", DRIVER], copy)
    if done.returncode == 0 and done.stdout.strip().endswith("survived"):
        return None
    last = (done.stderr.strip().splitlines() or ["no words"])[-1]
    return last.removeprefix("failed: ") if last.startswith("failed: ") else f"stopped: {last[:200]}"


def _run(command: Sequence[str], copy: Path) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "PYTHONPATH": str(copy / "src"), "PYTHONDONTWRITEBYTECODE": "1"}
    environment.pop("CONFIG_PATH", None)
    return subprocess.run(
        command, cwd=copy, env=environment, capture_output=True, text=True, timeout=DEADLINE_S, check=False
    )


def _known(results: Path | None, *, again: bool) -> dict[str, Outcome]:
    if results is None or not results.exists():
        return {}
    outcomes = [Outcome(**json.loads(line)) for line in results.read_text(encoding="utf-8").splitlines()]
    return {each.key: each for each in outcomes if each.noticed_by is not None or not again}


def identity(fault: Fault) -> tuple[str, str, str]:
    return fault.file, fault.before, fault.after


def equivalent_faults() -> dict[tuple[str, str, str], str]:
    """Why nothing can show a fault, by file, line before and line after."""
    entries = load_documents(EQUIVALENT.read_text(encoding="utf-8"))[0] if EQUIVALENT.exists() else []
    assert isinstance(entries, list)
    return {(each["file"], each["before"], each["after"]): each["reason"] for each in entries}


def _report(outcomes: Sequence[Outcome], equivalent: Sequence[Fault], floor: float) -> int:
    groups = {"code": ".py", "instruction files": ".md"}
    for title, ending in groups.items():
        group = [each for each in outcomes if each.file.endswith(ending)]
        if not group:
            continue
        print(f"{title}: {_share(group)}")
        totals = Counter(each.file for each in group)
        survived = Counter(each.file for each in group if each.noticed_by is None)
        for file in sorted(totals):
            print(f"  {file}: {totals[file] - survived[file]} of {totals[file]} noticed")
            for each in group:
                if each.file == file and each.noticed_by is None:
                    print(f"    {each.line}: {each.operator}\n      - {each.before}\n      + {each.after}")
    if equivalent:
        print(f"equivalent, not counted: {len(equivalent)}")
    print(f"all: {_share(outcomes)}")
    noticed = sum(each.noticed_by is not None for each in outcomes)
    return 0 if 100 * noticed >= floor * len(outcomes) else 1


def _share(outcomes: Sequence[Outcome]) -> str:
    noticed = sum(each.noticed_by is not None for each in outcomes)
    return f"{noticed} of {len(outcomes)} noticed ({100 * noticed / max(1, len(outcomes)):.1f} %)"


def _parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--only", action="append", default=[], metavar="FILE", help="part of a file's path; several")
    parser.add_argument("--count", type=int, default=212, help="how many faults of code (default: 212)")
    parser.add_argument("--results", type=Path, help="JSON lines; what stands there is not tried again")
    parser.add_argument("--again", action="store_true", help="try what survived once more")
    parser.add_argument("--tests", nargs="+", default=[], metavar="PATH", help="tests to run where the suite is silent")
    parser.add_argument("--floor", type=float, default=0, metavar="PERCENT", help="fail where fewer are noticed")
    return parser.parse_args(arguments)


if __name__ == "__main__":
    sys.exit(main())
