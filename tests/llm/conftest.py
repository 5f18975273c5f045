from __future__ import annotations

from collections.abc import Iterator

import pytest
from messages_server import MessagesServer, running_messages_server


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """Speaks `/v1/messages` on loopback; gives honest answers unless it is told others."""
    with running_messages_server() as server:
        yield server
