from collections.abc import Iterator

import pytest
from messages_server import MessagesServer, running_messages_server


@pytest.fixture
def server() -> Iterator[MessagesServer]:
    """Speaks `/v1/messages` on loopback; answers as the instructions say unless `replies` is set."""
    with running_messages_server() as server:
        yield server
