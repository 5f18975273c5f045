"""What holds for every test: none leaves its logging to the next, and under CI a skipped one is a failed one."""

import logging
import os
import re
import signal
from collections.abc import Generator, Iterator

import pytest
from hypothesis import HealthCheck, settings
from mail_servers import MailServers, missing

from guarantee_email_agent.utils.logging import ROOT

# Inputs are the same in every run of CI, and no example is judged by the time it takes on a busy machine.
settings.register_profile(
    "without_deadline",
    deadline=None,
    derandomize="CI" in os.environ,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
settings.load_profile("without_deadline")

_OPTIONAL = (
    "anthropic|check_jsonschema|google|httpx2|jwt|kubernetes_validate|langchain_anthropic|langgraph|lxml|markdown_it|mcp|mcp_types"
    "|oauthlib|openai|opentelemetry|prometheus_client|psycopg|pydantic_ai|ray|ruff|starlette|uvicorn|backports"
)
_MISSING_PACKAGE = re.compile(
    rf"No module named '?(?P<module>{_OPTIONAL})\b|uv sync --inexact --extra (?P<extra>[a-z]+)"
)
"""In a failure: an import, ours or of a program that was run, and the line in which we ask for an extra."""

_OF_OTHERS = frozenset(
    {
        "running_mail_servers",
        "postgresql_server",
        "postgresql",
        "IMAP",
        "IMAP with folders for marks",
        "real_engine",
        "browser",
    }
)
"""Fixtures that start such a server, and parameters that ask for one."""

# Of tests/support.
pytest_plugins = [
    "browser_pages",
    "command_line",
    "docker_engines",
    "postgresql",
    "shipped_instructions",
    "stored_runs",
    "tasks_and_sandboxes",
    # Each behind what it imports.
    "messages_server",
    "live_desk",
]

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that runs us in the background has us ignore Ctrl-C, and every program that we start.
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="session")
def running_mail_servers() -> Iterator[MailServers]:
    """Dovecot and Postfix, started once; use `mail_servers`."""
    if reason := missing():
        pytest.skip(f"no mail servers: {reason}")
    with MailServers() as servers:
        yield servers


@pytest.fixture
def mail_servers(running_mail_servers: MailServers) -> MailServers:
    """A real mail system on loopback, without any mail."""
    running_mail_servers.empty()
    return running_mail_servers


@pytest.fixture(scope="session", autouse=True)
def _state_of_nobody(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Commands that run without a configuration file keep their runs where no user has his."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture(autouse=True)
def _logging_as_before() -> Iterator[None]:
    """Undoes what a command of ours sets up in this process, so that `caplog` of a later test still sees records."""
    root = logging.getLogger(ROOT)
    handlers, level, propagate, raises = root.handlers[:], root.level, root.propagate, logging.raiseExceptions
    yield
    for handler in root.handlers:
        if handler not in handlers:
            handler.close()
    root.handlers[:] = handlers
    root.setLevel(level)
    root.propagate, logging.raiseExceptions = propagate, raises


@pytest.fixture(scope="session")
def anyio_backend() -> str:
    """The event loop of coroutine tests in modules marked `anyio`."""
    return "asyncio"


def pytest_itemcollected(item: pytest.Item) -> None:
    """A test of a server or program that others wrote stands behind the marker."""
    needs = list(getattr(item, "fixturenames", ()))
    if isinstance(item, pytest.Function) and hasattr(item, "callspec"):
        needs += [value for value in item.callspec.params.values() if isinstance(value, str)]
    if not _OF_OTHERS.isdisjoint(needs):
        item.add_marker("slow")


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Slow tests first, in each of the stretches that xdist deals out: no worker is to begin a long one at the end."""
    workers = int(os.environ.get("PYTEST_XDIST_WORKER_COUNT", "1"))
    slow = [item for item in items if item.get_closest_marker("slow")]
    files = list(dict.fromkeys(item.path for item in slow))
    quick = [item for item in items if not item.get_closest_marker("slow")]
    ordered, taken = list[pytest.Item](), 0
    for worker in range(workers):
        ordered += [item for item in slow if item.path in files[worker::workers]]
        until = max(taken, len(items) * (worker + 1) // workers - len(ordered) + taken)
        ordered += quick[taken:until]
        taken = until
    items[:] = ordered


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _skip_without_package(report, item)
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _skip_without_package(report, collector)
    _fail_if_skipped(report)
    return report


def _skip_without_package(
    report: pytest.TestReport | pytest.CollectReport, node: pytest.Item | pytest.Collector
) -> None:
    """The README's command leaves the group ci out: what needs a package of it is skipped, and says so."""
    if not report.failed or (missing := _MISSING_PACKAGE.search(report.longreprtext)) is None:
        return
    package = missing["module"] or missing["extra"]
    report.outcome = "skipped"
    report.longrepr = str(node.path), 0, f"Skipped: {package} is not installed: uv sync --group ci"


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    """What nothing ran is not known to work."""
    if report.skipped and os.environ.get("CI") and not hasattr(report, "wasxfail"):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"{reason}. Under CI nothing may be skipped: set up what the test needs, or remove it"
