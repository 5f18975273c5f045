"""Keys by name."""

from __future__ import annotations

import pytest

from guarantee_email_agent.sandbox.inside.browser_page import MODIFIERS, key_event


@pytest.mark.parametrize(
    ("name", "key", "number"),
    [
        ("Enter", "Enter", 13),
        ("return", "Enter", 13),
        ("ESC", "Escape", 27),
        ("left", "ArrowLeft", 37),
        ("f5", "F5", 116),
    ],
)
def test_a_key_has_many_names(name: str, key: str, number: int) -> None:
    assert (key_event(name)["key"], key_event(name)["windowsVirtualKeyCode"]) == (key, number)


def test_a_character_types_itself_unless_a_modifier_is_held() -> None:
    assert key_event("ä")["text"] == "ä"
    assert key_event("A", MODIFIERS["Shift"])["text"] == "A"
    with_control = key_event("a", MODIFIERS["Control"])
    assert (with_control.get("text"), with_control["commands"]) == (None, ["selectAll"])
