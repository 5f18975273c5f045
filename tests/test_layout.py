"""Who looks for the tests of a module finds them by its path; a test file that mirrors none says what it tests."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "guarantee_email_agent"
TESTS = ROOT / "tests"
MODULES = [path.relative_to(PACKAGE) for path in PACKAGE.rglob("*.py") if not path.stem.startswith("__")]
TEST_FILES = [path.relative_to(TESTS) for path in TESTS.rglob("test_*.py")]


def mirrors(test_file: Path, module: Path) -> bool:
    """`ROOM/test_MODULE.py`, `ROOM/test_MODULE_THEME.py`, or in a folder `ROOM/MODULE/`."""
    if test_file.parent == module.parent:
        return test_file.stem == f"test_{module.stem}" or test_file.stem.startswith(f"test_{module.stem}_")
    return test_file.parent == module.with_suffix("")


def test_a_test_file_mirrors_a_module_or_says_what_it_tests() -> None:
    others = [test_file for test_file in TEST_FILES if not any(mirrors(test_file, module) for module in MODULES)]
    texts = {test_file: (TESTS / test_file).read_text(encoding="utf-8") for test_file in others}
    assert [test_file.as_posix() for test_file, text in texts.items() if not ast.get_docstring(ast.parse(text))] == []


def test_every_package_has_tests_of_its_own() -> None:
    packages, tested = {module.parent for module in MODULES}, {test_file.parent for test_file in TEST_FILES}
    assert packages - tested <= {Path(), Path("cli")}
