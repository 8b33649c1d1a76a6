"""Whether the search index agrees with the messages."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from hermes.state.sqlite.checks.verify import verify
from hermes.state.sqlite.repair.repair import FileCondition, repair
from hermes_state import SessionDB
from tests.support.plainsql import change, rows

WORDS = ["axolotl", "newt", "京都の水", "C++", "docker-compose", "Straße", "e\u0301t\u00e9", "🦎"]


def problems(path: Path) -> list[str]:
    """The defects of a file, as sentences."""
    return [finding.message for finding in verify(path).defects]


def use_randomly(db: SessionDB, random: Random, steps: int) -> None:
    """Do all kinds of changes that an index has to follow."""
    for step in range(steps):
        session = f"s{random.randrange(5)}"
        db.ensure_session(session, source=random.choice(["cli", "telegram"]))
        act = random.randrange(10)
        if act < 6:
            texts = [" ".join(random.choices(WORDS, k=random.randint(1, 60))) for _ in range(random.randint(1, 90))]
            db.append_messages(session, [{"role": "user", "content": text} for text in texts])
        elif act < 8:
            db.delete_session(session)
        elif act == 8:
            db.replace_messages(session, [{"role": "assistant", "content": f"replaced {step}"}])
        else:
            db.optimize_fts()


@pytest.mark.parametrize("seed", range(12))
def test_no_history_of_a_store_makes_a_sound_index_look_wrong(path: Path, seed: int) -> None:
    random = Random(seed)
    for _ in range(3):
        with SessionDB(path) as db:
            use_randomly(db, random, random.randint(1, 8))
            assert problems(path) == []
        assert problems(path) == []


@pytest.mark.parametrize("count", [0, 1, 2, 127, 128, 129, 700])
def test_index_of_any_size_agrees_with_the_messages(path: Path, count: int) -> None:
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_messages("s", [{"role": "user", "content": f"axolotl {n}"} for n in range(count)])
    assert problems(path) == []


def test_a_message_that_was_changed_by_plain_sql_is_no_damage(path: Path) -> None:
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_messages("s", [{"role": "user", "content": f"axolotl {n}"} for n in range(300)])
    change(path, "UPDATE messages SET content = 'a newt' WHERE id IN (5, 250)")
    assert problems(path) == []


@pytest.mark.parametrize("table", ["messages_fts", "messages_fts_trigram"])
def test_wrong_word_in_a_consistent_index_is_reported_and_repaired(path: Path, table: str) -> None:
    with SessionDB(path) as db:
        db.create_session("s", "cli")
        db.append_messages("s", [{"role": "user", "content": f"zebu{n} zzqzz"} for n in range(200)])
        db.optimize_fts()
    ((number, block),) = [
        row for row in rows(path, f"SELECT id, block FROM {table}_data WHERE id > 10") if b"zq" in bytes(row[1])
    ][:1]
    change(path, f"UPDATE {table}_data SET block = x'{bytes(block).replace(b'zq', b'zr').hex()}' WHERE id = {number}")
    assert rows(path, "PRAGMA integrity_check") == [("ok",)]
    assert problems(path) == [f"the search index {table} does not agree with the messages"]
    assert repair(path).condition is FileCondition.REPAIRED
    assert problems(path) == []
    with SessionDB(path) as db:
        assert len(db.search_messages("zzqzz", limit=1_000)) == len(db.search_messages("*zqz*", limit=1_000)) == 200
