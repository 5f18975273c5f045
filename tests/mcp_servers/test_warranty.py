"""The warranty server as a program, asked by the official SDK's client."""

from pathlib import Path

import pytest
from mcp_calls import CallError, call, program

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize(
    "command",
    [("-m", "guarantee_email_agent", "mcp-server", "warranty"), ("-m", "guarantee_email_agent.mcp_servers.warranty")],
)
async def test_tells_status_date_and_coverage(command: tuple[str, ...], tmp_path: Path) -> None:
    file, said = tmp_path / "warranties.csv", tmp_path / "stderr"
    file.write_text("serial_number,expiration_date,coverage\nSN-100,2030-01-31,full\nSN-200,2020-01-31,\n")
    with said.open("w") as errlog:
        async with program(
            *command, "--file", file, "--today", "2027-03-31", errlog=errlog, GITHUB_ACTIONS="true"
        ) as client:
            answers = [
                await call(client, "check_warranty", serial_number=each) for each in ("sn 100", "SN-200", "SN-300")
            ]
            with pytest.raises(CallError, match=r"^warranty_api_invalid_argument: check_warranty: .*\Z"):
                await call(client, "check_warranty", serial="SN-100")
    assert answers == [
        {"serial_number": "SN-100", "status": "valid", "expiration_date": "2030-01-31", "coverage": "full"},
        {"serial_number": "SN-200", "status": "expired", "expiration_date": "2020-01-31"},
        {"serial_number": "SN-300", "status": "not_found"},
    ]
    assert [line for line in said.read_text().splitlines() if not line.startswith("::")] == []
