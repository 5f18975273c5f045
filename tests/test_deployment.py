"""The files of `deploy/`, by the programs that will read them."""

import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import kubernetes_validate
import pytest
import yaml

from guarantee_email_agent.config.loader import load_config

DEPLOY = Path(__file__).resolve().parent.parent / "deploy"
UNIT = DEPLOY / "guarantee-email-agent.service"
KUBERNETES = "1.37"


def run(*command: str | Path) -> str:
    if shutil.which(str(command[0])) is None:
        pytest.skip(f"{command[0]} is not installed")
    done = subprocess.run(
        [str(part) for part in command], stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout + done.stderr


class TestSystemdUnit:
    def test_systemd_finds_nothing_wrong_with_it(self, tmp_path: Path) -> None:
        """But for the program, which is not installed where the unit will look for it."""
        unit = tmp_path / UNIT.name
        unit.write_text(re.sub(r"(?m)^ExecStart=\S+", f"ExecStart={sys.executable}", UNIT.read_text()))
        assert run("systemd-analyze", "verify", "--man=no", unit) == ""

    def test_it_exposes_little(self) -> None:
        told = run("systemd-analyze", "security", "--offline=true", "--no-pager", UNIT)
        (level,) = re.findall(r"Overall exposure level for .*: (\d+\.\d)", told)
        assert float(level) < 2

    def test_it_tells_systemd_how_the_agent_is(self) -> None:
        lines = set(UNIT.read_text().splitlines())
        assert lines >= {"Type=notify", "NotifyAccess=main", "WatchdogSec=60"}


class TestContainer:
    INSTRUCTIONS = (DEPLOY / "Containerfile").read_text().replace("\\\n", " ").splitlines()

    def arguments(self, instruction: str) -> list[str]:
        return [line.partition(" ")[2] for line in self.INSTRUCTIONS if line.startswith(f"{instruction} ")]

    def test_it_runs_as_a_user_whose_number_is_not_roots(self) -> None:
        assert re.fullmatch(r"[1-9]\d{3,}:[1-9]\d{3,}", self.arguments("USER")[-1])

    def test_a_digest_pins_the_base_of_both_stages(self) -> None:
        assert "BASE_DIGEST=" in self.arguments("ARG")
        assert {each.removesuffix(" AS build") for each in self.arguments("FROM")} == {
            "${BASE_IMAGE}${BASE_DIGEST:+@${BASE_DIGEST}}"
        }

    def test_nothing_gets_into_it_but_what_is_named(self) -> None:
        lines = [
            line for line in (DEPLOY.parent / ".dockerignore").read_text().splitlines() if line[:1] not in ("", "#")
        ]
        assert lines[0] == "*"
        admitted = {line.removeprefix("!") for line in lines if line.startswith("!")}
        assert admitted == {
            *(
                "LICENSE",
                "README.md",
                "config.yaml",
                "pyproject.toml",
                "requirements",
                "src",
                "instructions",
                "evals",
                "evals/scenarios",
            ),
        }
        assert lines[-2:] == ["**/.env*", "**/__pycache__"]  # the last that fits counts


def objects(text: str) -> dict[str, dict[str, Any]]:
    return {each["kind"]: each for each in yaml.safe_load_all(text)}


@pytest.fixture(scope="module", params=["single", "several"])
def rendered(request: pytest.FixtureRequest) -> dict[str, dict[str, Any]]:
    """What kubectl would send to the cluster."""
    return objects(run("kubectl", "kustomize", DEPLOY / "kubernetes" / request.param))


def assert_valid(found: dict[str, dict[str, Any]]) -> None:
    """By the schemas of Kubernetes, which know no unknown key."""
    for each in found.values():
        kubernetes_validate.validate(each, KUBERNETES, strict=True)


class TestKubernetes:
    def test_objects_are_valid(self) -> None:
        files = ("single/agent.yaml", "several/disruption_budget.yaml")
        found = [objects((DEPLOY / "kubernetes" / file).read_text()) for file in files]
        assert_valid(found[0] | found[1])

    def test_rendered_objects_are_valid(self, rendered: dict[str, dict[str, Any]]) -> None:
        assert_valid(rendered)

    @pytest.mark.parametrize("kind", ["single", "several"])
    def test_the_configuration_loads(self, kind: str) -> None:
        secrets = {"IMAP_PASSWORD": "hush", "ANTHROPIC_API_KEY": "hush", "LEDGER_URL": "postgresql://db/ledger"}
        config = load_config(DEPLOY / "kubernetes" / kind / "config.yaml", secrets)
        assert config.metrics.place == ("0.0.0.0", 9464)

    def test_pods_keep_to_the_restricted_profile(self) -> None:
        """https://kubernetes.io/docs/concepts/security/pod-security-standards/#restricted, and a root that is read."""
        found = objects((DEPLOY / "kubernetes/single/agent.yaml").read_text())
        pod = found["Deployment"]["spec"]["template"]["spec"]
        container, proving = *pod["containers"], *pod["initContainers"]
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        assert (
            container["securityContext"]
            == proving["securityContext"]
            == {
                "allowPrivilegeEscalation": False,
                "readOnlyRootFilesystem": True,
                "capabilities": {"drop": ["ALL"]},
            }
        )
        assert {kind for volume in pod["volumes"] for kind in volume if kind != "name"} == {
            "persistentVolumeClaim",
            "configMap",
            "emptyDir",
        }

    def test_only_agents_that_share_a_database_run_side_by_side(self, rendered: dict[str, dict[str, Any]]) -> None:
        spec = rendered["Deployment"]["spec"]
        on_one_file = "PersistentVolumeClaim" in rendered
        assert (spec["replicas"] == 1, spec["strategy"]["type"] == "Recreate") == (on_one_file, on_one_file)
        assert on_one_file == any("persistentVolumeClaim" in volume for volume in spec["template"]["spec"]["volumes"])
