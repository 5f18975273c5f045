"""The alert rules and the dashboard that we hand out name only what there is, and do what they say."""

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest
from mailbox_in_memory import integration_error
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families

from guarantee_email_agent.agent.metrics import PREFIX, Metrics
from guarantee_email_agent.agent.standing import Standing
from guarantee_email_agent.config.settings import Config, Llm
from guarantee_email_agent.files.yaml import load_documents

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
_METRIC = re.compile(rf"\b(?:{PREFIX}|process)_\w+")


def told_metrics() -> set[str]:
    """Every series that an agent may tell."""
    standing = Standing()
    metrics = Metrics(Config(llm=Llm(max_cost_per_day=5.0)), standing)
    standing.inbox_listed(1, 1.0)
    standing.failed(integration_error("mail_timeout"))
    told = generate_latest(metrics.registry).decode()
    return {sample.name for family in text_string_to_metric_families(told) for sample in family.samples} | {
        f"{PREFIX}_step_duration_seconds_bucket"
    }


class TestFiles:
    def test_rules_and_dashboard_name_only_metrics_that_there_are(self) -> None:
        text = RULES.read_text(encoding="utf-8") + json.dumps(DASHBOARD)
        assert set(_METRIC.findall(text)) - told_metrics() == set()

    def test_the_document_explains_every_metric_and_every_alert(self) -> None:
        document = (ROOT / "docs" / "monitoring.md").read_text(encoding="utf-8")
        names = {re.sub(r"_(bucket|sum|count)$", "", name) for name in told_metrics() if name.startswith(PREFIX)}
        (rules,) = load_documents(RULES.read_text(encoding="utf-8"))
        alerts = {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
        assert {name for name in names | alerts if f"`{name}`" not in document} == set()


class TestRules:
    @pytest.fixture(autouse=True)
    def _promtool(self) -> None:
        if shutil.which("promtool") is None:
            pytest.skip("promtool is not installed (Debian: prometheus)")

    def test_promtool_finds_nothing_wrong(self) -> None:
        done = subprocess.run(["promtool", "check", "rules", RULES], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_each_fires_when_it_should_and_not_before(self) -> None:
        cases = ROOT / "tests" / "agent" / "alert_cases.yml"
        done = subprocess.run(["promtool", "test", "rules", cases], capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr

    def test_each_is_tested(self) -> None:
        (cases,) = load_documents((ROOT / "tests" / "agent" / "alert_cases.yml").read_text(encoding="utf-8"))
        (rules,) = load_documents(RULES.read_text(encoding="utf-8"))
        fired = {
            alert["alertname"]
            for test in cases["tests"]
            for alert in test["alert_rule_test"]
            if alert.get("exp_alerts")
        }
        assert fired == {rule["alert"] for group in rules["groups"] for rule in group["rules"]}
