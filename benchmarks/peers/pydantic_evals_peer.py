"""pydantic-evals over the scenario files: each is loaded, and one string of it compared."""

from __future__ import annotations

import os
from pathlib import Path

import yaml
from pydantic_evals import Case, Dataset
from pydantic_evals.evaluators import EqualsExpected


def _case(path: Path) -> Case[str, str, None]:
    frontmatter, body = yaml.load_all(path.read_bytes(), yaml.CSafeLoader)
    expected = body["expected_output"]["scenario_instruction_used"]
    return Case(name=path.stem, inputs=frontmatter["category"], expected_output=expected)


async def _same(text: str) -> str:
    return text


cases = [_case(path) for path in sorted(Path(os.environ["SCENARIOS"]).glob("*.yaml"))]
dataset = Dataset[str, str, None](name="scenarios", cases=cases, evaluators=[EqualsExpected()])
report = dataset.evaluate_sync(_same, progress=False)
averages = report.averages()
if averages is None or averages.assertions != 1.0:
    raise SystemExit("not every case passed")
print(f"{len(report.cases)} cases passed")
