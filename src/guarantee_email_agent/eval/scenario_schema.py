"""The JSON schema of scenario files, which editors complete and check them by.

`python -m guarantee_email_agent.eval.scenario_schema` prints it; with a path it writes that file.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any, Final

from guarantee_email_agent.eval.models import EvalTestCase, MockResponses
from guarantee_email_agent.files.json_schema import json_schema

_BODY_KEYS: Final = ("input", "expected_output")


def scenario_schema() -> dict[str, Any]:
    """JSON Schema 2020-12 for one YAML document of a scenario file: the whole scenario, its frontmatter or its body.

    A schema always sees one document, so a file of two has to fit document by document.
    """
    schema = json_schema(EvalTestCase, "Scenario of guarantee-email-agent")
    frontmatter = [key for key in schema.pop("required") if key not in _BODY_KEYS]
    email_and_mocks = schema["properties"]["input"]["properties"]
    email_and_mocks["mock_responses"] |= _mock_schema()
    return {
        **schema,
        "type": "object",
        "anyOf": [
            {"title": "Frontmatter and body", "required": [*frontmatter, *_BODY_KEYS]},
            {"title": "Frontmatter", "required": frontmatter, "properties": dict.fromkeys(_BODY_KEYS, False)},
            {"title": "Body", "required": list(_BODY_KEYS), "properties": dict.fromkeys(frontmatter, False)},
        ],
    }


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
    return {"properties": services, "additionalProperties": False}


if __name__ == "__main__":
    if sys.argv[1:]:
        Path(sys.argv[1]).write_text(schema_text(), encoding="utf-8")
    else:
        sys.stdout.write(schema_text())
