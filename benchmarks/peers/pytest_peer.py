"""pytest over the scenario files: each is loaded, and one string of it compared."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
import yaml


@pytest.mark.parametrize("path", sorted(Path(os.environ["SCENARIOS"]).glob("*.yaml")), ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    frontmatter, body = yaml.load_all(path.read_bytes(), yaml.CSafeLoader)
    assert frontmatter["category"] == body["expected_output"]["scenario_instruction_used"]
