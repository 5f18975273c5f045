from contextlib import closing
from pathlib import Path

from ledgers import KEY, claimed

from guarantee_email_agent.ledger.opening import open_ledger


def test_the_ledger_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY)) as ledger:
        claimed(ledger)
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}
