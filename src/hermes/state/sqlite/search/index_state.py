"""The two full-text indexes: filled in batches behind the messages, up to a mark.

A message is in the index when its id is at or below `indexed_upto` and not in `stale_index`. Everything else is found
by looking at the few rows themselves, so nothing depends on when a batch runs.
"""

from __future__ import annotations

from hermes.state.sqlite.amounts import whole_number
from hermes.state.sqlite.connection import View

DUE = 128
"""So many waiting messages are indexed: few, because the call that brings the last of them waits for it."""
BATCH = 512
"""No more than this are indexed in one transaction."""
INDEXED_UPTO = "indexed_upto"
EPOCH = "index_epoch"
FORMAT_ADDITION = "0004_parts"
"""The addition to the schema since which the indexes are filled as they are today."""
TABLES = ("messages_fts", "messages_fts_trigram")


def has_current_format(view: View) -> bool:
    """Whether the indexes have the form of today: a file that is only read may have an older one."""
    return view.value("SELECT 1 FROM hermes_ledger WHERE name = :name", name=FORMAT_ADDITION) is not None


def indexed_upto(view: View) -> int:
    """The id up to which messages are in the index."""
    return _stored_number(view, INDEXED_UPTO) or 0


def epoch(view: View) -> int:
    """How often the indexes have been started over."""
    return _stored_number(view, EPOCH) or 0


def has_valid_mark(view: View) -> bool:
    """Whether the mark is a number of a message that there has been; another one would hide messages from searches."""
    mark = _stored_number(view, INDEXED_UPTO)
    return mark is not None and mark <= newest_message(view)


def newest_message(view: View) -> int:
    """The highest number that a message has had."""
    numbered = whole_number(view.value("SELECT MAX(seq) FROM sqlite_sequence WHERE name = 'messages'"))
    return numbered if numbered is not None else whole_number(view.value("SELECT MAX(id) FROM messages")) or 0


def _stored_number(view: View, key: str) -> int | None:
    return whole_number(view.value("SELECT value FROM state_meta WHERE key = :key", key=key))


def reset(view: View) -> None:
    """Start over: the indexes are filled anew from the first message on."""
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
    """Set up an index that has just been made."""
    # Many small segments are cheap to write; they are merged sixteen at a time, a little with each batch. Where merging
    # falls behind it is not made up for at once, which would keep a message waiting.
    view.run(f"INSERT INTO {table}({table}, rank) VALUES ('automerge', 16)")
    view.run(f"INSERT INTO {table}({table}, rank) VALUES ('crisismerge', 64)")
