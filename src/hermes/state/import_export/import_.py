"""Import: sessions of an export or of another database file."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, get_args

from hermes.errors import InvalidValue
from hermes.ids import new_session_id
from hermes.state.engine import CATCH_UP
from hermes.state.operations import Operations
from hermes.state.rows import require_identifier

if TYPE_CHECKING:
    from hermes.state.import_export.session_writer import OnConflict
    from hermes.state.row_types import ImportCounts

UNNAMED_FILE = "import_session"
"""The name of the file if a caller imports a dict and gives none."""


class Import(Operations):
    """Operations that import sessions."""

    def import_session(
        self,
        data: Mapping[str, Any],
        on_conflict: OnConflict = "skip",
        *,
        imported_from: str = UNNAMED_FILE,
        keep_owner: bool = False,
        add_to_own: bool = False,
    ) -> str:
        """Import an exported session and return its id here.

        If a session with that id exists, `skip` leaves it as it is, `rename` imports under a new id, and `merge` adds
        the messages that it lacks. Importing twice never doubles a message, and children may come before their parents.

        The session is marked with `imported_from`, the name of the file, and continues only sessions of the same file.
        With `keep_owner` it belongs to the owner in the file, otherwise to the terminal. A session that was created
        here gets no message and no child from an import, unless `add_to_own` is set.
        """
        # Late: few processes import anything.
        from hermes.state.import_export.session_checks import check_session
        from hermes.state.import_export.session_writer import OnConflict, write_session
        from hermes.state.import_export.trust import ImportTerms, apply_terms

        if on_conflict not in get_args(OnConflict):
            raise InvalidValue(f"on_conflict must be skip, rename or merge, not {on_conflict!r}")
        now = self._clock()
        terms = ImportTerms(
            require_identifier(imported_from, "imported_from"), keeps_owners=keep_owner, adds_to_own=add_to_own
        )
        session = apply_terms(check_session(data, now), terms, now)
        renamed_to = new_session_id(session.values["started_at"])
        return self._engine.write(lambda tx: write_session(tx, session, on_conflict, now, renamed_to)).id

    def import_database(self, path: str | Path, *, keep_owners: bool = False, add_to_own: bool = False) -> ImportCounts:
        """Import every session and message of another database file, of any version; the file is only read.

        Returns `sessions` and `messages` that were new here and `sessions_seen`. A second run finds nothing new. The
        options are those of `import_session`.
        """
        from hermes.state.import_export.session_writer import ImportOutcome, read_checked_sessions, write_sessions
        from hermes.state.import_export.trust import ImportTerms, apply_terms
        from hermes.state.sqlite.provider import SQLiteSessionDBProvider, checked_path
        from hermes.state.sqlite.schema.foreign_file import require_sound

        file = checked_path(path)
        counts: ImportCounts = {"sessions": 0, "messages": 0, "sessions_seen": 0}
        now = self._clock()
        terms = ImportTerms(str(file), keeps_owners=keep_owners, adds_to_own=add_to_own)
        require_sound(file)
        with SQLiteSessionDBProvider(file, read_only=True) as other:
            for session in read_checked_sessions(other, now):
                (arrival,) = write_sessions(self, [apply_terms(session, terms, now)], "merge", now)
                counts["sessions_seen"] += 1
                counts["sessions"] += arrival.outcome is ImportOutcome.NEW
                counts["messages"] += arrival.messages
        self._engine.heal_index(CATCH_UP)
        return counts
