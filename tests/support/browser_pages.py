"""Pages in a real browser, from disk or from a server: scripts run, sizes and colour schemes set, pictures taken."""

import asyncio
import os
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from guarantee_email_agent.sandbox.embedded import BROWSERS
from guarantee_email_agent.sandbox.inside.devtools import DevTools

_DEADLINE_S = 60
_AXE = Path(__file__).parents[2] / "node_modules" / "axe-core" / "axe.min.js"
_STANDARDS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


class Browser:
    """One page of a headless browser. `complaints`: what the page and the browser wrote to the console."""

    def __init__(self, runner: asyncio.Runner, tools: DevTools, session: str) -> None:
        self._runner, self._tools, self._session = runner, tools, session
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self._loaded: asyncio.Event | None = None
        tools.listen(session, self._on_event)

    def _on_event(self, message: dict[str, Any]) -> None:
        method, values = message.get("method"), message.get("params", {})
        if method == "Page.loadEventFired" and self._loaded is not None:
            self._loaded.set()
        elif method == "Log.entryAdded":
            self.complaints.append(values["entry"]["text"])
        elif method == "Runtime.exceptionThrown":
            self.complaints.append(str(values["exceptionDetails"]))
        elif method == "Network.requestWillBeSent":
            self.requests.append(values["request"]["url"])

    def call(self, method: str, **values: Any) -> dict[str, Any]:
        async def answer() -> dict[str, Any]:
            async with asyncio.timeout(_DEADLINE_S):
                return await self._tools.call(method, self._session, **values)

        return self._runner.run(answer())

    def open(self, page: Path | str, *, width: int = 1280, dark: bool = False, scripts: bool = True) -> None:
        """page: a file, or an address. Returns once it is loaded."""
        for domain in ("Page", "Log", "Runtime", "Network"):
            self.call(f"{domain}.enable")
        self.call("Emulation.setScriptExecutionDisabled", value=not scripts)
        self.call("Emulation.setEmulatedMedia", features=[_colors("dark" if dark else "light")])
        self.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600
        )
        self.complaints.clear()
        self.requests.clear()

        address = page if isinstance(page, str) else page.absolute().as_uri()
        self.follow(lambda: self.call("Page.navigate", url=address))

    def follow(self, act: Callable[[], object]) -> None:
        """Do what leads to another page, and return once that is loaded."""
        self._loaded = asyncio.Event()
        act()

        async def wait(loaded: asyncio.Event) -> None:
            async with asyncio.timeout(_DEADLINE_S):
                await loaded.wait()

        self._runner.run(wait(self._loaded))

    def evaluate(self, expression: str) -> Any:
        """The value of JavaScript in the page, which its own policy does not forbid."""
        found = self.call("Runtime.evaluate", expression=expression, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")


def _colors(scheme: str) -> dict[str, str]:
    return {"name": "prefers-color-scheme", "value": scheme}


def accessibility_violations(browser: Browser) -> list[tuple[str, list[str]]]:
    """Each rule of axe that the page breaks, with where. Skips where axe is missing."""
    if not _AXE.is_file():
        pytest.skip("axe-core is not installed: npm install --no-save axe-core")
    browser.evaluate(f"{_AXE.read_text(encoding='utf-8')};0")
    found = browser.evaluate(f"axe.run(document, {{runOnly: {_STANDARDS}}})")
    return [(each["id"], [node["html"] for node in each["nodes"]]) for each in found["violations"]]


def browser_program() -> str | None:
    """The browser of this machine; None where there is none."""
    return next(filter(None, map(shutil.which, BROWSERS)), None)


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """A headless browser with an empty page."""
    program = browser_program()
    assert program is not None
    to_browser, from_us = os.pipe()
    from_browser, to_us = os.pipe()
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--disable-background-networking"]
    with tempfile.TemporaryDirectory(prefix="browser-", ignore_cleanup_errors=True) as profile:
        # 3 and 4 are where a browser looks for these pipes.
        command = f'exec "$0" "$@" 3<&{to_browser} 4>&{to_us}'
        process = subprocess.Popen(
            ["bash", "-c", command, program, *options, f"--user-data-dir={profile}", "--remote-debugging-pipe"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            pass_fds=(to_browser, to_us),
        )
        os.close(to_browser)
        os.close(to_us)
        with asyncio.Runner() as runner:
            tools = runner.run(DevTools.connect(from_browser, from_us))
            try:
                page = runner.run(tools.call("Target.createTarget", url="about:blank"))["targetId"]
                attached = runner.run(tools.call("Target.attachToTarget", targetId=page, flatten=True))
                yield Browser(runner, tools, attached["sessionId"])
                runner.run(tools.call("Browser.close"))
            finally:
                tools.close()
                process.kill()
                process.wait()
