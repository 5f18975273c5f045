import subprocess
import sys
from contextlib import closing
from pathlib import Path

from ledgers import KEY, claimed

from guarantee_email_agent.ledger.opening import open_ledger


def test_the_ledger_file_is_for_its_owner_alone(tmp_path: Path) -> None:
    with closing(open_ledger(str(tmp_path / "ledger.db"), key=KEY)) as ledger:
        claimed(ledger)
        assert {file.stat().st_mode & 0o777 for file in tmp_path.iterdir()} == {0o600}


def test_commands_without_a_ledger_do_not_load_sqlalchemy() -> None:
    script = (
        "import sys, guarantee_email_agent.cli, guarantee_email_agent.eval.suite\nsys.exit('sqlalchemy' in sys.modules)"
    )
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
