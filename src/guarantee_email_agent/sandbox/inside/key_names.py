"""Keys by name, as the browser wants them described."""

from __future__ import annotations

from typing import Any, Final

from .api_request import InvalidArgumentError

# name in lower case → (key, code, number, text)
_NAMED: Final[dict[str, tuple[str, str, int, str]]] = {
    "enter": ("Enter", "Enter", 13, "\r"),
    "tab": ("Tab", "Tab", 9, ""),
    "escape": ("Escape", "Escape", 27, ""),
    "backspace": ("Backspace", "Backspace", 8, ""),
    "delete": ("Delete", "Delete", 46, ""),
    "insert": ("Insert", "Insert", 45, ""),
    "space": (" ", "Space", 32, " "),
    "arrowleft": ("ArrowLeft", "ArrowLeft", 37, ""),
    "arrowup": ("ArrowUp", "ArrowUp", 38, ""),
    "arrowright": ("ArrowRight", "ArrowRight", 39, ""),
    "arrowdown": ("ArrowDown", "ArrowDown", 40, ""),
    "home": ("Home", "Home", 36, ""),
    "end": ("End", "End", 35, ""),
    "pageup": ("PageUp", "PageUp", 33, ""),
    "pagedown": ("PageDown", "PageDown", 34, ""),
    "shift": ("Shift", "ShiftLeft", 16, ""),
    "control": ("Control", "ControlLeft", 17, ""),
    "alt": ("Alt", "AltLeft", 18, ""),
    "meta": ("Meta", "MetaLeft", 91, ""),
} | {f"f{number}": (f"F{number}", f"F{number}", 111 + number, "") for number in range(1, 13)}
_ALIASES: Final = {
    "return": "enter",
    "esc": "escape",
    "del": "delete",
    " ": "space",
    "left": "arrowleft",
    "up": "arrowup",
    "right": "arrowright",
    "down": "arrowdown",
    "pgup": "pageup",
    "pgdn": "pagedown",
    "ctrl": "control",
    "cmd": "meta",
    "command": "meta",
    "win": "meta",
    "option": "alt",
}
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
        raise InvalidArgumentError(
            "key", f"there is no key {name[:40]!r}; known: single characters, {', '.join(sorted(_NAMED))}"
        )
    result = {"key": key, "code": code, "windowsVirtualKeyCode": number, "modifiers": modifiers}
    if text and not modifiers & ~MODIFIERS["Shift"]:
        result["text"] = text
    elif modifiers & (MODIFIERS["Control"] | MODIFIERS["Meta"]) and key.lower() in _COMMANDS:
        result["commands"] = [_COMMANDS[key.lower()]]
    return result
