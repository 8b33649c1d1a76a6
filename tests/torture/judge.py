"""Checks that a store holds what it must: reads it with plain SQL, then searches it and writes to it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from pathlib import Path
from random import Random
from typing import NamedTuple, cast

import apsw

from hermes.state.sqlite.engine import SqliteEngine
from hermes_state import HermesError, SessionDB
from tests.support.plainsql import flaws, rows
from tests.torture.journal import SHARED, Journal, Message, State
from tests.torture.outcome import Outcome
from tests.torture.words import COMMON, PART, word_of
from tests.torture.writers import PATIENCE_S

SAMPLE = 25
EVERYTHING = 100_000
LAST_WORD = "qafterwards"


class Row(NamedTuple):
    """A message as the file has it."""

    id: int
    session: str
    message: Message
    text: str


def judge(path: Path, journal: Journal, random: Random) -> Outcome:
    """Compare a store with the journal of its writers, all of which have ended."""
    outcome = Outcome(complaints=list(journal.complaints))
    if found := flaws(path):
        outcome.corrupt = 1
        outcome.complaints += found[:5]
    try:
        stored = _stored(path)
        _compare_owned(path, stored, journal, outcome)
        _compare_shared(stored, journal, outcome)
        use_again(path, stored, random, outcome)
        # Messages of other programs are counted when the store is opened.
        _compare_counters(path, outcome)
    except (HermesError, apsw.Error) as exc:
        outcome.complaints.append(f"the store cannot be used again: {exc}")
    return outcome


def use_again(path: Path, stored: list[Row], random: Random, outcome: Outcome) -> None:
    """Open a store again, search it, write to it, index all of it, and compare its indexes with its messages."""
    with SessionDB(path) as db:
        ours = [row for row in stored if COMMON in row.text]
        for query in (COMMON, PART):
            look_up(db, query, {row.id for row in ours if row.message.is_active}, outcome)
        for row in random.sample(ours, min(SAMPLE, len(ours))):
            look_up(db, row.message.word, {row.id} if row.message.is_active else set(), outcome)
        db.ensure_session("afterwards", "cli")
        added = db.append_message("afterwards", "user", LAST_WORD)
        look_up(db, LAST_WORD, {added}, outcome)
        cast(SqliteEngine, db._engine).catch_up()
        look_up(db, LAST_WORD, {added}, outcome)
    for table in ("messages_fts", "messages_fts_trigram"):
        ghosts = rows(path, f"SELECT id FROM {table}_docsize EXCEPT SELECT id FROM messages")
        missing = rows(path, f"SELECT id FROM messages EXCEPT SELECT id FROM {table}_docsize")
        outcome.unfound += len(ghosts) + len(missing)
        outcome.complaints += [f"{table} has rows for {ghosts[:5]} and none for {missing[:5]}"] * bool(ghosts + missing)


def _stored(path: Path) -> list[Row]:
    found = rows(path, "SELECT id, session_id, active, COALESCE(content, '') FROM messages ORDER BY id")
    return [Row(number, session, Message(word_of(text), bool(active)), text) for number, session, active, text in found]


def _compare_owned(path: Path, stored: list[Row], journal: Journal, outcome: Outcome) -> None:
    """Check that each session of one writer is in the state before or after the writer's last step."""
    titles = dict(rows(path, "SELECT id, title FROM sessions"))
    held: dict[str, list[Message]] = {session: [] for session in titles}
    for row in stored:
        held[row.session].append(row.message)
    for session, possible in journal.possible():
        found = State(tuple(held[session]), titles[session]) if session in titles else None
        certain = _words_in_every_state(possible)
        outcome.acknowledged += len(certain)
        if found in possible:
            continue
        there = Counter(message.word for message in (found.messages if found else ()))
        lost = sorted(certain - there.keys())
        doubled = sum(count - 1 for count in there.values())
        outcome.lost += len(lost)
        outcome.doubled += doubled
        outcome.torn += not lost and not doubled
        outcome.complaints.append(
            f"{session} is {_describe(found)}, not {' or '.join(map(_describe, possible))}; lost: {lost[:3]}"
        )


def _describe(state: State | None) -> str:
    if state is None:
        return "not there"
    hidden = sum(not message.is_active for message in state.messages)
    return f"{len(state.messages)} messages, {hidden} of them hidden, with the title {state.title}"


def _words_in_every_state(possible: list[State | None]) -> set[str]:
    """The words that a session has whether or not the last step was completed."""
    return set.intersection(*({message.word for message in state.messages} if state else set() for state in possible))


def _compare_shared(stored: list[Row], journal: Journal, outcome: Outcome) -> None:
    """Check that each message appended to the shared session is stored exactly once."""
    there = [row.message.word for row in stored if row.session == SHARED]
    counted = Counter(there)
    lost = sorted(journal.shared - counted.keys())
    strange = counted.keys() - journal.shared - journal.maybe_shared()
    outcome.acknowledged += len(journal.shared)
    outcome.lost += len(lost)
    outcome.doubled += sum(count - 1 for count in counted.values())
    outcome.torn += len(strange)
    outcome.complaints += [f"lost from the shared session: {lost[:5]}"] * bool(lost)
    outcome.complaints += [f"no writer wrote {sorted(strange)[:5]}"] * bool(strange)


def _compare_counters(path: Path, outcome: Outcome) -> None:
    drifted = rows(
        path,
        """SELECT s.id FROM sessions s WHERE s.message_count <>
           (SELECT count(*) FROM messages m WHERE m.session_id = s.id AND m.active = 1)""",
    )
    outcome.torn += len(drifted)
    outcome.complaints += [f"the counters are wrong of {drifted[:5]}"] * bool(drifted)


def look_up(
    db: SessionDB, query: str, wanted: set[int], outcome: Outcome, *, besides: Collection[int] = frozenset()
) -> None:
    """Check that a search finds exactly the `wanted` messages; those in `besides` are ignored."""
    hits = db.search_messages(query, limit=EVERYTHING, budget_s=PATIENCE_S)
    found = sorted(int(hit["id"]) for hit in hits if hit["id"] not in besides)
    if found != sorted(wanted - set(besides)):
        outcome.unfound += 1
        outcome.complaints.append(
            f"{query} finds {len(found)}, not {len(wanted)}: {sorted(set(found) ^ wanted)[:5]} differ"
        )
