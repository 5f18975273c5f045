from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from agent_in_memory import AgentInMemory
from company import Company
from mailbox_in_memory import KEY
from steered_desk import SteeredDesk

from guarantee_email_agent.ledger.ledger import Ledger
from guarantee_email_agent.ledger.opening import open_ledger


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Company]:
    company = Company(tmp_path)
    yield company
    company.close()


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "ledger.db")


@pytest.fixture
def ledger(location: str) -> Iterator[Ledger]:
    with closing(open_ledger(location, key=KEY)) as ledger:
        yield ledger


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[AgentInMemory]:
    agent = AgentInMemory(tmp_path)
    yield agent
    agent.ledger.close()


@pytest.fixture
def desk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> SteeredDesk:
    monkeypatch.chdir(tmp_path)
    return SteeredDesk(tmp_path)
