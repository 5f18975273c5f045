from __future__ import annotations

from pathlib import Path

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.run_store import StoreSettings, run_store_file

HOME_STATE = Path.home() / ".local" / "state" / "guarantee-email-agent" / "runs.db"


def test_beside_the_configuration_file(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("eval: {pass_threshold: 99}\n")
    config = load_config(cwd=tmp_path, environ={})
    assert run_store_file(config.store, config.source, {}) == tmp_path / "runs.db"


def test_where_the_configuration_says(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("store: {file: data/evals.db, keep_runs: null}\n")
    config = load_config(cwd=tmp_path, environ={})
    assert run_store_file(config.store, config.source, {}) == tmp_path / "data" / "evals.db"
    assert config.store.keep_runs is None


def test_without_a_configuration_file_nothing_is_left_in_the_working_directory(tmp_path: Path) -> None:
    config = load_config(cwd=tmp_path, environ={})
    state = {"XDG_STATE_HOME": "/state"}
    assert run_store_file(config.store, config.source, state) == Path("/state/guarantee-email-agent/runs.db")


@pytest.mark.parametrize("state", [{}, {"XDG_STATE_HOME": ""}, {"XDG_STATE_HOME": "relative"}])
def test_the_state_folder_is_that_of_the_xdg_specification(state: dict[str, str]) -> None:
    assert run_store_file(StoreSettings(), None, state) == HOME_STATE
