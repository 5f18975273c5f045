import pytest


@pytest.fixture(autouse=True, scope="session")
def _needs_mcp() -> None:
    pytest.importorskip("mcp", reason="mcp is not installed: uv sync --group ci")
