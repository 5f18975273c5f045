"""A folder with a few scenarios, and the program that evaluates them against a server in place of the API."""

import shutil
import subprocess
from pathlib import Path
from typing import IO, Final

import pytest
from command_line import MODULE, environment, run_program
from messages_server import MessagesServer
from scenario_folder import TEMPLATES

EVAL: Final = [*MODULE, "eval"]
KEY: Final = "sk-a-very-secret-key"
SCENARIOS: Final = ("missing_info_001", "valid_warranty_001", "valid_warranty_002")


class LiveDesk:
    def __init__(self, folder: Path, server: MessagesServer) -> None:
        pytest.importorskip("anthropic", reason="anthropic is not installed: uv sync --group ci")
        self.folder = folder
        self.server = server
        self.scenarios = folder / "evals" / "scenarios"
        self.scenarios.mkdir(parents=True)
        self.recordings = folder / "evals" / "recordings"
        for name in SCENARIOS:
            shutil.copy(TEMPLATES / f"{name}.yaml", self.scenarios)

    def environment(self, key: str | None = KEY) -> dict[str, str]:
        keys = {} if key is None else {"ANTHROPIC_API_KEY": key, "OPENAI_API_KEY": key}
        return {"ANTHROPIC_BASE_URL": self.server.url, "OPENAI_BASE_URL": f"{self.server.url}/v1", **keys}

    def run(
        self, *arguments: str, key: str | None = KEY, command: list[str] = EVAL, **variables: str
    ) -> subprocess.CompletedProcess[str]:
        return run_program(self.folder, *arguments, program=command, env=self.environment(key) | variables)

    def start(self, *arguments: str, stderr: int | IO[bytes] = subprocess.PIPE, **env: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [*EVAL, *arguments],
            cwd=self.folder,
            env=environment(**self.environment(), **env),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
        )

    def recorded(self) -> list[Path]:
        return sorted(path for path in self.recordings.rglob("*") if path.is_file())


@pytest.fixture
def desk(tmp_path: Path, server: MessagesServer) -> LiveDesk:
    return LiveDesk(tmp_path, server)
