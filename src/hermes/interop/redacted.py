"""Sessions on their way out without the secrets that were said in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from hermes.interop.secrets import redact_value
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
"""What names things and is no text: without it an export could not be read."""


def redacted(session: SessionExport, tell: Callable[[int], None]) -> SessionExport:
    """A session without secrets; `tell` hears how many more were found."""

    def hide(row: Row) -> Row:
        hidden: Row = {}
        for name, value in row.items():
            hidden[name], count = (value, 0) if name in KEPT or value is None else redact_value(value)
            tell(count)
        return hidden

    def pages() -> Iterator[list[Row]]:
        return ([hide(message) for message in page] for page in session.pages)

    return session._replace(row={**hide(session.row), "redacted": True}, pages=pages())
