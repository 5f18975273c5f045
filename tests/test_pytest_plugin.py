import os
import subprocess
import sys
from pathlib import Path

import pytest
from scenario_folder import TEMPLATE, broken, failing

import guarantee_email_agent.files.yaml_errors  # noqa: F401 - its parser cannot be loaded twice

pytestmark = pytest.mark.slow

pytest_plugins = ["pytester"]
PLUGIN = "guarantee_email_agent.pytest_plugin"
FAILING_LINE = 1 + TEMPLATE[: TEMPLATE.index("response_body_contains")].count("\n")


@pytest.fixture
def project(pytester: pytest.Pytester) -> Path:
    """A project with a test of its own and three scenarios: one passes, one fails, one is no usable file."""
    pytester.makepyfile(test_own="def test_own(): pass")
    folder = pytester.mkdir("cases")
    for number, edit in enumerate((str, failing, broken), 1):
        name = f"valid_warranty_00{number}"
        text = TEMPLATE.replace("scenario_id: valid_warranty_001", f"scenario_id: {name}")
        (folder / f"{name}.yaml").write_text(edit(text), encoding="utf-8")
    return pytester.path


def test_a_failure_has_its_place_and_what_eval_prints(project: Path, pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--eval-scenarios", "cases", "-k", "valid_warranty_002")
    result.stdout.fnmatch_lines(
        [
            f"cases/valid_warranty_002.yaml:{FAILING_LINE}: response_body_contains: missing phrase 'no such phrase'",
            "✗ valid_warranty_002: * - FAILED",
            "    response_body_contains: missing phrase 'no such phrase'",
            "      expected: 'no such phrase'",
            "    reply:",
        ]
    )


def test_github_reads_no_command_in_a_failure(
    project: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    result = pytester.runpytest("--eval-scenarios", "cases", "-k", "valid_warranty_002")
    result.stdout.fnmatch_lines(["::stop-commands::*", "✗ valid_*", "    reply:", "::*::", "FAILED* - cases*"])


def test_a_name_that_stands_twice_in_a_suite_is_no_usable_file(project: Path, pytester: pytest.Pytester) -> None:
    (pytester.mkdir("cases/more") / "valid_warranty_001.yaml").write_text(TEMPLATE, encoding="utf-8")
    result = pytester.runpytest("--eval-scenarios", "cases", "cases/more")
    result.stdout.fnmatch_lines(["cases/more/valid_warranty_001.yaml:1: *Duplicate scenario_id: valid_warranty_001 *"])


def test_one_scenario_by_its_id(project: Path, pytester: pytest.Pytester) -> None:
    named = "cases/valid_warranty_001.yaml::valid_warranty_001"
    pytester.runpytest("--eval-scenarios", "cases", named).assert_outcomes(passed=1)


def test_a_setting_names_the_folder(project: Path, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\neval_scenarios = cases\ntestpaths = test_own.py\n")
    pytester.runpytest().assert_outcomes(passed=2, failed=2)


def test_the_setting_adds_nothing_to_what_somebody_names(project: Path, pytester: pytest.Pytester) -> None:
    pytester.makeini("[pytest]\neval_scenarios = cases\n")
    pytester.runpytest("test_own.py").assert_outcomes(passed=1)


def test_each_scenario_is_an_item_and_an_unusable_one_fails(project: Path, pytester: pytest.Pytester) -> None:
    (project / "cases" / "_template.yaml").write_text("scenario_id: x\n", encoding="utf-8")
    (project / "other.yaml").write_text("a: b\n", encoding="utf-8")
    pytester.runpytest("--eval-scenarios", "cases").assert_outcomes(passed=2, failed=2)


def test_several_processes_see_the_same(
    project: Path, pytester: pytest.Pytester, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others take seconds to load
    options = ("-p", "xdist", "-p", PLUGIN, "-n", "2")
    pytester.runpytest("--eval-scenarios", "cases", *options).assert_outcomes(passed=2, failed=2)


def test_a_folder_that_is_not_there_is_an_error_of_usage(project: Path, pytester: pytest.Pytester) -> None:
    result = pytester.runpytest("--eval-scenarios", "nowhere")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: *nowhere: the scenario folder does not exist. Create it, or name another."])


def test_bad_configuration_is_an_error_of_usage(project: Path, pytester: pytest.Pytester) -> None:
    (project / "config.yaml").write_text("agnet: {}\n", encoding="utf-8")
    result = pytester.runpytest("--eval-scenarios", "cases")
    assert result.ret == pytest.ExitCode.USAGE_ERROR
    result.stderr.fnmatch_lines(["ERROR: config.yaml:1: agnet: unknown key*"])


def test_without_a_folder_nothing_but_the_plugin_is_loaded(project: Path) -> None:
    (project / "test_own.py").write_text(
        f"import sys\ndef test_own():\n    assert [n for n in sys.modules if 'email_agent.' in n] == [{PLUGIN!r}]\n",
        encoding="utf-8",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", PLUGIN]
    environment = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # others take seconds to load
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, encoding="utf-8", check=False)
    assert done.returncode == 0, done.stdout
