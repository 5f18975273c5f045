"""Stands in for Gmail behind its npm server: that server's tools and schemas, and answers of its form.

    python gmail_server.py FOLDER

FOLDER/mails.json holds what is in the inbox; each call is added to FOLDER/calls.jsonl, with what is wrong about its
arguments according to the package's own schema. FOLDER/failure, where it is there, is the answer to every call.
"""

# ruff: noqa: T201  # it is a program
from __future__ import annotations

import json
import re
import sys
from pathlib import Path

import jsonschema

FOLDER = Path(sys.argv[1])
TOOLS = json.loads(Path(__file__).with_name("gmail_facts.json").read_text())["tools"]
LABELS: dict[str, str] = {}


def answer(tool: str, given: dict) -> str:
    if (FOLDER / "failure").exists():
        return (FOLDER / "failure").read_text()
    mails = json.loads((FOLDER / "mails.json").read_text())
    match tool:
        case "search_emails":
            found = [mail for mail in mails if matches(mail, given["query"])][: given.get("maxResults", 10)]
            return "\n".join(
                f"ID: {mail['id']}\nSubject: {mail['subject']}\nFrom: {mail['from']}\nDate: {mail['date']}\n"
                for mail in found
            )
        case "read_email":
            for mail in mails:
                if mail["id"] == given["messageId"]:
                    return (
                        f"Thread ID: {mail['thread']}\nSubject: {mail['subject']}\nFrom: {mail['from']}\n"
                        f"To: support@example.com\nDate: {mail['date']}\n\n{mail['body']}"
                    )
            return "Error: Requested entity was not found."
        case "get_or_create_label":
            label_id = f"Label_{len(given['name'])}"
            LABELS[label_id] = given["name"]
            return f"Successfully created new label:\nID: {label_id}\nName: {given['name']}\nType: user"
        case "modify_email":
            for mail in mails:
                if mail["id"] == given["messageId"]:
                    mail.setdefault("labels", []).extend(LABELS[label_id] for label_id in given["addLabelIds"])
            (FOLDER / "mails.json").write_text(json.dumps(mails))
            return f"Email {given['messageId']} labels updated successfully"
        case "send_email":
            return "Email sent successfully with ID: 18ffe00000000001"
    return f"Error: Unknown tool: {tool}"


def matches(mail: dict, query: str) -> bool:
    """As Gmail does for the operators that we use; `{a b}` is an alternative."""
    groups = re.findall(r"\{([^}]*)\}|(\S+)", query)
    return all(any(has(mail, term) for term in (either or one).split()) for either, one in groups)


def has(mail: dict, term: str) -> bool:
    operator, _, value = term.removeprefix("-").partition(":")
    found = {
        "in": lambda: value == "inbox",
        "label": lambda: value in mail.get("labels", ()),
        "is": lambda: {"starred": mail.get("starred"), "read": mail.get("read"), "unread": not mail.get("read")}[value],
        "after": lambda: mail["received"] >= int(value),
        "before": lambda: mail["received"] < int(value),
    }[operator]()
    return bool(found) is not term.startswith("-")


def main() -> None:
    for line in sys.stdin:
        message = json.loads(line)
        if "id" not in message:
            continue
        params = message.get("params", {})
        result: dict[str, object] | None = None
        match message["method"]:
            case "initialize":
                result = {
                    "protocolVersion": "2024-11-05",
                    "capabilities": {"tools": {}},
                    "serverInfo": {"name": "gmail", "version": "1.0.0"},
                }
            case "tools/list":
                result = {"tools": [{"name": name, "inputSchema": schema} for name, schema in TOOLS.items()]}
            case "tools/call":
                given = params["arguments"]
                wrong = [
                    error.message for error in jsonschema.Draft7Validator(TOOLS[params["name"]]).iter_errors(given)
                ]
                with (FOLDER / "calls.jsonl").open("a") as file:
                    file.write(json.dumps({"tool": params["name"], "given": given, "wrong": wrong}) + "\n")
                result = {"content": [{"type": "text", "text": answer(params["name"], given)}]}
        reply = {"result": result} if result else {"error": {"code": -32601, "message": "Method not found"}}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **reply}), flush=True)


main()
