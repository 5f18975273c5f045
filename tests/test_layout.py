"""Who looks for the tests of a module finds them by its path, or by the table in docs/architecture.md."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "guarantee_email_agent"
MODULES = [path.relative_to(PACKAGE) for path in PACKAGE.glob("*/**/*.py") if not path.stem.startswith("__")]
TEST_FILES = [path.relative_to(ROOT / "tests") for path in (ROOT / "tests").rglob("test_*.py")]
DOCUMENT = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
TABLE = DOCUMENT[DOCUMENT.index("## Tests") :]


def mirrors(test_file: Path, module: Path) -> bool:
    """`PACKAGE/test_MODULE.py`, `PACKAGE/test_MODULE_THEME.py`, or in a folder `PACKAGE/MODULE/`."""
    if test_file.parent == module.parent:
        return test_file.stem == f"test_{module.stem}" or test_file.stem.startswith(f"test_{module.stem}_")
    return test_file.parent == module.with_suffix("")


def test_every_module_has_tests_at_its_path_or_in_the_table() -> None:
    alone = [module for module in MODULES if not any(mirrors(test_file, module) for test_file in TEST_FILES)]
    unnamed = [module for module in alone if f"`{module.parent.as_posix()}/*`" not in TABLE]
    assert [module.as_posix() for module in unnamed if f"`{module.as_posix()}`" not in TABLE] == []


def test_every_test_file_mirrors_a_module_or_stands_in_the_table() -> None:
    others = [test_file for test_file in TEST_FILES if not any(mirrors(test_file, module) for module in MODULES)]
    assert [test_file.as_posix() for test_file in others if f"`{test_file.as_posix()}`" not in TABLE] == []


def test_the_table_names_only_what_there_is() -> None:
    rows = "".join(line for line in TABLE.splitlines() if line.startswith("| `"))
    assert {Path(name) for name in re.findall(r"`([\w/]+\.py)`", rows)} - {*MODULES, *TEST_FILES} == set()
