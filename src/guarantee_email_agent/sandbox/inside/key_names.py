"""Keys by name, as the browser wants them described."""

from __future__ import annotations

from typing import Any, Final

from .api_request import InvalidArgumentError

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
