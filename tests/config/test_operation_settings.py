"""Where the agent may be asked, and what is refused in one line."""

from pathlib import Path

import pytest

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.operation_settings import MetricsSettings, StoreSettings
from guarantee_email_agent.utils.errors import ConfigurationError


def load(folder: Path, settings: str) -> MetricsSettings:
    (folder / "config.yaml").write_text(f"metrics: {{{settings}}}\n")
    return load_config(folder / "config.yaml", {}, folder).metrics


def test_nowhere_by_default(tmp_path: Path) -> None:
    assert load_config(None, {}, tmp_path).metrics.place is None


@pytest.mark.parametrize(
    ("listen", "place"),
    [
        ("127.0.0.1:9464", ("127.0.0.1", 9464)),
        ("[::1]:9464", ("::1", 9464)),
        ("[::]:65535", ("::", 65_535)),
        ("10.0.0.7:80", ("10.0.0.7", 80)),
    ],
)
def test_any_address_of_a_machine_may_be_named(tmp_path: Path, listen: str, place: tuple[str, int]) -> None:
    assert load(tmp_path, f'listen: "{listen}"').place == place


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        *(
            (
                f'listen: "{listen}"',
                "metrics.listen: must be an IP address of this machine and a port such as 127.0.0.1:",
            )
            for listen in ("localhost:9464", "127.0.0.1", "127.0.0.1:0", "127.0.0.1:70000", "::1:9464", "300.0.0.1:80")
        ),
        ("listen: 9464", "metrics.listen: is the number 9464, not text"),
        ("port: 9464", "metrics.port: is no setting any more: write metrics.listen, such as 127.0.0.1:9464, in its p"),
        ("host_names: [agent]", "metrics.host_names: is no setting any more: remove it"),
    ],
)
def test_anything_else_is_one_line(tmp_path: Path, settings: str, problem: str) -> None:
    with pytest.raises(ConfigurationError) as caught:
        load(tmp_path, settings)
    assert problem in caught.value.message
    assert len(caught.value.message.splitlines()) == 1


HOME_STATE = Path.home() / ".local" / "state" / "guarantee-email-agent" / "runs.db"


def test_beside_the_configuration_file_or_where_it_says(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text("eval: {pass_threshold: 99}\n")
    assert load_config(cwd=tmp_path, environ={}).run_store_file == tmp_path / "runs.db"
    (tmp_path / "config.yaml").write_text("store: {file: data/evals.db, keep_runs: null}\n")
    config = load_config(cwd=tmp_path, environ={})
    assert config.run_store_file == tmp_path / "data" / "evals.db"
    assert config.store.keep_runs is None


def test_without_a_configuration_file_nothing_is_left_in_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    config = load_config(cwd=tmp_path, environ={})
    assert config.run_store_file == Path("/state/guarantee-email-agent/runs.db")


@pytest.mark.parametrize("state", [None, "", "relative"])
def test_the_state_folder_is_that_of_the_xdg_specification(state: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    if state is not None:
        monkeypatch.setenv("XDG_STATE_HOME", state)
    assert StoreSettings().file_for(None) == HOME_STATE
