"""A folder of scenarios under test, and its evaluation in this process."""

import io
import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

from guarantee_email_agent.config.loader import load_config
from guarantee_email_agent.config.settings import Config
from guarantee_email_agent.eval.execution import EvalOptions
from guarantee_email_agent.eval.suite import evaluate

ROOT = Path(__file__).parents[2]
SHIPPED = ROOT / "evals" / "scenarios"
TEMPLATES = Path(__file__).with_name("scenarios")
BUILT_IN = load_config(cwd=TEMPLATES, environ={})
"""The defaults with the shipped instructions, whatever `config.yaml` and `.env` of the project say."""

TEMPLATE = (TEMPLATES / "valid_warranty_001.yaml").read_text(encoding="utf-8")


def failing(text: str) -> str:
    return text.replace('"warranty is valid"', '"no such phrase"')


def broken(text: str) -> str:
    return text.replace("scenario_id:", "scenario_id: [")


class ScenarioFolder:
    """Scenarios made from one that passes, or taken as they are; whoever edits shipped ones breaks no test of these."""

    def __init__(self, folder: Path, config: Config) -> None:
        self.folder = folder
        self.folder.mkdir(exist_ok=True)
        self.config = config

    def write(self, number: int, edit: Callable[[str], str] = str, digits: int = 3) -> Path:
        path = self.folder / f"valid_warranty_{number:0{digits}}.yaml"
        text = TEMPLATE.replace("scenario_id: valid_warranty_001", f"scenario_id: {path.stem}")
        path.write_text(edit(text), encoding="utf-8")
        return path

    def take(self, *names: str, origin: Path = TEMPLATES) -> None:
        """With what stands beside them under their name."""
        for name in names:
            for file in origin.rglob(f"{name}.*"):
                shutil.copy(file, self.folder)

    def evaluate(self, **options: Any) -> tuple[int, str]:
        """Exit code and what was printed, without the line that tells the time."""
        stream = io.StringIO()
        code = evaluate(EvalOptions(**({"directory": self.folder, "threshold": 99.0} | options)), self.config, stream)
        lines = [line for line in stream.getvalue().splitlines() if not line.startswith("Duration: ")]
        return code, "\n".join(lines)

    def report(self, **options: Any) -> dict[str, Any]:
        path = self.folder.parent / "report.json"
        self.evaluate(json_file=path, run_id="run", started="2026-01-18T10:00:00Z", **options)
        return json.loads(path.read_bytes())

    def timeless_report(self, **options: Any) -> dict[str, Any]:
        """Without what differs from run to run."""
        report = self.report(**options)
        report.pop("duration_s")
        for result in report["results"]:
            result.pop("processing_time_ms")
            result["actual_output"].pop("processing_time_ms", None)
        return report
