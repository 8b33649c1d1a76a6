"""Exports of sessions without secrets."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hermes.secrets import redact_value
from hermes.state.import_export.session_reader import SessionExport
from hermes.state.rows import Row

KEPT = frozenset(
    (
        "id",
        "session_id",
        "parent_session_id",
        "chain_root",
        "child_kind",
        "source",
        "user_id",
        "owner",
        "role",
        "uid",
        "tool_call_id",
        "platform_message_id",
    )
)
"""Columns that an import needs as they are; they contain ids and names, not text."""


def redact_session(session: SessionExport, report: Callable[[int], None]) -> SessionExport:
    """Return a session without secrets; `report` is called with the number of each value's secrets."""

    def hide(row: Row) -> Row:
        hidden: Row = {}
        for name, value in row.items():
            hidden[name], count = (value, 0) if name in KEPT or value is None else redact_value(value)
            report(count)
        return hidden

    def pages() -> Iterator[list[Row]]:
        return ([hide(message) for message in page] for page in session.pages)

    return session._replace(row={**hide(session.row), "redacted": True}, pages=pages())
