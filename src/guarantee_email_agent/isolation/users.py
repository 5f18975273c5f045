"""The user ids that judges and sandboxes run as where we are root, so that a sandbox's port can tell who comes."""

from __future__ import annotations

from typing import Final

FIRST_SANDBOX_USER: Final = 1_879_048_192
"""Sandboxes run as users from here on, each numbered by its port."""

FIRST_JUDGE_USER: Final = 2_000_000_000
"""Judges run as users from here on, one for each server that starts them."""

FIRST_JUDGE_USER_OF_FEW: Final = 40_000
"""The same where only 65,536 users are mapped, as in a container with a user namespace of its own."""

judge_users: Final[set[int]] = set()
"""The users that judges of this process with the host's network run as at the moment; none where we are not root."""
