"""What the Gmail server of npm says of the tools that we use, taken from the package itself.

    npm install --ignore-scripts @gongrzhe/server-gmail-autoauth-mcp     (200 packages, 190 MB; in a folder of its own)
    python tests/services/mcp/gmail_facts.py node_modules/@gongrzhe/server-gmail-autoauth-mcp          compare
    python tests/services/mcp/gmail_facts.py node_modules/@gongrzhe/server-gmail-autoauth-mcp --write  take them over

The server starts with made-up keys and no account, and is asked for its tools only. Not a part of the tests: those use
the file of facts beside this one.
"""

# ruff: noqa: T201  # it is a program
from __future__ import annotations

import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from mcp import Client, StdioServerParameters

from guarantee_email_agent.services.mcp.gmail_mailbox import GMAIL_CALLS

FACTS = Path(__file__).with_name("gmail_facts.json")


def without_prose(schema: Any) -> Any:
    """The schema as far as it binds: its descriptions are the package's own words."""
    if isinstance(schema, dict):
        return {name: without_prose(part) for name, part in schema.items() if name not in ("description", "$schema")}
    return [without_prose(part) for part in schema] if isinstance(schema, list) else schema


async def facts(package: Path) -> dict[str, Any]:
    described = json.loads((package / "package.json").read_text())
    with tempfile.TemporaryDirectory() as home:
        keys = Path(home) / ".gmail-mcp" / "gcp-oauth.keys.json"
        keys.parent.mkdir()
        keys.write_text('{"installed": {"client_id": "none", "client_secret": "none"}}')
        server = StdioServerParameters(
            command="node", args=[str(package / "dist" / "index.js")], env={"HOME": home, "PATH": os.environ["PATH"]}
        )
        async with Client(server) as client:
            tools = (await client.list_tools()).tools
    used = {tool.name: without_prose(tool.input_schema) for tool in tools if tool.name in GMAIL_CALLS}
    return {"package": described["name"], "version": described["version"], "tools": used}


def main() -> int:
    found = asyncio.run(facts(Path(sys.argv[1])))
    if "--write" in sys.argv:
        FACTS.write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")
    if json.loads(FACTS.read_text()) == found:
        print(f"{FACTS.name} is what version {found['version']} says")
        return 0
    print(f"{FACTS.name} differs from version {found['version']}: {json.dumps(found, indent=1, sort_keys=True)}")
    return 1


if __name__ == "__main__":
    sys.exit(main())
