"""Compare the search of a real store with the naive one: `python -m tests.property.search_oracle --minutes 60`.

Every trial makes a store of random messages and asks it random questions: while nothing is indexed, when all is, when
some is and messages were changed, hidden and deleted since, and when all that is indexed too. The set of answers must
be that of `naive_search`, and their order the one that was asked for. A sentence that no message matches may also find
messages that have some of its words.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.property import search_corpus
from tests.property.naive_query import is_row_of_words, may_be_sentence
from tests.property.naive_search import Branch, Message, find, has_some
from tests.property.search_corpus import EPOCH, OWNERS, SOURCES, Query
from tests.support.plainsql import plain

SESSIONS = 9
EVERYTHING = 10_000
PATIENCE_S = 30.0
OUT_OF_ORDER = "not in the order that was asked for"
SOME_WORDS = "no message has all of these words"


@dataclass(frozen=True)
class Mismatch:
    """A query for which the store returns a wrong result."""

    seed: int
    phase: str
    query: Query
    missed: list[Message]
    invented: list[Message]
    complaint: str

    def __str__(self) -> str:
        lines = [f"seed {self.seed}, {self.phase}: {self.query.typed!r} with {self.query.filters}"]
        lines += [f"  {self.complaint}"] if self.complaint else []
        lines += [f"  not found: {message.id} {message.text!r}" for message in self.missed[:3]]
        lines += [f"  wrongly found: {message.id} {message.text!r}" for message in self.invented[:3]]
        return "\n".join(lines)


class Trial:
    """One store, the same messages as a list, and queries for both."""

    def __init__(self, seed: int, path: Path, *, messages: int = 150, queries: int = 120) -> None:
        self._seed = seed
        self._random = Random(seed)
        self._path = path
        self._queries = queries
        self._db = self._open()
        self._messages: list[Message] = []
        self._at = EPOCH
        self._places = {}
        for number in range(SESSIONS):
            source, owner = self._random.choice(SOURCES), self._random.choice(OWNERS)
            self._places[f"session {number}"] = (source, owner)
            self._db.create_session(f"session {number}", source, owner=owner)
        self._append(messages)
        self.asked = 0

    def run(self) -> Iterator[Mismatch]:
        """Run all queries in every state of the index."""
        try:
            yield from self._ask("nothing indexed")
            self._db.close()
            self._db = self._open()
            yield from self._ask("all indexed")
            self._append(len(self._messages) // 3)
            self._change()
            yield from self._ask("partly indexed")
            self._db.close()
            self._db = self._open()
            yield from self._ask("indexed again")
        finally:
            self._db.close()

    def _open(self) -> SessionDBProvider:
        """Open the store; closing it updates its index."""
        return SessionDB(self._path)

    def _run(self, statements: list[tuple[str, tuple[Any, ...]]]) -> None:
        """Change rows like another program that does not know the index."""
        with plain(self._path) as connection:
            for sql, values in statements:
                connection.execute(sql, values).fetchall()

    def _append(self, count: int) -> None:
        sessions = list(self._places)
        while count > 0:
            some = min(count, self._random.randint(1, 12))
            count -= some
            session = self._random.choice(sessions)
            drafts = []
            for _ in range(some):
                # Imported history is older than what is there.
                self._at += 1 if self._random.random() < 0.95 else -self._random.randint(1, 200)
                drafts.append(search_corpus.draft(self._random, self._at))
            ids = self._db.append_messages(session, drafts)
            for message_id, draft in zip(ids, drafts, strict=True):
                self._messages.append(self._message(message_id, session, draft))

    def _message(self, message_id: int, session: str, draft: dict[str, Any]) -> Message:
        source, owner = self._places[session]
        return Message(id=message_id, session=session, source=source, owner=owner, **draft)

    def _change(self) -> None:
        """Edit messages and a session with plain SQL, undo the end of a session and delete another."""
        first, second, third = self._random.sample(sorted({message.session for message in self._messages}), 3)
        self._edit(first)
        said_by_user = [each for each in self._messages if each.session == second and each.role == "user"]
        if said_by_user:
            target = self._random.choice(said_by_user)
            self._db.rewind_to_message(second, target.id)
            for message in self._messages:
                message.active = message.active and not (message.session == second and message.id >= target.id)
        self._db.delete_session(third)
        self._messages = [message for message in self._messages if message.session != third]

    def _edit(self, session: str) -> None:
        statements: list[tuple[str, tuple[Any, ...]]] = []
        for number in self._random.sample(range(len(self._messages)), 8):
            new_content = search_corpus.text(self._random).replace("\0", " ")
            at = self._at + self._random.randint(-300, 300)
            values = (new_content, at, self._messages[number].id)
            statements.append(("UPDATE messages SET content = ?, timestamp = ? WHERE id = ?", values))
            self._messages[number] = replace(self._messages[number], content=new_content, timestamp=at)
        source, owner = self._random.choice(SOURCES), self._random.choice(OWNERS)
        statements.append(("UPDATE sessions SET source = ?, owner = ? WHERE id = ?", (source, owner, session)))
        self._run(statements)
        self._places[session] = (source, owner)
        for message in self._messages:
            if message.session == session:
                message.source, message.owner = source, owner

    def _ask(self, phase: str) -> Iterator[Mismatch]:
        for _ in range(self._queries):
            query = search_corpus.query(self._random, self._messages)
            self.asked += 1
            wanted = wanted_ids(self._messages, query)
            found, complaint = answer(self._db, query, self._messages)
            if found != wanted or (complaint and not (complaint == OUT_OF_ORDER and phase == "partly indexed")):
                missed = [each for each in self._messages if each.id in wanted - found]
                invented = [each for each in self._messages if each.id in found - wanted]
                yield Mismatch(self._seed, phase, query, missed, invented, complaint)


def wanted_ids(messages: Sequence[Message], query: Query) -> set[int]:
    """Return the ids of the messages that match a query."""
    return find(messages, query.tree, query.admits, query.literal)


def answer(db: SessionDBProvider, query: Query, messages: Sequence[Message]) -> tuple[set[int], str]:
    """Return the ids of the matches that a store finds, and any other error of its result.

    Messages that have only some words of a sentence are checked here, and are no matches.
    """
    try:
        results = db.search_messages(
            query.typed, limit=EVERYTHING, budget_s=PATIENCE_S, sort=query.sort, **query.filters
        )
    except Exception as exc:  # noqa: BLE001 - no query may fail, however it does
        return set(), repr(exc)
    moments = [(hit["timestamp"], hit["id"]) for hit in results]
    complaint = ""
    if not results.complete or results.degraded:
        complaint = f"complete: {results.complete}, degraded: {results.degraded}"
    elif len(set(moments)) < len(moments):
        complaint = "the same message twice"
    elif query.sort is not None and moments != sorted(moments, reverse=query.sort == "newest"):
        complaint = OUT_OF_ORDER
    found = {message_id for _, message_id in moments}
    if results.path != "coverage":
        return found, complaint
    if query.has_operators or not may_be_sentence(query.typed):
        complaint = "the query is no sentence, but finds messages with some of its words"
    elif not any(SOME_WORDS in repair for repair in results.repairs):
        complaint = f"no repair says that only some words were found: {results.repairs}"
    elif not found:
        complaint = "some words were found, but no message"
    # Those that the scope does not admit, or that have no word of the query, are wrong.
    admitted = {each.id for each in messages if query.admits(each) and has_some(query.typed, each)}
    return found - admitted, complaint


def mismatches(seed: int, **size: int) -> tuple[list[Mismatch], int]:
    """Return the mismatches of a trial, and how many queries it ran."""
    place = Path(tempfile.mkdtemp())
    try:
        trial = Trial(seed, place / "state.db", **size)
        return list(trial.run()), trial.asked
    finally:
        shutil.rmtree(place)


def smallest(mismatch: Mismatch) -> str:
    """Return a store of one message and a short query that still disagree, if there are any."""
    texts = [message.text for message in (*mismatch.missed, *mismatch.invented)]
    for text in texts:
        query = replace(mismatch.query, filters={}, sort=None)
        if not _disagrees(text, query):
            continue
        while shorter := next((each for each in _shorter(text, query) if _disagrees(*each)), None):
            text, query = shorter
        return f"smallest: {text!r} and {query.typed!r}"
    return "one message alone does not show it"


def _shorter(text: str, query: Query) -> Iterator[tuple[str, Query]]:
    if is_row_of_words(query.typed):
        words = query.typed.split()
        fewer = [" ".join(words[:at] + words[at + 1 :]) for at in range(len(words))]
        yield from ((text, search_corpus.as_query(typed, None, {}, None)) for typed in fewer if typed)
    elif isinstance(query.tree, Branch):
        for child in query.tree.children:
            yield text, search_corpus.as_query(search_corpus.render(Random(0), child), child, {}, None)
    length = max(1, len(text) // 2)
    while length:
        for start in range(0, len(text), length):
            yield text[:start] + text[start + length :], query
        length //= 2


def _disagrees(text: str, query: Query) -> bool:
    place = Path(tempfile.mkdtemp())
    try:
        with SessionDB(place / "state.db") as db:
            db.create_session("s", "cli")
            message_id = db.append_message("s", "user", text)
            messages = [Message(message_id, "s", "cli", None, "user", EPOCH, text)]
            wanted = wanted_ids(messages, query)
            if answer(db, query, messages) != (wanted, ""):
                return True
        with SessionDB(place / "state.db") as db:
            return answer(db, query, messages) != (wanted, "")
    finally:
        shutil.rmtree(place)


class Tally(NamedTuple):
    """How many stores ran how many queries."""

    stores: int
    asked: int
    wrong: int

    def __str__(self) -> str:
        return f"{self.stores} stores, {self.asked} questions, {self.wrong} answered wrongly"


def try_seeds(first: int, deadline: float, stores: int, say: Callable[[str], None]) -> Tally:
    """Try one seed after the other until the time is over, at most `count` unless that is 0."""
    tally = Tally(0, 0, 0)
    while (tally.stores < stores) if stores else (tally.stores == 0 or time.monotonic() < deadline):
        seed = first + tally.stores
        found, questions = mismatches(seed, messages=Random(seed).choice((40, 150, 150, 500, 1_500)))
        tally = Tally(tally.stores + 1, tally.asked + questions, tally.wrong + len(found))
        for mismatch in found[:3]:
            say(f"{mismatch}\n  {smallest(mismatch)}")
        if tally.stores % 20 == 0:
            say(str(tally))
    return tally


def main() -> int:
    """Run queries until the time is over."""
    parser = argparse.ArgumentParser(prog="python -m tests.property.search_oracle", description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0, help="how long to go on")
    parser.add_argument("--seed", type=int, default=int(time.time()), help="the first seed; the others follow it")
    options = parser.parse_args()
    tally = try_seeds(options.seed, time.monotonic() + options.minutes * 60, 0, _say)
    _say(f"{tally}; the first seed was {options.seed}")
    return 1 if tally.wrong else 0


def _say(text: str) -> None:
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
