"""A running embedded sandbox, shared by the tests of one module, and others with small limits."""

import time
from collections.abc import Iterator
from contextlib import ExitStack, closing

import pytest
from running_sandbox import SMALL, Box, MakeBox

from guarantee_email_agent.sandbox import SandboxSettings
from guarantee_email_agent.sandbox.embedded import EmbeddedSandbox
from guarantee_email_agent.sandbox.served_sandbox import ServedSandbox


@pytest.fixture(scope="module")
def box() -> Iterator[Box]:
    with closing(Box(EmbeddedSandbox(SandboxSettings()))) as box:
        yield box


@pytest.fixture
def make_box() -> Iterator[MakeBox]:
    """Starts sandboxes that end with the test."""
    with ExitStack() as boxes:

        def make(settings: SandboxSettings | None = None, kind: type[ServedSandbox] = EmbeddedSandbox) -> Box:
            return boxes.enter_context(closing(Box(kind(settings or SandboxSettings()))))

        yield make


@pytest.fixture
def small_box(make_box: MakeBox) -> Box:
    return make_box(SandboxSettings(SMALL))


@pytest.fixture
def token() -> str:
    """A number that no process of another run of the tests has in its command line."""
    return f"{time.time_ns() % 10**9:09}"
