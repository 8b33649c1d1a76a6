"""Process groups: signals to all of one, and whether anything in it still runs."""

from __future__ import annotations

import os

_PROC = "/proc"
_DEAD = ("Z", "X")


def send(leader: int, signal: int) -> bool:
    """Send a signal to the group of a process, and tell whether there is one that may be sent to."""
    try:
        os.killpg(leader, signal)
    except (ProcessLookupError, PermissionError):
        return False
    return True


def is_running(leader: int) -> bool:
    """Whether something in a group runs; dead processes that their parent has not asked for do not count."""
    if not send(leader, 0):
        return False
    try:
        members = [state for each in os.listdir(_PROC) if each.isdecimal() and (state := _state_in(each, leader))]
    except OSError:
        return True  # no such directory, as on macOS: what the signal has told must do
    return any(state not in _DEAD for state in members)


def _state_in(process_id: str, leader: int) -> str | None:
    """The state of a process if it is in the group."""
    try:
        with open(f"{_PROC}/{process_id}/stat", "rb") as file:
            # The name comes first, in parentheses, and may have anything in it.
            state, _, process_group = file.read().rpartition(b") ")[2].split(b" ")[:3]
    except (OSError, ValueError):
        return None  # it has just gone
    return state.decode() if int(process_group) == leader else None
