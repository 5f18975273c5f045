"""What Python files import, read and ask the environment for, as their source shows it."""

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from guarantee_email_agent.files.python_code import FollowedCode, follow_code, follow_text


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def follow(sources: Mapping[str, str]) -> tuple[set[str], FollowedCode]:
    """The first file; the others lie beside it. Paths are relative to its folder."""
    for name, source in sources.items():
        path = Path(name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(source, encoding="utf-8")
    code = follow_code([os.path.abspath(next(iter(sources)))])
    return {os.path.relpath(file) for file in code.files}, code


def test_what_is_imported_from_beside_is_followed_as_far_as_it_goes() -> None:
    files, code = follow(
        {
            "a.py": "import b\nfrom p import c\nfrom p.q.d import x\nimport json, os.path\n",
            "b.py": "def f():\n    import e\n",
            "e.py": "import b, shelf.books\n",
            "p/__init__.py": "",
            "p/c.py": "from . import f\nfrom .q import d\n",
            "p/f.py": "",
            "p/q/d.py": "from ..c import y\n",
            "p/unused.py": "",
        }
    )
    assert files == {"a.py", "b.py", "e.py", "p/__init__.py", "p/c.py", "p/f.py", "p/q/d.py"}
    assert (code.modules, code.unknown) == ({"shelf"}, ())


@pytest.mark.parametrize(
    "expression",
    [
        "open(os.path.join(os.path.dirname(os.path.abspath(__file__)), 'x.json'))",
        "(HERE / 'x.json').read_text(encoding='utf-8')",
        "Path(__file__).parent.joinpath('x.json').open()",
        "json.load(open('x.json'))",
        "print('x.json')",
    ],
)
def test_a_file_that_is_read_beside_is_one_of_them(
    folder: Path, monkeypatch: pytest.MonkeyPatch, expression: str
) -> None:
    (folder / "work").mkdir()
    monkeypatch.chdir(folder / "work")
    Path("x.json").write_text("{}")
    files, code = follow({"a.py": f"HERE = Path(__file__).resolve().parent\n{expression}\n"})
    assert (files, code.unknown) == ({"a.py", "x.json"}, ())


@pytest.mark.parametrize("source", ["open('x.log', 'a')", "(HERE / 'x.log').write_text('')", "print('started')"])
def test_a_file_that_is_written_is_none_of_them(source: str) -> None:
    files, code = follow({"a.py": source, "x.log": "", "started": ""})
    assert (files, code.unknown) == ({"a.py"}, ())


@pytest.mark.parametrize(
    ("source", "what"),
    [
        ("open(path)", "reads a file that only a run tells"),
        ("open('missing.json')", "reads a file that only a run tells"),
        ("(Path(__file__).parent.parent / 'a.py').read_bytes()", "reads a file that only a run tells"),
        ("UP = Path(__file__).parent\n(UP.parent / 'a.py').read_bytes()", "reads a file that only a run tells"),
        ("open(Path(__file__).with_name('x.json'))", "reads a file that only a run tells"),
        ("for path in ('x', 'y'): open(path)", "reads a file that only a run tells"),
        ("pandas.read_csv(place)", "reads a file that only a run tells"),
        ("list(Path(__file__).parent.iterdir())", "reads whatever lies in a folder"),
        ("importlib.import_module(name)", "imports what only a run tells"),
        ("exec(text)", "runs code that only a run tells"),
        ("subprocess.run(['ls'])", "starts another program"),
        ("dict(os.environ)", "reads the environment as a whole"),
        ("os.environ[name]", "reads variables of the environment that only a run tells"),
        ("sys.path.insert(0, place)", "looks at where modules are imported from, which it can change"),
    ],
)
def test_what_only_a_run_tells_is_said_with_its_line(source: str, what: str) -> None:
    _, code = follow({"a.py": source})
    (unknown,) = code.unknown
    assert unknown.startswith("a.py, line ")
    assert unknown.endswith(f": it {what}")


@pytest.mark.parametrize(
    "source",
    [
        "open('out', 'w')",
        "re.compile('x')",
        "cursor.execute('SELECT 1')",
        "importlib.import_module('b')",
    ],
)
def test_what_reads_nothing_is_not_taken_for_reading(source: str) -> None:
    _, code = follow({"a.py": source, "b.py": ""})
    assert code.unknown == ()


def test_variables_are_known_by_name() -> None:
    source = "os.environ['A'], os.getenv('B', 'x'), environ.get('C'), 'D' in os.environ\nNAME = 'E'\nos.getenv(NAME)\n"
    _, code = follow({"a.py": source})
    assert (code.variables, code.unknown) == ({"A", "B", "C", "D", "E"}, ())


def test_an_edit_is_seen(folder: Path) -> None:
    follow({"a.py": "import b\n", "b.py": "", "c.py": ""})
    files, _ = follow({"a.py": "import b, c  # longer\n"})
    assert files == {"a.py", "b.py", "c.py"}


def test_a_source_that_python_cannot_read_or_a_compiled_module() -> None:
    files, code = follow({"a.py": "import b, c\n", "b.py": "def (\n", "c.cpython-311.so": ""})
    assert files == {"a.py", "b.py", "c.cpython-311.so"}
    assert code.unknown == ("c.cpython-311.so: the libraries of a compiled module are not followed",)


def test_code_on_a_command_line(folder: Path) -> None:
    (folder / "b.py").write_text("")
    code = follow_text("import b, shelf; open(name)", [str(folder)])
    assert code == FollowedCode(
        (str(folder / "b.py"),), frozenset({"shelf"}), frozenset(), ("reads a file that only a run tells",)
    )
