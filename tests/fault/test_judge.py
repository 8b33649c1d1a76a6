"""The torture judge detects a store that has lost, doubled, torn or hidden messages."""

from __future__ import annotations

from pathlib import Path
from random import Random

import pytest

from hermes_state import SessionDB
from tests.fault.test_spool import damage
from tests.support.plainsql import change
from tests.torture.disk import SECTOR
from tests.torture.journal import SHARED, Journal, Message, Step, begun, done
from tests.torture.judge import judge
from tests.torture.outcome import Outcome
from tests.torture.power_loss import Entry, after_power_cut
from tests.torture.words import COMMON, nth_word

OWN = "own"
WORDS = [nth_word("test", number) for number in range(8)]
FIRST, LAST = f"content LIKE '{WORDS[0]}%'", f"content LIKE '{WORDS[-1]}%'"
COPY = "INSERT INTO messages (session_id, role, content, timestamp) SELECT session_id, role, content, 1 FROM messages"


def record_step(journal: Journal, db: SessionDB, step: Step, *, is_done: bool = True) -> None:
    """Note a step, and do it if it is to finish."""
    journal.record(begun("test", step))
    if is_done:
        db.ensure_session(step.session, "cli")
        texts = [{"role": "user", "content": f"{message.word} {COMMON}"} for message in step.messages]
        db.append_messages(step.session, texts)
        journal.record(done("test"))


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """The path of the test's store."""
    return tmp_path / "state.db"


@pytest.fixture
def journal(store: Path) -> Journal:
    """A journal of four messages in a session of one owner and four in the shared one, all of them stored."""
    journal = Journal()
    with SessionDB(store) as db:
        record_step(journal, db, Step("create", OWN))
        record_step(journal, db, Step("append", OWN, tuple(map(Message, WORDS[:4]))))
        record_step(journal, db, Step("append", SHARED, tuple(map(Message, WORDS[4:]))))
    return journal


def verdict(store: Path, journal: Journal) -> Outcome:
    return judge(store, journal, Random(1))


def test_complete_store_is_unhurt(store: Path, journal: Journal) -> None:
    outcome = verdict(store, journal)
    assert outcome.is_unhurt
    assert outcome.acknowledged == len(WORDS)


@pytest.mark.parametrize("which", [FIRST, LAST])
def test_a_missing_message_is_lost(store: Path, journal: Journal, which: str) -> None:
    change(store, f"DELETE FROM messages WHERE {which}")
    assert verdict(store, journal).lost == 1


@pytest.mark.parametrize("which", [FIRST, LAST])
def test_a_second_message_of_the_same_text_is_doubled(store: Path, journal: Journal, which: str) -> None:
    change(store, f"{COPY} WHERE {which}")
    assert verdict(store, journal).doubled == 1


def test_a_hidden_message_is_torn(store: Path, journal: Journal) -> None:
    change(store, f"UPDATE messages SET active = 0 WHERE {FIRST}")
    outcome = verdict(store, journal)
    assert (outcome.lost, outcome.doubled) == (0, 0)
    assert outcome.torn


def test_unknown_message_is_torn(store: Path, journal: Journal) -> None:
    change(store, COPY.replace("content, 1 FROM", "'qstrange', 1 FROM") + f" WHERE {LAST}")
    assert verdict(store, journal).torn == 1


def test_judge_reports_a_wrong_counter(store: Path, journal: Journal) -> None:
    change(store, f"UPDATE sessions SET message_count = 9 WHERE id = '{OWN}'")
    assert verdict(store, journal).torn == 1


def test_message_missing_from_the_index_is_unfound(store: Path, journal: Journal) -> None:
    change(store, "DELETE FROM messages_fts WHERE rowid = 1")
    assert verdict(store, journal).unfound


def test_a_damaged_file_is_corrupt(store: Path, journal: Journal) -> None:
    damage(store)
    assert verdict(store, journal).corrupt == 1


class TestStepUnderWay:
    """A writer that died before its call returned."""

    STEP = Step("append", OWN, (Message("qone"), Message("qtwo")))

    @pytest.mark.parametrize("stored", [0, 2])
    def test_unfinished_step_may_be_done_or_not(self, store: Path, journal: Journal, stored: int) -> None:
        assert self.judged(store, journal, stored).is_unhurt

    def test_unfinished_step_must_not_be_half_done(self, store: Path, journal: Journal) -> None:
        assert self.judged(store, journal, 1).torn == 1

    def judged(self, store: Path, journal: Journal, stored: int) -> Outcome:
        journal.record(begun("test", self.STEP))
        with SessionDB(store) as db:
            db.append_messages(
                OWN, [{"role": "user", "content": f"{each.word} {COMMON}"} for each in self.STEP.messages[:stored]]
            )
        return verdict(store, journal)


class TestPowerCut:
    """What a disk keeps after a power cut."""

    PAGE = b"new!" * SECTOR
    WRITTEN = (Entry("write", "log", 0, len(PAGE)), PAGE)
    SYNCED = (Entry("synced", "log", 0, 0), b"")

    def test_power_cut_keeps_synced_writes(self) -> None:
        assert after_power_cut({"log": b"old"}, [self.WRITTEN, self.SYNCED], Random(1)) == {"log": self.PAGE}

    def test_power_cut_keeps_none_all_or_some_sectors_of_other_writes(self) -> None:
        before = b"old!" * SECTOR
        seen = {after_power_cut({"log": before}, [self.WRITTEN], Random(seed))["log"] for seed in range(50)}
        assert {before, self.PAGE} < seen
        assert all(len(each) == len(before) for each in seen)

    def test_power_cut_forgets_deleted_files(self) -> None:
        deleted = (Entry("delete", "log", 0, 0), b"")
        assert after_power_cut({"log": b"old"}, [self.WRITTEN, deleted], Random(1)) == {}
