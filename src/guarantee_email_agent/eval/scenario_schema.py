"""The JSON schema of scenario files, which editors complete and check them by.

`python -m guarantee_email_agent.eval.scenario_schema` prints it; with a path it writes that file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from guarantee_email_agent.eval.models import EvalTestCase, MockResponses
from guarantee_email_agent.eval.tool_mocks import ENTRY_KEYS, ToolAnswer
from guarantee_email_agent.files.json_schema import json_schema


def scenario_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 for a scenario file in one YAML document.

    A schema sees one document at a time, and editors ask it about the first one only. So a file of two documents, which
    loads as well, is told in an editor that the second half is missing.
    """
    schema = json_schema(EvalTestCase, "Scenario of guarantee-email-agent")
    email_and_mocks = schema["properties"]["input"]["properties"]
    email_and_mocks["mock_responses"] |= _mock_schema()
    schema["properties"]["input"] |= {"type": "object", "anyOf": [{"required": ["email"]}, {"required": ["task"]}]}
    schema["properties"]["expected_output"]["type"] = "object"
    required = ["email_sent", "ticket_created", "scenario_instruction_used"]  # as for our own agent
    said = {name: {"not": {"type": "null"}} for name in required}
    schema["if"] = {"properties": {"input": {"required": ["email"]}}}
    schema["then"] = {"properties": {"expected_output": {"required": required, "properties": said}}}
    return schema


def schema_text() -> str:
    """The schema as its file holds it."""
    return json.dumps(scenario_schema(), indent=2, ensure_ascii=False) + "\n"


def _mock_schema() -> dict[str, Any]:
    whole = json_schema(MockResponses)
    services = whole["properties"]
    for service in services.values():
        service.pop("default", None)
        service["type"] = "object"
    del services["warranty_api"]["additionalProperties"]  # facts may have any further keys
    del services["warranty_api"]["properties"]["status"]["default"]
    return {"properties": services, "additionalProperties": _tools_schema()}


def _tools_schema() -> dict[str, Any]:
    """Of an MCP server that is not ours: its tools, each with an answer, or entries that say when and what."""
    entry = {
        key: value for key, value in json_schema(ToolAnswer).items() if key in ("properties", "additionalProperties")
    }
    blocks = {"type": "array", "contains": {"type": "object", "required": ["type"]}}
    keys: list[dict[str, Any]] = [{"required": [key]} for key in sorted(ENTRY_KEYS)]
    is_entry = {"anyOf": [*keys, {"required": ["content"], "properties": {"content": blocks}}]}
    by_arguments = {"type": "array", "items": {"type": "object", "required": ["when"], **entry}, "minItems": 1}
    return {
        "description": "Another MCP server: its tools by name, each with its answer.",
        "type": "object",  # empty for one that is declared
        "additionalProperties": {
            "anyOf": [{"type": ["object", "string"]}, by_arguments],
            "if": {"type": "object", **is_entry},
            "then": entry,
        },
    }


if __name__ == "__main__":
    if sys.argv[1:]:
        Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
    else:
        sys.stdout.write(schema_text())
