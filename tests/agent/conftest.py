from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from company import Company


@pytest.fixture
def company(tmp_path: Path) -> Iterator[Company]:
    company = Company(tmp_path)
    yield company
    company.close()
