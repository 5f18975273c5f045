from collections.abc import Iterator
from contextlib import closing

import pytest
from ledgers import KEY

from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger


@pytest.fixture
def ledger(ledger_location: str) -> Iterator[Ledger]:
    with closing(open_ledger(ledger_location, key=KEY)) as ledger:
        yield ledger
