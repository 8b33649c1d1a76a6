"""Process groups: send a signal to a group, and check whether it is running."""

from __future__ import annotations

import os

_PROC = "/proc"
_DEAD = ("Z", "X")


def send(leader: int, signal: int) -> bool:
    """Send a signal to the group of a process; return False if there is no such group or no right to signal it."""
    try:
        os.killpg(leader, signal)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_running(leader: int) -> bool:
    """Whether a process of a group is running; zombies do not count."""
    if not send(leader, 0):
        return False
    try:
        members = [state for each in os.listdir(_PROC) if each.isdecimal() and (state := _state_in(each, leader))]
    except OSError:
        return True  # no such directory, as on macOS: rely on the signal
    return any(state not in _DEAD for state in members)


def _state_in(process_id: str, leader: int) -> str | None:
    """The state of a process if it is in the group."""
    try:
        with open(f"{_PROC}/{process_id}/stat", "rb") as file:
            # The name comes first, in parentheses, and may contain any character.
            state, _, process_group = file.read().rpartition(b") ")[2].split(b" ")[:3]
    except (OSError, ValueError):
        return None  # it has just ended
    return state.decode() if int(process_group) == leader else None
