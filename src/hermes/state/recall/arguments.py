"""The arguments of `session_search`. Models fill in arguments freely, so every value is checked here, once."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from hermes.errors import InvalidValue
from hermes.state.owner import Asker
from hermes.state.recall.summaries import Summarizer
from hermes.state.rows import MAX_INTEGER, optional_text
from hermes.state.search.operation import ORDERS

ROLES = ("user", "assistant")
LIMIT, MAX_LIMIT = 3, 10
WINDOW, MAX_WINDOW = 5, 20
TIMEOUT_S, MAX_TIMEOUT_S = 60.0, 3_600.0
MAX_QUERY = 2_000


@dataclass(frozen=True, slots=True)
class SearchArguments:
    """The checked arguments of `session_search`; None means not given."""

    query: str
    roles: tuple[str, ...]
    limit: int
    sort: str | None
    session_id: str | None
    anchor: Any
    window: int
    current: str | None
    profile: str | None
    owner: Asker
    summarize: Summarizer | None
    timeout_s: float

    @property
    def anchor_id(self) -> int:
        """The id of the message whose surroundings are read."""
        number = _integer(self.anchor)
        if number is None or (isinstance(self.anchor, float) and number != self.anchor):
            raise InvalidValue(f"around_message_id must be the id of a message, not {self.anchor!r}")
        return number


def parse(**given: Any) -> SearchArguments:
    """Check the arguments of `session_search`."""
    query, sort = given["query"], given["sort"]
    profile = _optional_name(given["profile"], "profile")
    profile = profile.lower() if profile else None
    session_id = _optional_name(given["session_id"], "session_id")
    if profile and session_id:
        session_id = session_id.removeprefix(f"{profile}/")
    return SearchArguments(
        query=query.strip() if isinstance(query, str) else "",
        roles=_roles(given["role_filter"]),
        limit=_clamp(given["limit"], LIMIT, MAX_LIMIT),
        sort=_order(sort),
        session_id=session_id,
        anchor=given["around_message_id"],
        window=_clamp(given["window"], WINDOW, MAX_WINDOW),
        current=_optional_name(given["current_session_id"], "current_session_id"),
        profile=profile,
        owner=given["owner"],
        summarize=given["summarize"],
        timeout_s=_seconds(given["timeout_s"]),
    )


def _optional_name(given: Any, name: str) -> str | None:
    """Return a name, or None for nothing and for blanks."""
    text = optional_text(given, name)
    return (text or "").strip() or None


def _roles(given: Any) -> tuple[str, ...]:
    """Return the roles of a list such as `user,tool`."""
    listed = given.split(",") if isinstance(given, str) else given or ()
    if not isinstance(listed, list | tuple) or not all(isinstance(each, str) for each in listed):
        raise InvalidValue(f"role_filter must be a comma-separated list of roles, such as user,tool, not {given!r}")
    cleaned = (each.strip().lower() for each in listed)
    return tuple(dict.fromkeys(each for each in cleaned if each)) or ROLES


def _clamp(given: Any, otherwise: int, most: int) -> int:
    """Return a number from 1 to `most`; `otherwise` for anything else."""
    number = _integer(given)
    return otherwise if number is None else max(1, min(number, most))


def _integer(given: Any) -> int | None:
    """Return a number without its fraction, also from text."""
    if isinstance(given, bool) or not isinstance(given, int | float | str):
        return None
    try:
        return max(-MAX_INTEGER, min(int(given), MAX_INTEGER))
    except (ValueError, OverflowError):
        return None


def _seconds(given: Any) -> float:
    """Return a valid number of seconds."""
    if isinstance(given, bool) or not isinstance(given, int | float) or given != given:  # not a number
        return TIMEOUT_S
    return float(max(0, min(given, MAX_TIMEOUT_S)))


def _order(sort: object) -> str | None:
    """Return a known order; None (best first) for anything else."""
    cleaned = sort.strip().lower() if isinstance(sort, str) else None
    return cleaned if cleaned in ORDERS else None
