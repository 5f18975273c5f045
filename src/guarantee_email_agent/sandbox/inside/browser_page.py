"""The page in the browser: input, navigation, and what it contains."""

from __future__ import annotations

import binascii
import json
import time
from typing import Any, Final

from .api_request import InvalidArgumentError, RequestError
from .devtools import DevTools
from .key_names import MODIFIERS, key_event

WIDTH, HEIGHT = 1280, 1024
_LOAD_S: Final = 30.0
_SCRIPT_S: Final = 30.0
_POLL_S: Final = 0.05
_MAX_HEIGHT: Final = 16_384
# Events that a navigation begins with, in this order.
_NAVIGATION_STARTED: Final = (
    "Page.frameRequestedNavigation",
    "Page.frameStartedNavigating",
    "Page.frameStartedLoading",
)
# A new page is there, or the same one at another place (#part).
_NAVIGATION_DONE: Final = ("Page.frameNavigated", "Page.navigatedWithinDocument")
_INDEX_ATTRIBUTE: Final = "data-sandbox-index"
_MAX_ELEMENTS: Final = 200

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
_CHECK: Final = "((e, wanted) => { if (!e) return false; if (e.checked !== wanted) e.click(); return true; })"


class BrowserPage:
    """The page in front. A page that opens another one gives way to it."""

    def __init__(self, devtools: DevTools) -> None:
        self._devtools = devtools
        self._target = ""
        self._session = ""
        self.width, self.height = WIDTH, HEIGHT
        self.mouse = (0.0, 0.0)
        devtools.call("Target.setDiscoverTargets", discover=True)
        self.select_newest()

    def select_newest(self) -> None:
        """Go on with the page that is open now: the newest one that was opened, else any, else a new one."""
        self._devtools.drain()
        created = [
            event["params"]["targetInfo"]
            for event in self._devtools.events
            if event.get("method") == "Target.targetCreated"
        ]
        opened = [info["targetId"] for info in created if info.get("type") == "page" and info.get("openerId")]
        targets = self._devtools.call("Target.getTargets").get("targetInfos", [])
        pages = [target["targetId"] for target in targets if target.get("type") == "page"]
        self._devtools.discard_events("Target.targetCreated")
        candidates = (*reversed(opened), self._target, *pages[:1])
        target = next((target for target in candidates if target in pages), None)
        if target is None:
            target = self._devtools.call("Target.createTarget", url="about:blank")["targetId"]
        if target != self._target:
            attached = self._devtools.call("Target.attachToTarget", targetId=target, flatten=True)
            self._target, self._session = target, attached["sessionId"]
            self._call("Page.enable")
            self.resize(self.width, self.height)

    def _call(self, method: str, **parameters: Any) -> dict[str, Any]:
        return self._devtools.call(method, self._session, **parameters)

    def resize(self, width: int, height: int) -> None:
        self.width, self.height = width, height
        self._call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=False)

    def navigate(self, url: str, wait_until: str, timeout_s: float | None) -> dict[str, Any]:
        self._discard_page_events()
        result = self._call("Page.navigate", url=url)
        if "errorText" in result:
            raise RequestError(400, f"{url[:500]}: {result['errorText']}")
        if wait_until != "commit" and "loaderId" in result:
            self._wait_for_load(wait_until, timeout_s)
        return self.address()

    def address(self) -> dict[str, Any]:
        return {"url": self.evaluate("location.href"), "title": self.evaluate("document.title")}

    def reload(self) -> dict[str, Any]:
        self._discard_page_events()
        self._call("Page.reload")
        self._wait_for_load("load", None)
        return self.address()

    def go(self, steps: int) -> dict[str, Any]:
        """Back or forward in the history."""
        history = self._call("Page.getNavigationHistory")
        position = history["currentIndex"] + steps
        if not 0 <= position < len(history["entries"]):
            raise RequestError(400, "there is no such page in the history")
        self._discard_page_events()
        self._call("Page.navigateToHistoryEntry", entryId=history["entries"][position]["id"])
        # A page restored from the back/forward cache fires no second load event.
        if self._devtools.wait_for(_NAVIGATION_DONE, self._session, time.monotonic() + _LOAD_S) is None:
            raise RequestError(408, f"the page was not there within {_LOAD_S:g} s")
        self._poll("document.readyState === 'complete'", _LOAD_S)
        return self.address()

    def evaluate(self, expression: str) -> Any:
        """The value of a JavaScript expression, or of its promise. Raises RequestError with the page's error."""
        result = self._call(
            "Runtime.evaluate",
            expression=expression,
            returnByValue=True,
            awaitPromise=True,
            userGesture=True,
            timeout=max(int(min(self._devtools.remaining_s() - 1, _SCRIPT_S) * 1000), 1),
        )
        if "exceptionDetails" in result:
            details = result["exceptionDetails"]
            description = details.get("exception", {}).get("description") or details.get("text") or "it failed"
            raise RequestError(400, f"the page: {str(description)[:2000]}")
        return result.get("result", {}).get("value")

    def text(self) -> str:
        return str(self.evaluate("document.body ? document.body.innerText : ''") or "")

    def html(self, *, outer: bool) -> str:
        return str(self.evaluate(f"document.documentElement.{'outer' if outer else 'inner'}HTML") or "")

    def elements(self) -> Any:
        return self.evaluate(f"{_NUMBER_ELEMENTS}({json.dumps(_INDEX_ATTRIBUTE)}, {_MAX_ELEMENTS})")

    def screenshot(self, kind: str, quality: int | None, *, full_page: bool) -> bytes:
        options: dict[str, Any] = {"format": kind, "captureBeyondViewport": full_page}
        if quality is not None and kind != "png":
            options["quality"] = quality
        if full_page:
            size = self._call("Page.getLayoutMetrics")["cssContentSize"]
            height = min(size["height"], _MAX_HEIGHT)
            options["clip"] = {"x": 0, "y": 0, "width": size["width"], "height": height, "scale": 1}
        return binascii.a2b_base64(self._call("Page.captureScreenshot", **options)["data"])

    def locate(self, selector: str | None, index: int | None) -> tuple[float, float]:
        """The middle of an element, in pixels of the window. Raises RequestError where there is none."""
        x, y = self._apply(_LOCATE, selector, index)
        return float(x), float(y)

    def fill(self, selector: str | None, index: int | None, text: str) -> None:
        self._apply(_FILL, selector, index, text)

    def check(self, selector: str, *, checked: bool) -> None:
        self._apply(_CHECK, selector, None, checked)

    def select(self, selector: str, value: str | None, label: str | None, index: int | None) -> None:
        self._apply(_SELECT, selector, None, value, label, index, missing="no list with such an option matches")

    def _apply(
        self,
        function: str,
        selector: str | None,
        index: int | None,
        *arguments: object,
        missing: str = "no element matches",
    ) -> Any:
        """What a JavaScript function returns for an element. Raises RequestError where there is none.

        What was given goes in as a string, never as code.
        """
        if selector is None and index is None:
            problem = "is missing; give a CSS selector, or an index from the list of elements"
            raise InvalidArgumentError("selector", problem)
        element = json.dumps(f'[{_INDEX_ATTRIBUTE}="{index}"]' if selector is None else selector)
        values = "".join(f", {json.dumps(argument)}" for argument in arguments)
        result = self.evaluate(f"{function}(document.querySelector({element}){values})")
        if not result:
            raise RequestError(404, f"{missing} {f'number {index}' if selector is None else repr(selector[:200])}")
        return result

    def wait(self, condition: str, timeout_s: float) -> None:
        if not self._poll(condition, timeout_s):
            raise RequestError(408, f"it did not come about within {timeout_s:g} s")

    def mouse_event(self, kind: str, x: float, y: float, button: str = "none", clicks: int = 0, **more: Any) -> None:
        self.mouse = (x, y)
        self._call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button=button, clickCount=clicks, **more)

    def click(self, x: float, y: float, button: str = "left", clicks: int = 1) -> None:
        self._discard_page_events()
        self.mouse_event("mouseMoved", x, y)
        for count in range(1, clicks + 1):
            self.mouse_event("mousePressed", x, y, button, count)
            self.mouse_event("mouseReleased", x, y, button, count)
        self._wait_for_navigation()

    def scroll(self, dx: float, dy: float) -> None:
        """Pixels to the right and down."""
        x, y = self.mouse if self.mouse != (0.0, 0.0) else (self.width / 2, self.height / 2)
        self.mouse_event("mouseWheel", x, y, deltaX=dx, deltaY=dy)
        self._wait_for_navigation()

    def type(self, text: str) -> None:
        self._call("Input.insertText", text=text)

    def press(self, *names: str) -> None:
        """One key, or several together, the last one last."""
        self._discard_page_events()
        held, keys = 0, []
        for name in names:
            key = key_event(name, held)
            held |= MODIFIERS.get(key["key"], 0)
            keys.append(key)
        for key in keys:
            self._call("Input.dispatchKeyEvent", type="keyDown" if "text" in key else "rawKeyDown", **key)
        for key in reversed(keys):
            self._call("Input.dispatchKeyEvent", type="keyUp", **{**key, "text": ""})
        self._wait_for_navigation()

    def key(self, name: str, *, down: bool) -> None:
        key = key_event(name)
        kind = ("keyDown" if "text" in key else "rawKeyDown") if down else "keyUp"
        self._call("Input.dispatchKeyEvent", type=kind, **key)

    def _wait_for_navigation(self) -> None:
        """A click may start a navigation; what is asked next should see the new page."""
        until = time.monotonic() + _POLL_S
        while True:
            self._devtools.drain()
            if any(event.get("method") in _NAVIGATION_STARTED for event in self._devtools.events):
                self._poll("document.readyState === 'complete'", _LOAD_S)
                return
            if time.monotonic() >= until:
                return
            time.sleep(_POLL_S / 10)

    def _poll(self, condition: str, timeout_s: float) -> bool:
        until = time.monotonic() + timeout_s
        while True:
            try:
                if self.evaluate(f"Boolean({condition})"):
                    return True
            except RequestError as error:
                # While one page goes and the next comes there is nothing to ask.
                if error.status != 400 or "the page:" in error.message:
                    raise
            if time.monotonic() >= min(until, self._devtools.deadline - _POLL_S):
                return False
            time.sleep(_POLL_S)

    def _wait_for_load(self, wait_until: str, timeout_s: float | None) -> None:
        event = "Page.domContentEventFired" if wait_until == "domcontentloaded" else "Page.loadEventFired"
        seconds = _LOAD_S if timeout_s is None else timeout_s
        if self._devtools.wait_for((event,), self._session, time.monotonic() + seconds) is None:
            raise RequestError(408, f"the page was not loaded within {seconds:g} s")

    def _discard_page_events(self) -> None:
        self._devtools.drain()
        self._devtools.discard_events("Page.")
