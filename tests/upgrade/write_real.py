"""Write the corpus with an installed release of hermes-agent, through its public interface only.

Run inside an environment that has that release, from the root of the repository:
`python -m tests.upgrade.write_real 11 v11.db.gz`. The number is the schema version that the release writes; the
record of the input goes to a .json file next to it.
"""

from __future__ import annotations

import gzip
import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any, cast
from unittest import mock

from tests.upgrade.corpus import Event, Expected, Ledger, Topic, events, meta, topic

ALL_SESSIONS = 10
# Parameters that older releases do not know yet; an unknown parameter is refused before anything is written.
YOUNG_PARAMETERS = (
    frozenset[str](),
    frozenset({"timestamp"}),
    frozenset({"timestamp", "observed", "platform_message_id"}),
)
MADE_BY_BINDING = {"telegram_dm_topic_schema_version": "2"}


class SetClock:
    """A clock that stands still until it is set."""

    def __init__(self) -> None:
        """Start at the epoch."""
        self.time = 0.0

    def now(self) -> float:
        """The time it was set to."""
        return self.time


class Writer:
    """Feeds one store and records what the store was able to store."""

    def __init__(self, store: Any, clock: SetClock) -> None:
        """Write to this store, which uses this clock."""
        self._store = store
        self._clock = clock
        self._ledger = Ledger()

    def feed(self, event: Event) -> None:
        """Do one action of the corpus."""
        self._clock.time = event.at
        getattr(self, f"_{event.kind}")(event)

    def finish(self, version: int) -> Expected:
        """Write what belongs to no session, close the store and return the record."""
        for key, value in meta().items():
            self._store.set_meta(key, value)
        topics = (topic(),)
        for bound in topics:
            self._bind(bound)
        self._store.close()
        return self._ledger.close(version, meta={**meta(), **MADE_BY_BINDING}, topics=topics)

    def _create(self, event: Event) -> None:
        self._store.create_session(session_id=event.session_id, **event.payload)
        self._ledger.create(event.at, event.session_id, event.payload)

    def _append(self, event: Event) -> None:
        for refused in YOUNG_PARAMETERS:
            accepted = {name: value for name, value in event.payload.items() if name not in refused}
            try:
                row = self._store.append_message(session_id=event.session_id, **accepted)
            except TypeError:
                continue
            if row != self._ledger.append(event.at, event.session_id, accepted).id:
                raise SystemExit(f"the store gave a message the unexpected number {row}")
            return
        raise SystemExit(f"this release does not take the message at {event.at}")

    def _tokens(self, event: Event) -> None:
        self._store.update_token_counts(event.session_id, **event.payload)
        self._ledger.count_tokens(event.session_id, event.payload)

    def _title(self, event: Event) -> None:
        self._store.set_session_title(event.session_id, event.payload["title"])
        self._ledger.change(event.session_id, title=event.payload["title"])

    def _cwd(self, event: Event) -> None:
        if hasattr(self._store, "update_session_cwd"):
            self._store.update_session_cwd(event.session_id, event.payload["cwd"])
            self._ledger.change(event.session_id, cwd=event.payload["cwd"])

    def _rewind(self, event: Event) -> None:
        if hasattr(self._store, "rewind_to_message"):
            first = self._ledger.message_at(event.session_id, cast("int", event.payload["to"])).id
            self._store.rewind_to_message(event.session_id, first)
            self._ledger.rewind(event.session_id, first)

    def _handoff(self, event: Event) -> None:
        self._store.request_handoff(event.session_id, event.payload["platform"])
        self._ledger.change(event.session_id, handoff_state="pending", handoff_platform=event.payload["platform"])

    def _end(self, event: Event) -> None:
        self._store.end_session(event.session_id, end_reason=event.payload["end_reason"])
        self._ledger.change(event.session_id, ended_at=event.at, end_reason=event.payload["end_reason"])

    def _archive(self, event: Event) -> None:
        if hasattr(self._store, "set_session_archived"):
            self._store.set_session_archived(event.session_id, True)
            self._ledger.change(event.session_id, archived=True)

    def _bind(self, bound: Topic) -> None:
        self._store.enable_telegram_topic_mode(chat_id=bound.chat_id, user_id=bound.user_id)
        self._store.bind_telegram_topic(
            chat_id=bound.chat_id,
            thread_id=bound.thread_id,
            user_id=bound.user_id,
            session_key=bound.session_key,
            session_id=bound.session_id,
        )


def write(version: int, packed: Path) -> None:
    """Write the corpus to a new database, pack it and store the record of the input."""
    clock = SetClock()
    with tempfile.TemporaryDirectory() as scratch, mock.patch("time.time", clock.now):
        path = Path(scratch) / "state.db"
        writer = Writer(importlib.import_module("hermes_state").SessionDB(db_path=path), clock)
        for event in events(sessions=ALL_SESSIONS):
            writer.feed(event)
        expected = writer.finish(version)
        leftovers = [other.name for other in path.parent.iterdir() if other != path]
        if leftovers:
            raise SystemExit(f"the file is incomplete, next to it are {leftovers}")
        packed.write_bytes(gzip.compress(path.read_bytes(), 9, mtime=0))
    packed.with_name(packed.name.removesuffix(".db.gz") + ".json").write_text(expected.to_json(), encoding="utf-8")


if __name__ == "__main__":
    write(int(sys.argv[1]), Path(sys.argv[2]))
