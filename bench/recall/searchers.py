"""What is compared: our recall, and plain searches with FTS5."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType

import apsw

from bench.recall.dialogue import Dialogue
from hermes.state.recall.tool import session_search
from hermes_state import SessionDB

LIMIT = 10
SOURCE = "telegram"

_run = re.compile("[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]+")
_word = re.compile(r"\w+")


class Searcher(ABC):
    """Finds the sessions of one owner that may answer a question."""

    name: str

    def __enter__(self) -> Searcher:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def search(self, user_id: str, question: str) -> list[str]:
        """Return the ids of up to `LIMIT` sessions, the best first."""

    @abstractmethod
    def close(self) -> None:
        """Close the files."""


class Ours(Searcher):
    """`session_search` as an agent calls it, in one store with the sessions of all owners."""

    name = "ours"

    def __init__(self, dialogues: Sequence[Dialogue], directory: Path) -> None:
        path = directory / "ours.db"
        db = SessionDB(db_path=path)
        for dialogue in dialogues:
            for session in dialogue.sessions:
                db.create_session(session.id, SOURCE, user_id=dialogue.user_id)
                db.append_messages(
                    session.id,
                    [
                        {"role": message.role, "content": message.text, "timestamp": message.timestamp}
                        for message in session.messages
                    ],
                )
        db.close()  # also indexes the last messages
        self._db = SessionDB(db_path=path)

    def search(self, user_id: str, question: str) -> list[str]:
        """Ask as the owner asks."""
        found = json.loads(session_search(question, limit=LIMIT, db=self._db, owner=f"{SOURCE}:{user_id}"))
        if not found["success"]:
            raise RuntimeError(f"{question!r}: {found['error']}")
        return [str(result["session_id"]) for result in found["results"]]

    def close(self) -> None:
        """Close the store."""
        self._db.close()


class Fts5(Searcher):
    """FTS5 with `porter unicode61`: the words of a question, joined by OR, ranked by bm25.

    There is an index for each owner. FTS5 takes a run of Chinese characters for one word, so that the index and the
    question have each pair of neighbouring characters as a word.
    """

    def __init__(self, dialogues: Sequence[Dialogue]) -> None:
        self._files = {dialogue.user_id: self._fill(dialogue) for dialogue in dialogues}

    def search(self, user_id: str, question: str) -> list[str]:
        """Return the best sessions."""
        return ranked(self.scores(user_id, question))

    def scores(self, user_id: str, question: str) -> dict[str, float]:
        """Return the score of every session that has a word of the question; more is better."""
        words = dict.fromkeys(_word.findall(separate_pairs(question)))
        if not words:
            return {}
        query = " OR ".join(f'"{word}"' for word in words)
        rows = self._files[user_id].execute(
            "SELECT session_id, -bm25(texts) FROM texts WHERE texts MATCH ? ORDER BY 2 DESC",
            (query,),
        )
        found: dict[str, float] = {}
        for session_id, score in rows:
            found.setdefault(session_id, score)
        return found

    def close(self) -> None:
        """Close the indexes."""
        for file in self._files.values():
            file.close()

    @abstractmethod
    def texts(self, dialogue: Dialogue) -> list[tuple[str, str]]:
        """The texts to index, each with its session."""

    def _fill(self, dialogue: Dialogue) -> apsw.Connection:
        file = apsw.Connection(":memory:")
        file.execute("CREATE VIRTUAL TABLE texts USING fts5(session_id UNINDEXED, body, tokenize='porter unicode61')")
        rows = [(session_id, separate_pairs(text)) for session_id, text in self.texts(dialogue)]
        file.executemany("INSERT INTO texts VALUES (?, ?)", rows)
        return file


class MessageFts5(Fts5):
    """Every message is a text; a session scores as its best message does."""

    name = "FTS5 messages"

    def texts(self, dialogue: Dialogue) -> list[tuple[str, str]]:
        """One text for each message."""
        return [(session.id, message.text) for session in dialogue.sessions for message in session.messages]


class SessionFts5(Fts5):
    """Every session is one text."""

    name = "FTS5 sessions"

    def texts(self, dialogue: Dialogue) -> list[tuple[str, str]]:
        """One text for each session."""
        return [(session.id, "\n".join(message.text for message in session.messages)) for session in dialogue.sessions]


class FusedFts5(Searcher):
    """The sum of both scores, each divided by its highest."""

    name = "FTS5 fused"

    def __init__(self, *searchers: Fts5) -> None:
        self._searchers = searchers

    def search(self, user_id: str, question: str) -> list[str]:
        """Ask both and add."""
        total: dict[str, float] = {}
        for searcher in self._searchers:
            scores = searcher.scores(user_id, question)
            highest = max(scores.values(), default=0.0) or 1.0
            for session_id, score in scores.items():
                total[session_id] = total.get(session_id, 0.0) + score / highest
        return ranked(total)

    def close(self) -> None:
        """Do nothing: the two close their own indexes."""


def open_searchers(dialogues: Sequence[Dialogue], directory: Path) -> list[Searcher]:
    """Return everything that is compared, filled with the dialogues."""
    messages, sessions = MessageFts5(dialogues), SessionFts5(dialogues)
    return [Ours(dialogues, directory), messages, sessions, FusedFts5(messages, sessions)]


def ranked(scores: dict[str, float]) -> list[str]:
    """The sessions with the highest scores, the best first."""
    return sorted(scores, key=lambda each: (-scores[each], each))[:LIMIT]


def separate_pairs(text: str) -> str:
    """The text with each run of Chinese, Japanese or Korean characters replaced by its pairs of neighbours."""

    def pairs(found: re.Match[str]) -> str:
        run = found[0]
        return f" {' '.join(run[at : at + 2] for at in range(max(1, len(run) - 1)))} "

    return _run.sub(pairs, text)
