"""A warranty system and a ticketing of somebody else's, behind MCP on stdio: answers what a file says, call by call.

    python foreign_service.py FILE

FILE holds, as JSON, for each tool the answer by an argument's value, or under "*" for all others. A ticket's answer is
made of it with "{number}" for the number of the ticket, the same for the same idempotency_key; the keys are kept in
FILE.tickets.
"""

# ruff: noqa: T201  # it is a program
from __future__ import annotations

import json
import sys
from pathlib import Path

FILE = Path(sys.argv[1])
TICKETS = FILE.with_name(f"{FILE.name}.tickets")
ARGUMENTS = {
    "check_warranty": ["serial_number"],
    "create_ticket": [
        *("serial_number", "warranty_status", "customer_email", "priority", "category", "idempotency_key"),
    ],
}


def ticket_number(key: str) -> int:
    keys = TICKETS.read_text().split() if TICKETS.exists() else []
    if key not in keys:
        TICKETS.write_text("\n".join([*keys, key]))
        keys.append(key)
    return keys.index(key) + 1


def call(tool: str, given: dict[str, str]) -> dict[str, object]:
    answers = json.loads(FILE.read_text())[tool]
    answer = next((answers[value] for value in given.values() if value in answers), answers.get("*"))
    text = json.dumps(answer)
    if tool == "create_ticket":
        text = text.replace('"{integer}"', "{number}").replace("{number}", str(ticket_number(given["idempotency_key"])))
    return {"content": [{"type": "text", "text": text}], "isError": False}


def result(method: str, parameters: dict) -> dict[str, object]:
    match method:
        case "initialize":
            return {
                "protocolVersion": parameters["protocolVersion"],
                "capabilities": {"tools": {}},
                "serverInfo": {"name": "foreign", "version": "1"},
            }
        case "tools/list":
            schemas = {
                name: {"type": "object", "properties": {argument: {"type": "string"} for argument in arguments}}
                for name, arguments in ARGUMENTS.items()
            }
            return {"tools": [{"name": name, "inputSchema": schema} for name, schema in schemas.items()]}
        case "tools/call":
            return call(parameters["name"], parameters["arguments"])
    return {}


for line in sys.stdin:
    message = json.loads(line)
    if "id" in message and "method" in message:
        answer = {"jsonrpc": "2.0", "id": message["id"], "result": result(message["method"], message.get("params", {}))}
        print(json.dumps(answer), flush=True)
