"""Scenario files as pytest items: `pytest --eval-scenarios DIR`, or the setting `eval_scenarios`.

Every pytest of an environment with this package loads this module, so it imports nothing else until a folder is named.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import pytest

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from guarantee_email_agent.eval.loader import EvalLoader
    from guarantee_email_agent.eval.models import EvalResult

_OPTION: Final = "--eval-scenarios"
_SETTING: Final = "eval_scenarios"


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("guarantee-email-agent")
    group.addoption(
        _OPTION, action="append", default=[], metavar="DIR", help="a folder whose scenario files run as tests, too"
    )
    parser.addini(_SETTING, "folders whose scenario files run as tests", type="paths", default=[])


def pytest_configure(config: pytest.Config) -> None:
    """Raises UsageError for a folder that is not there and for bad configuration."""
    asked = [config.invocation_params.dir / given for given in config.getoption(_OPTION)]
    always: list[Path] = config.getini(_SETTING)
    if asked or always:
        config.pluginmanager.register(_ScenarioFiles(config, asked, always), "guarantee-email-agent-scenarios")


class _ScenarioFiles:
    """Collects the scenario files of some folders."""

    def __init__(self, config: pytest.Config, asked: list[Path], always: list[Path]) -> None:
        """asked: folders of the command line, which run in addition to whatever else it names."""
        from guarantee_email_agent.config.loader import load_config
        from guarantee_email_agent.eval.loader import EvalLoader
        from guarantee_email_agent.utils.errors import AgentError
        from guarantee_email_agent.utils.text import visible

        self._files: dict[Path, tuple[str, EvalLoader]] = {}
        try:
            self._config = load_config()
            for folder in (*asked, *always):
                loader = EvalLoader()
                for file in loader.scenario_files(folder):
                    self._files.setdefault(Path(file).resolve(), (file, loader))
        except AgentError as error:
            raise pytest.UsageError(visible(error.message)) from None
        wanted = asked if config.args_source is pytest.Config.ArgsSource.ARGS else (*asked, *always)
        named = [(config.invocation_params.dir / arg.partition("::")[0]).resolve() for arg in config.args]
        for folder in wanted:
            if not any(path.is_relative_to(folder.resolve()) for path in named):
                config.args.append(str(folder))

    def pytest_collect_file(self, file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
        if (found := self._files.get(file_path.resolve())) is None:
            return None
        collector: _ScenarioFile = _ScenarioFile.from_parent(parent, path=file_path)
        collector.run = partial(self._run, *found)
        return collector

    def _run(self, file: str, loader: EvalLoader) -> EvalResult:
        """As a part of its suite, where its name may stand twice and tools be declared in a folder above."""
        from guarantee_email_agent.eval.evaluation import evaluate
        from guarantee_email_agent.eval.runner import EvalRunner
        from guarantee_email_agent.eval.scenario_validation import KnownNames
        from guarantee_email_agent.eval.suite import refuse_sealed

        refuse_sealed(Path(file).parent)
        loader.known = loader.known or KnownNames.of(EvalRunner(self._config).check_instructions())
        return evaluate(loader.iter_entries([file]), config=self._config).results[0]


class _ScenarioFile(pytest.File):
    run: Callable[[], EvalResult]

    def collect(self) -> Iterator[pytest.Item]:
        from guarantee_email_agent.utils.text import printable

        item: _ScenarioItem = _ScenarioItem.from_parent(self, name=printable(self.path.stem))
        item.run = self.run
        yield item


class _ScenarioItem(pytest.Item):
    """One scenario. A file that cannot be used is an item that fails."""

    run: Callable[[], EvalResult]

    def runtest(self) -> None:
        result = self.run()
        if not result.passed:
            raise _ScenarioFailed(result)

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        from guarantee_email_agent.utils.errors import AgentError
        from guarantee_email_agent.utils.text import visible

        error = excinfo.value
        if isinstance(error, _ScenarioFailed):
            return self._describe(error.result)
        return visible(error.message) if isinstance(error, AgentError) else super().repr_failure(excinfo, style)

    def reportinfo(self) -> tuple[Path, int, str]:
        return self.path, 0, self.name

    def _describe(self, result: EvalResult) -> str:
        """The line of what failed first, then what `eval` prints."""
        import io
        import os
        from contextlib import nullcontext

        from guarantee_email_agent.eval.reporter import EvalReporter
        from guarantee_email_agent.runlog.views.github_actions import github_step
        from guarantee_email_agent.utils.text import printable

        stream = io.StringIO()
        place = f"{self.nodeid.partition('::')[0]}:{_line(result)}"
        # Before all commands: the first line stands in pytest's summary, too.
        stream.write(f"{printable(f'{place}: {result.failures[0].partition(chr(10))[0]}')}\n")
        with github_step({}, stream) if os.environ.get("GITHUB_ACTIONS") == "true" else nullcontext():
            EvalReporter(stream, color=False, ascii_only=False).print_failure_details([result])
        return stream.getvalue().rstrip()


class _ScenarioFailed(Exception):  # noqa: N818 - it is a verdict, not an accident
    def __init__(self, result: EvalResult) -> None:
        super().__init__(result.failures[0])
        self.result = result


def _line(result: EvalResult) -> int:
    """Where the scenario expects what failed first, else where it says what it expects; of no usable file the first."""
    from guarantee_email_agent.eval.models import EvalTestCase
    from guarantee_email_agent.files.yaml_errors import nodes

    scenario = result.test_case
    if not isinstance(scenario, EvalTestCase):
        return 1
    check = result.failures[0].partition(":")[0]
    lines = {node.path: node.line for node in nodes(scenario.text or "")}
    return lines.get(("expected_output", check)) or lines.get(("expected_output",)) or 1
