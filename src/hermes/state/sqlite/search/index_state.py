"""The two full-text indexes: filled in batches after the messages, up to a mark.

A message is in the index when its id is at or below `indexed_upto` and not in `stale_index`. A search reads all other
messages one by one, so its result does not depend on when a batch runs.
"""

from __future__ import annotations

from hermes.state.sqlite.amounts import whole_number
from hermes.state.sqlite.connection import View

DUE = 128
"""This many waiting messages are indexed in the next pause; a search reads fewer of them directly."""
BATCH = 512
"""The most messages that one transaction indexes."""
INDEXED_UPTO = "indexed_upto"
EPOCH = "index_epoch"
FORMAT_ADDITION = "0007_stems"
"""The addition to the schema since which the indexes have their current format."""
TABLES = ("messages_fts", "messages_fts_trigram")
MERGING = {"automerge": 0, "usermerge": 16, "crisismerge": 256}
"""How FTS5 merges: by itself only where very many segments are left, else sixteen at a time when asked."""


def has_current_format(view: View) -> bool:
    """Whether the indexes have the current format: a file that is only read may have an older one."""
    return view.value("SELECT 1 FROM hermes_ledger WHERE name = :name", name=FORMAT_ADDITION) is not None


def indexed_upto(view: View) -> int:
    """The id up to which messages are in the index."""
    return _stored_number(view, INDEXED_UPTO) or 0


def has_stale(view: View) -> bool:
    """Whether a message changed since it was indexed."""
    return view.value("SELECT 1 FROM stale_index LIMIT 1") is not None


def epoch(view: View) -> int:
    """How often the indexes have been restarted."""
    return _stored_number(view, EPOCH) or 0


def has_valid_mark(view: View) -> bool:
    """Whether the mark is the id of a message that existed; any other mark would hide messages from searches."""
    mark = _stored_number(view, INDEXED_UPTO)
    return mark is not None and mark <= newest_message(view)


def newest_message(view: View) -> int:
    """The highest id that a message has had."""
    numbered = whole_number(view.value("SELECT MAX(seq) FROM sqlite_sequence WHERE name = 'messages'"))
    return numbered if numbered is not None else whole_number(view.value("SELECT MAX(id) FROM messages")) or 0


def _stored_number(view: View, key: str) -> int | None:
    return whole_number(view.value("SELECT value FROM state_meta WHERE key = :key", key=key))


def reset(view: View) -> None:
    """Restart the indexes: they are filled again from the first message."""
    for table in ("stale_index", "message_times"):
        view.run(f"DELETE FROM {table}")
    for key, value in ((INDEXED_UPTO, 0), (EPOCH, epoch(view) + 1)):
        view.run(
            """INSERT INTO state_meta (key, value) VALUES (:key, :value)
               ON CONFLICT (key) DO UPDATE SET value = excluded.value""",
            key=key,
            value=str(value),
        )


def configure(view: View, table: str) -> None:
    """Configure an index that was just created."""
    # Many small segments are cheap to write. Each batch merges a few pages of them, and the indexer more in pauses:
    # what SQLite merges by itself at a commit may take ten milliseconds, for which a writer would have to wait.
    for setting, value in MERGING.items():
        view.run(f"INSERT INTO {table}({table}, rank) VALUES ('{setting}', {value})")
