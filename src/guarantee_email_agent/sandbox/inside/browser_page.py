"""The page in the browser: input, navigation, and what it contains."""

from __future__ import annotations

import asyncio
import binascii
import json
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager, suppress
from typing import Any, Final

from .api_request import InvalidArgumentError, RequestError
from .devtools import DevTools

# Keys that are called what they are, by the browser's number of them.
_NUMBERS: Final = (
    {"Backspace": 8, "Tab": 9, "Escape": 27, "PageUp": 33, "PageDown": 34, "End": 35, "Home": 36}
    | {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40, "Insert": 45, "Delete": 46}
    | {f"F{number}": 111 + number for number in range(1, 13)}
)
# name in lower case → (key, code, number, text)
_NAMED: Final[dict[str, tuple[str, str, int, str]]] = {
    "enter": ("Enter", "Enter", 13, "\r"),
    "space": (" ", "Space", 32, " "),
    "shift": ("Shift", "ShiftLeft", 16, ""),
    "control": ("Control", "ControlLeft", 17, ""),
    "alt": ("Alt", "AltLeft", 18, ""),
    "meta": ("Meta", "MetaLeft", 91, ""),
    **{name.lower(): (name, name, number, "") for name, number in _NUMBERS.items()},
}
_ALIASES: Final = (
    {"return": "enter", "esc": "escape", "del": "delete", " ": "space", "pgup": "pageup", "pgdn": "pagedown"}
    | {"left": "arrowleft", "up": "arrowup", "right": "arrowright", "down": "arrowdown"}
    | {"ctrl": "control", "cmd": "meta", "command": "meta", "win": "meta", "option": "alt"}
)
MODIFIERS: Final = {"Alt": 1, "Control": 2, "Meta": 4, "Shift": 8}
# What the browser does for a combination; without the word it sends the key and does nothing.
_COMMANDS: Final = {"a": "selectAll", "c": "copy", "v": "paste", "x": "cut", "z": "undo"}


def key_event(name: str, modifiers: int = 0) -> dict[str, Any]:
    """Parameters of Input.dispatchKeyEvent for a key. Raises InvalidArgumentError for a name that is none."""
    wanted = _ALIASES.get(name.lower(), name.lower())
    if wanted in _NAMED:
        key, code, number, text = _NAMED[wanted]
    elif len(name) == 1:
        key, text = name, name
        upper = name.upper()
        plain = upper.isascii() and upper.isalnum()
        code = (f"Key{upper}" if upper.isalpha() else f"Digit{upper}") if plain else ""
        number = ord(upper) if plain else 0
    else:
        known = f"single characters, {', '.join(sorted(_NAMED))}"
        raise InvalidArgumentError("key", f"there is no key {name[:40]!r}; known: {known}")
    result = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
    if text and not modifiers & ~MODIFIERS["Shift"]:
        result["text"] = text
    elif modifiers & (MODIFIERS["Control"] | MODIFIERS["Meta"]) and key.lower() in _COMMANDS:
        result["commands"] = [_COMMANDS[key.lower()]]
    return result


WIDTH, HEIGHT = 1280, 1024
_LOAD_S: Final = 30.0
_SCRIPT_MS: Final = 30_000
_POLL_S: Final = 0.05
_PING_S: Final = 2.0
_MAX_HEIGHT: Final = 16_384
# Events that a navigation begins with.
_NAVIGATION_STARTED: Final = frozenset(
    {"Page.frameRequestedNavigation", "Page.frameStartedNavigating", "Page.frameStartedLoading"}
)
# A new page is there, or the same one at another place (#part).
_NAVIGATION_DONE: Final = frozenset({"Page.frameNavigated", "Page.navigatedWithinDocument"})
_INDEX_ATTRIBUTE: Final = "data-sandbox-index"
_MAX_ELEMENTS: Final = 200
_MAX_OPENED: Final = 100

# Numbers what a person could click or fill in, and remembers the number on the element.
_NUMBER_ELEMENTS: Final = """((mark, most) => {
  document.querySelectorAll(`[${mark}]`).forEach(e => e.removeAttribute(mark));
  const wanted = 'a[href],button,input:not([type=hidden]),select,textarea,[role=button],[role=link],[role=checkbox],'
    + '[role=tab],[role=menuitem],[role=option],[contenteditable=true],[onclick],summary,label[for]';
  const found = [];
  for (const e of document.querySelectorAll(wanted)) {
    const r = e.getBoundingClientRect(), s = getComputedStyle(e);
    if (r.width < 1 || r.height < 1 || s.visibility === 'hidden' || s.display === 'none') continue;
    e.setAttribute(mark, found.length);
    found.push({index: found.length, tag: e.tagName.toLowerCase(), type: e.type || null, id: e.id || null,
      name: e.getAttribute('name'), href: e.href || null,
      text: (e.innerText || e.value || e.placeholder || e.getAttribute('aria-label') || '').trim().slice(0, 200),
      x: Math.round(r.x + r.width / 2), y: Math.round(r.y + r.height / 2)});
    if (found.length >= most) break;
  }
  return found;
})"""
_LOCATE: Final = """(e => { if (!e) return null; e.scrollIntoView({block: 'center', inline: 'center'});
  const r = e.getBoundingClientRect(); return [r.x + r.width / 2, r.y + r.height / 2]; })"""
_FILL: Final = """((e, text) => { if (!e) return false; e.focus();
  if (e.isContentEditable) { e.textContent = text; }
  else { const p = e instanceof HTMLTextAreaElement ? HTMLTextAreaElement.prototype : HTMLInputElement.prototype;
    const d = Object.getOwnPropertyDescriptor(p, 'value'); d && d.set ? d.set.call(e, text) : (e.value = text); }
  e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}));
  return true; })"""
_SELECT: Final = """((e, value, label, index) => { if (!e || !e.options) return false;
  const o = [...e.options].findIndex((o, i) => value !== null ? o.value === value
    : label !== null ? o.label === label : i === index);
  if (o < 0) return false; e.selectedIndex = o;
  e.dispatchEvent(new Event('input', {bubbles: true})); e.dispatchEvent(new Event('change', {bubbles: true}));
  return true; })"""


class BrowserPage:
    """The page in front. A page that opens another one gives way to it.

    Everything raises RequestError with what the browser or the page says, and with status 408 where it takes too long.
    """

    def __init__(self, devtools: DevTools) -> None:
        self._devtools = devtools
        self._target = ""
        self._session = ""
        self._opened: list[str] = []
        self._abandoned: set[str] = set()
        self._seen: set[str] = set()
        self._news = asyncio.Event()
        self.mouse = (0.0, 0.0)
        self._dialogs = 0

    async def start(self) -> None:
        self._devtools.listen("", self._note_target)
        await self._devtools.call("Target.setDiscoverTargets", discover=True)
        await self.select_newest()

    async def select_newest(self) -> None:
        """Go on with the page that is open now: the newest one that was opened, else any, else a new one."""
        targets = (await self._devtools.call("Target.getTargets")).get("targetInfos", [])
        pages = [target["targetId"] for target in targets if target.get("type") == "page"]
        pages = [page for page in pages if page not in self._abandoned]
        candidates = (*reversed(self._opened), self._target, *pages[:1])
        self._opened.clear()
        target = next((target for target in candidates if target in pages), None)
        if target is None:
            target = (await self._devtools.call("Target.createTarget", url="about:blank"))["targetId"]
        if target != self._target:
            attached = await self._devtools.call("Target.attachToTarget", targetId=target, flatten=True)
            self._target, self._session = target, attached["sessionId"]
            self._devtools.listen(self._session, self._note_event)
            await self._call("Page.enable")
            size = {"width": WIDTH, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
            await self._call("Emulation.setDeviceMetricsOverride", **size)

    async def abandon_if_stuck(self) -> None:
        with suppress(RequestError):
            try:
                async with asyncio.timeout(_PING_S):
                    await self._call("Page.stopLoading")  # nothing else is answered while a server is waited for
                    await self._call("Runtime.evaluate", expression="1")
            except TimeoutError:
                self._abandon("the page hangs")

    def _abandon(self, reason: str) -> None:
        """A page that crashed or hangs answers nobody, so the next request begins with another one."""
        self._devtools.fail_session(self._session, reason)
        self._abandoned.add(self._target)
        close = {"method": "Target.closeTarget", "params": {"targetId": self._target}}
        self._target = ""
        with suppress(RequestError):
            self._devtools.send(close, lambda _: None)

    def _note_target(self, event: dict[str, Any]) -> None:
        method, parameters = event.get("method"), event.get("params", {})
        information = parameters.get("targetInfo", {})
        if method == "Target.targetCreated" and information.get("type") == "page" and information.get("openerId"):
            self._opened = [*self._opened[-_MAX_OPENED:], information["targetId"]]
        elif method == "Target.targetCrashed" and parameters.get("targetId") == self._target:
            self._abandon("the page has crashed")

    def _note_event(self, event: dict[str, Any]) -> None:
        if event.get("sessionId") != self._session:
            return
        if event.get("method") == "Page.javascriptDialogOpening":
            self._dialogs += 1
            # Nobody is there to close it, and the page waits until somebody does.
            accept = {"method": "Page.handleJavaScriptDialog", "params": {"accept": True}, "sessionId": self._session}
            with suppress(RequestError):
                self._devtools.send(accept, lambda _: None)
        self._seen.add(str(event.get("method")))
        self._news.set()

    async def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return await self._devtools.call(method, self._session, **parameters)

    async def navigate(self, url: str, wait_until: str, timeout_s: float | None) -> dict[str, Any]:
        async with self._time_limit(_LOAD_S if timeout_s is None else timeout_s, "the page was not loaded"):
            if self._dialogs:
                # While one dialog follows the other the browser does not leave a page.
                with suppress(TimeoutError):
                    async with asyncio.timeout(_PING_S):
                        return await self._load(url, wait_until)
                self._abandon("the page was left")
                await self.select_newest()
            return await self._load(url, wait_until)

    async def _load(self, url: str, wait_until: str) -> dict[str, Any]:
        self._seen.clear()
        result = await self._call("Page.navigate", url=url)
        if "errorText" in result:
            raise RequestError(400, f"{url[:500]}: {result['errorText']}")
        self._dialogs = 0
        if wait_until != "commit" and "loaderId" in result:
            parsed = wait_until == "domcontentloaded"
            await self._wait_for({"Page.domContentEventFired" if parsed else "Page.loadEventFired"})
        return await self.address()

    async def address(self) -> dict[str, Any]:
        return {"url": await self.evaluate("location.href"), "title": await self.evaluate("document.title")}

    async def reload(self) -> dict[str, Any]:
        self._seen.clear()
        async with self._time_limit(_LOAD_S, "the page was not loaded"):
            await self._call("Page.reload")
            await self._wait_for({"Page.loadEventFired"})
            return await self.address()

    async def go(self, steps: int) -> dict[str, Any]:
        """Back or forward in the history."""
        history = await self._call("Page.getNavigationHistory")
        position = history["currentIndex"] + steps
        if not 0 <= position < len(history["entries"]):
            raise RequestError(400, "there is no such page in the history")
        self._seen.clear()
        async with self._time_limit(_LOAD_S, "the page was not there"):
            await self._call("Page.navigateToHistoryEntry", entryId=history["entries"][position]["id"])
            # A page restored from the back/forward cache fires no second load event.
            await self._wait_for(_NAVIGATION_DONE)
            await self._poll("document.readyState === 'complete'")
            return await self.address()

    async def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, or of its promise."""
        options = {"returnByValue": True, "awaitPromise": True, "userGesture": True, "timeout": _SCRIPT_MS}
        result = await self._call("Runtime.evaluate", expression=expression, **options)
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            description = details.get("exception", {}).get("description") or details.get("text") or "it failed"
            raise RequestError(400, f"the page: {str(description)[:2000]}")
        return result.get("result", {}).get("value")

    async def text(self) -> str:
        return str(await self.evaluate("document.body ? document.body.innerText : ''") or "")

    async def html(self, *, outer: bool) -> str:
        return str(await self.evaluate(f"document.documentElement.{'outer' if outer else 'inner'}HTML") or "")

    async def elements(self) -> Any:
        return await self.evaluate(f"{_NUMBER_ELEMENTS}({json.dumps(_INDEX_ATTRIBUTE)}, {_MAX_ELEMENTS})")

    async def screenshot(self, *, full_page: bool) -> bytes:
        """As PNG."""
        options: dict[str, Any] = {"format": "png", "captureBeyondViewport": full_page}
        if full_page:
            size = (await self._call("Page.getLayoutMetrics"))["cssContentSize"]
            height = min(size["height"], _MAX_HEIGHT)
            options["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1}
        return binascii.a2b_base64((await self._call("Page.captureScreenshot", **options))["data"])

    async def locate(self, selector: str | None, index: int | None) -> tuple[float, float]:
        """The middle of an element, in pixels of the window."""
        x, y = await self._apply(_LOCATE, selector, index)
        return float(x), float(y)

    async def fill(self, selector: str | None, index: int | None, text: str) -> None:
        await self._apply(_FILL, selector, index, text)

    async def select(self, selector: str, value: str | None, label: str | None, index: int | None) -> None:
        await self._apply(_SELECT, selector, None, value, label, index, missing="no list with such an option matches")

    async def _apply(
        self,
        function: str,
        selector: str | None,
        index: int | None,
        *arguments: object,
        missing: str = "no element matches",
    ) -> Any:
        """What a JavaScript function returns for an element. What was given goes in as a string, never as code."""
        if selector is None and index is None:
            problem = "is missing; give a CSS selector, or an index from the list of elements"
            raise InvalidArgumentError("selector", problem)
        element = json.dumps(f'[{_INDEX_ATTRIBUTE}="{index}"]' if selector is None else selector)
        values = "".join(f", {json.dumps(argument)}" for argument in arguments)
        result = await self.evaluate(f"{function}(document.querySelector({element}){values})")
        if not result:
            raise RequestError(404, f"{missing} {f'number {index}' if selector is None else repr(selector[:200])}")
        return result

    async def wait(self, condition: str, timeout_s: float) -> None:
        async with self._time_limit(timeout_s, "it did not come about"):
            await self._poll(condition)

    async def mouse_event(
        self, kind: str, x: float, y: float, button: str = "none", clicks: int = 0, **more: Any
    ) -> None:
        self.mouse = (x, y)
        event = {"type": kind, "x": x, "y": y, "button": button, "clickCount": clicks}
        await self._call("Input.dispatchMouseEvent", **event, **more)

    async def click(self, x: float, y: float, button: str = "left", clicks: int = 1) -> None:
        self._seen.clear()
        await self.mouse_event("mouseMoved", x, y)
        for count in range(1, clicks + 1):
            await self.mouse_event("mousePressed", x, y, button, count)
            await self.mouse_event("mouseReleased", x, y, button, count)
        await self._wait_for_navigation()

    async def drag(self, x: float, y: float) -> None:
        """From where the mouse is."""
        x0, y0 = self.mouse
        await self.mouse_event("mousePressed", x0, y0, "left", 1)
        # Pages take a drag for one once the mouse has moved on the way.
        await self.mouse_event("mouseMoved", (x0 + x) / 2, (y0 + y) / 2, "left", buttons=1)
        await self.mouse_event("mouseMoved", x, y, "left", buttons=1)
        await self.mouse_event("mouseReleased", x, y, "left", 1)

    async def scroll(self, dx: float, dy: float) -> None:
        """Pixels to the right and down."""
        x, y = self.mouse if self.mouse != (0.0, 0.0) else (WIDTH / 2, HEIGHT / 2)
        self._seen.clear()
        await self.mouse_event("mouseWheel", x, y, deltaX=dx, deltaY=dy)
        await self._wait_for_navigation()

    async def type(self, text: str) -> None:
        await self._call("Input.insertText", text=text)

    async def press(self, *names: str) -> None:
        """One key, or several together, the last one last."""
        self._seen.clear()
        held, keys = 0, []
        for name in names:
            key = key_event(name, held)
            held |= MODIFIERS.get(key["key"], 0)
            keys.append(key)
        for key in keys:
            await self._call("Input.dispatchKeyEvent", type="keyDown" if "text" in key else "rawKeyDown", **key)
        for key in reversed(keys):
            await self._call("Input.dispatchKeyEvent", type="keyUp", **{**key, "text": ""})
        await self._wait_for_navigation()

    async def _wait_for_navigation(self) -> None:
        """A click may start a navigation; what is asked next should see the new page."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_POLL_S):
                await self._wait_for(_NAVIGATION_STARTED)
        if self._seen & _NAVIGATION_STARTED:
            with suppress(TimeoutError):
                async with asyncio.timeout(_LOAD_S):
                    await self._poll("document.readyState === 'complete'")

    async def _wait_for(self, methods: Collection[str]) -> None:
        """Until one of these events has come since they were last forgotten."""
        while not self._seen.intersection(methods):
            self._news.clear()
            await self._news.wait()

    async def _poll(self, condition: str) -> None:
        while True:
            try:
                if await self.evaluate(f"Boolean({condition})"):
                    return
            except RequestError as error:
                # While one page goes and the next comes there is nothing to ask.
                if error.status != 400 or "the page:" in error.message:
                    raise
            await asyncio.sleep(_POLL_S)

    @asynccontextmanager
    async def _time_limit(self, seconds: float, problem: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(seconds):
                yield
        except TimeoutError:
            raise RequestError(408, f"{problem} within {seconds:g} s") from None
