"""The alert rules and the dashboard that we hand out name only what there is, and do what they say."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest
from company import Company
from mailbox_in_memory import integration_error
from prometheus_client import generate_latest
from prometheus_client.parser import text_string_to_metric_families
from running_prometheus import JOB, free_port, program, running_prometheus
from virtual_time import VirtualClock
from waiting import wait_until

from guarantee_email_agent.agent.health import Health, HealthLimits, LoopWatchdog
from guarantee_email_agent.agent.metrics import PREFIX, Metrics
from guarantee_email_agent.agent.standing import Standing
from guarantee_email_agent.config.settings import Config, Llm
from guarantee_email_agent.files.yaml import load_documents

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
DASHBOARD = json.loads((ROOT / "deploy" / "grafana" / "dashboard.json").read_text(encoding="utf-8"))
PANELS = [panel for panel in DASHBOARD["panels"] if panel["type"] != "row"]
_METRIC = re.compile(rf"\b(?:{PREFIX}|process)_\w+")


def queries(panel: Any) -> list[str]:
    """As Grafana fills them in."""
    filled = {"$job": JOB, "$instance": ".*", "$__rate_interval": "1m"}
    expressions = [target["expr"] for target in panel["targets"]]
    return [re.sub(r"\$\w+", lambda found: filled[found[0]], expression) for expression in expressions]


def told_metrics() -> set[str]:
    """Every series that an agent may tell."""
    config, clock = Config(llm=Llm(max_cost_per_day=5.0)), VirtualClock()
    standing = Standing(now=clock.monotonic)
    metrics = Metrics(config, Health(clock, LoopWatchdog(clock), HealthLimits.of(config), standing), standing)
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

    def test_every_panel_says_what_no_data_means(self) -> None:
        assert [panel["title"] for panel in PANELS if not panel["fieldConfig"]["defaults"]["noValue"]] == []

    def test_panels_lie_beside_one_another(self) -> None:
        cells = [
            (x, y)
            for place in (panel["gridPos"] for panel in DASHBOARD["panels"])
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        ]
        assert len(cells) == len(set(cells))
        assert max(x for x, _ in cells) < 24
        assert len({panel["id"] for panel in DASHBOARD["panels"]}) == len(DASHBOARD["panels"])


class TestRules:
    def test_promtool_finds_nothing_wrong(self) -> None:
        done = subprocess.run(
            [program("promtool"), "check", "rules", RULES], capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr

    def test_each_fires_when_it_should_and_not_before(self) -> None:
        cases = ROOT / "tests" / "agent" / "alert_cases.yml"
        done = subprocess.run(
            [program("promtool"), "test", "rules", cases], capture_output=True, text=True, check=False
        )
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


@pytest.mark.slow
def test_a_real_prometheus_has_data_for_each_panel(company: Company, tmp_path: Path) -> None:
    port = free_port()
    company.configure(metrics={"listen": f"127.0.0.1:{port}"})
    agent = company.start()
    with running_prometheus(tmp_path, RULES, port) as prometheus:
        wait_until(lambda: prometheus.query(f"{PREFIX}_ready == 1"))
        for name in ("first", "second"):
            company.receive(name)
        company.wait_for_replies(2)
        wait_until(lambda: prometheus.query(f'{PREFIX}_mails_total{{outcome="answered",scenario!=""}} == 2'))
        wait_until(lambda: prometheus.query(f"count_over_time({PREFIX}_step_duration_seconds_count[1m]) > 2"))
        empty = {panel["title"] for panel in PANELS if not any(map(prometheus.query, queries(panel)))}
        assert empty == {"Oldest waiting"}  # nothing waits
        wait_until(lambda: all(rule["health"] == "ok" for rule in prometheus.rules()))
        assert [rule["name"] for rule in prometheus.rules() if rule["state"] == "firing"] == []
    company.stop(agent)
