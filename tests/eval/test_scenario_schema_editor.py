"""Scenario files in an editor: the language server that VS Code and others ask about YAML, over its stdio."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from scenario_folder import ROOT, SHIPPED, TEMPLATE

SERVER = ROOT / "node_modules" / "yaml-language-server" / "bin" / "yaml-language-server"
NODE = shutil.which("node")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        NODE is None or not SERVER.exists(),
        reason="no yaml-language-server: npm install --no-save --no-package-lock yaml-language-server@1.25.0",
    ),
]


class LanguageServer:
    """Speaks LSP with the server, one message at a time."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [str(NODE), str(SERVER), "--stdio"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        self._send(id=1, method="initialize", params={"processId": None, "rootUri": None, "capabilities": {}})
        while self._receive().get("id") != 1:
            pass
        self._send(method="initialized", params={})

    def diagnose(self, path: Path) -> list[tuple[int, str]]:
        """Line, from 1, and message of each problem that an editor would underline."""
        uri = path.resolve().as_uri()
        document = {"uri": uri, "languageId": "yaml", "version": 1, "text": path.read_text(encoding="utf-8")}
        self._send(method="textDocument/didOpen", params={"textDocument": document})
        while True:
            message = self._receive()
            if message.get("method") == "textDocument/publishDiagnostics" and message["params"]["uri"] == uri:
                found = message["params"]["diagnostics"]
                return sorted((each["range"]["start"]["line"] + 1, each["message"]) for each in found)
            if "id" in message and "method" in message:
                settings = message["method"] == "workspace/configuration"
                self._send(id=message["id"], result=[{} for _ in message["params"]["items"]] if settings else None)

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _send(self, **message: Any) -> None:
        content = json.dumps({"jsonrpc": "2.0", **message}).encode()
        assert self._process.stdin is not None
        self._process.stdin.write(b"Content-Length: %d\r\n\r\n" % len(content) + content)
        self._process.stdin.flush()

    def _receive(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        length = 0
        while line := self._process.stdout.readline().strip():
            if match := re.fullmatch(rb"content-length: *(\d+)", line, re.IGNORECASE):
                length = int(match[1])
        assert length, "the language server has ended"
        message: dict[str, Any] = json.loads(self._process.stdout.read(length))
        return message


@pytest.fixture(scope="module")
def editor() -> Iterator[LanguageServer]:
    server = LanguageServer()
    yield server
    server.close()


def problems(editor: LanguageServer, folder: Path, text: str) -> list[tuple[int, str]]:
    shutil.copy(SHIPPED / "schema.json", folder)
    file = folder / "valid_warranty_001.yaml"
    file.write_text(text, encoding="utf-8")
    return editor.diagnose(file)


def test_no_shipped_scenario_is_underlined(editor: LanguageServer) -> None:
    files = [*sorted(SHIPPED.rglob("*_001.yaml")), SHIPPED / "_template.yaml"]
    assert {file.name: found for file in files if (found := editor.diagnose(file))} == {}


@pytest.mark.parametrize(
    ("good", "bad", "message"),
    [
        ("email_sent", "email_snt", "Property email_snt is not allowed."),
        ("created: 2026", "creatd: 2026", 'Missing property "created".'),
        ("ticket_created: true", "ticket_created: often", "Incorrect type. Expected one of boolean, null."),
        ("2026-01-18T10:00:00Z", "yesterday", "String does not match the pattern of"),
        ('status: "valid"', "error: timout", "Value is not accepted. Valid values:"),
    ],
)
def test_what_the_loader_refuses_is_underlined(
    editor: LanguageServer, tmp_path: Path, good: str, bad: str, message: str
) -> None:
    found = problems(editor, tmp_path, TEMPLATE.replace(good, bad, 1))
    assert any(message in text for _, text in found), found


def test_of_two_documents_the_second_is_missed(editor: LanguageServer, tmp_path: Path) -> None:
    found = problems(editor, tmp_path, TEMPLATE.replace("input:", "---\ninput:"))
    assert [text for _, text in found] == ['Missing property "expected_output".', 'Missing property "input".']
