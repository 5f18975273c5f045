import pytest
from stored_runs import StoredRuns
from viewed_runs import ViewedRuns


@pytest.fixture
def pages(runs: StoredRuns) -> ViewedRuns:
    return ViewedRuns(runs.file)
