from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.config.shipped_files import shipped_path


@pytest.mark.parametrize("name", ["config.yaml", "instructions", "evals/scenarios"])
def test_what_a_user_edits_is_shipped(name: str) -> None:
    assert shipped_path(name) == Path(__file__).parents[2] / name


def test_what_is_not_there_is_not_shipped() -> None:
    assert shipped_path("no-such-file") is None
