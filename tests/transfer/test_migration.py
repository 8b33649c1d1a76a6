"""Everything is copied, to a store of every engine and back."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.errors import Conflict
from hermes.state.import_export import message_pages
from hermes.state.indexing.index_backlog import index_backlog
from hermes.state.operations import read
from hermes.state.provider import SessionDBProvider
from hermes.state.transfer import origin as origin_module
from hermes.state.transfer.counts import count
from hermes.state.transfer.migration import Migration
from hermes_state import SessionDB
from tests.support.clock import FakeClock
from tests.support.conversations import contents, ids, session_of
from tests.support.stores import engine_of
from tests.transfer.contents import differences, fill, migrate, snapshot, talk
from tests.upgrade.checks import digest


class TestEmptyTarget:
    def test_empty_target_returns_the_same_as_the_source_afterwards(
        self, origin: SessionDBProvider, target: SessionDBProvider
    ) -> None:
        migrate(origin, target)
        assert snapshot(target) == snapshot(origin)

    def test_empty_target_has_the_same_hashes(self, origin: SessionDBProvider, target: SessionDBProvider) -> None:
        migrate(origin, target)
        assert differences(origin, target) == []

    def test_empty_target_gives_higher_ids_to_its_own_messages(
        self, origin: SessionDBProvider, target: SessionDBProvider
    ) -> None:
        migrate(origin, target)
        newest = max(message["id"] for each in origin.export_all() for message in each["messages"])
        assert target.append_message("alone", "user", "from now on here") > newest

    def test_empty_target_finds_the_same_messages(self, origin: SessionDBProvider, target: SessionDBProvider) -> None:
        migrate(origin, target)
        for query in ("words", "中文", "turn", "*lain*", '"went on"', "Ünïcödé"):
            assert ids(target.search_messages(query, limit=50)) == ids(origin.search_messages(query, limit=50)), query

    def test_empty_target_finds_the_same_messages_once_all_are_indexed(
        self, origin: SessionDBProvider, target: SessionDBProvider
    ) -> None:
        migrate(origin, target)
        assert index_backlog(target) == 0
        assert count(target).waiting == 0
        assert ids(target.search_messages("turn", limit=50)) == ids(origin.search_messages("turn", limit=50))

    def test_empty_target_gets_no_locks(self, origin: SessionDBProvider, target: SessionDBProvider) -> None:
        migrate(origin, target)
        assert target.get_compression_lock_holder("alone") is None

    def test_empty_target_gets_no_index_state_of_the_source(
        self, origin: SessionDBProvider, target: SessionDBProvider
    ) -> None:
        migrate(origin, target)
        assert read(target, lambda tx: engine_of(target).index.coverage(tx, 0).upto) == 0

    def test_empty_target_can_be_migrated_back(
        self, origin: SessionDBProvider, target: SessionDBProvider, tmp_path: Path
    ) -> None:
        migrate(origin, target)
        with SessionDB(tmp_path / "back.db") as back:
            migrate(target, back)
            assert snapshot(back) == snapshot(origin)
            assert differences(target, back) == []

    def test_empty_target_is_filled_page_by_page(
        self, origin: SessionDBProvider, target: SessionDBProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_pages, "PAGE_MESSAGES", 3)
        monkeypatch.setattr(origin_module, "PAGE_SESSIONS", 2)
        monkeypatch.setattr(message_pages, "PAGE_BYTES", 1_000)
        migrate(origin, target)
        assert snapshot(target) == snapshot(origin)
        assert differences(origin, target) == []


class TestSource:
    def test_source_is_not_changed_by_a_byte(self, source: Path, target: SessionDBProvider) -> None:
        before = digest(source)
        with SessionDB(source, read_only=True) as origin:
            migrate(origin, target)
        assert digest(source) == before

    def test_source_may_be_empty(self, target: SessionDBProvider, tmp_path: Path) -> None:
        with SessionDB(tmp_path / "nothing.db") as nothing:
            assert migrate(nothing, target).progress.sessions == 0


class TestAgain:
    def test_second_migration_adds_nothing(self, origin: SessionDBProvider, target: SessionDBProvider) -> None:
        migrate(origin, target)
        before = snapshot(target)
        progress = migrate(origin, target).progress
        assert (progress.sessions, progress.messages) == (0, 0)
        assert snapshot(target) == before

    def test_second_migration_adds_new_rows_and_keeps_changes_of_the_target(
        self, source: Path, target: SessionDBProvider, clock: FakeClock
    ) -> None:
        with SessionDB(source, clock=clock) as origin:
            migrate(origin, target)
            target.append_message("alone", "user", "said here")
            target.set_session_title("alone", "Named here")
            origin.append_message("alone", "user", "said there", uid="there-1")
            origin.create_session("later", "cli")
            origin.append_message("later", "user", "new there")
            progress = migrate(origin, target).progress
        assert (progress.sessions, progress.messages) == (2, 2)
        assert contents(target.get_messages("alone"))[-2:] == ["said here", "said there"]
        assert session_of(target, "alone")["title"] == "Named here"
        assert contents(target.get_messages("later")) == ["new there"]

    def test_second_migration_does_not_report_sessions_with_more_messages(
        self, origin: SessionDBProvider, target: SessionDBProvider
    ) -> None:
        migrate(origin, target)
        target.append_message("alone", "user", "said here")
        (difference,) = differences(origin, target)
        assert (difference.session_id, difference.is_ahead) == ("alone", True)


class TestUsedTarget:
    def test_used_target_keeps_what_it_has_and_gets_the_rest(
        self, origin: SessionDBProvider, target: SessionDBProvider
    ) -> None:
        talk(target, sessions=2, messages=3)
        target.create_session("mine", "cli")
        target.set_session_title("mine", "One alone")
        before = target.export_session("talk-000")
        migrate(origin, target)
        assert target.export_session("talk-000") == before
        assert session_of(target, "alone")["title"] == "One alone (2)"
        assert differences(origin, target) == []

    def test_used_target_gets_everything_with_new_ids(
        self, origin: SessionDBProvider, target: SessionDBProvider
    ) -> None:
        target.create_session("mine", "cli")
        target.append_message("mine", "user", "x")
        migrate(origin, target)
        target.delete_session("mine")
        assert snapshot(target, with_ids=False) == snapshot(origin, with_ids=False)

    def test_used_target_with_half_of_a_session_gets_the_other_half(
        self, origin: SessionDBProvider, target: SessionDBProvider
    ) -> None:
        half = origin.export_session("rewound", include_inactive=True)
        assert half is not None
        target.import_session({**half, "messages": half["messages"][:4]})
        migrate(origin, target)
        uids = [each["uid"] for each in half["messages"]]
        found = target.export_session("rewound", include_inactive=True)
        assert found is not None
        assert sorted(each["uid"] for each in found["messages"]) == sorted(uids)


class TestUnfinished:
    def test_unfinished_migration_is_not_restarted_without_resume(
        self, origin: SessionDBProvider, target: SessionDBProvider
    ) -> None:
        Migration(origin, target).begin(resume=False)
        with pytest.raises(Conflict, match="not finished") as raised:
            Migration(origin, target).begin(resume=False)
        assert "--resume" in raised.value.hint

    def test_unfinished_migration_is_left_to_the_process_that_took_over(
        self, origin: SessionDBProvider, target: SessionDBProvider
    ) -> None:
        first = Migration(origin, target)
        first.begin(resume=False)
        migrate(origin, target, resume=True)
        with pytest.raises(Conflict, match="taken over this migration"):
            first.finish()
        assert snapshot(target) == snapshot(origin)

    def test_unfinished_migration_continues_where_it_stopped(
        self, origin: SessionDBProvider, target: SessionDBProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_pages, "PAGE_MESSAGES", 4)
        stop_after(origin, target, 3)
        progress = migrate(origin, target, resume=True).progress
        assert progress.messages == count(origin).messages
        assert progress.mode == "copy"
        assert snapshot(target) == snapshot(origin)


class TestMeanwhile:
    def test_messages_written_to_the_source_meanwhile_are_copied(
        self, source: Path, target: SessionDBProvider, clock: FakeClock, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_pages, "PAGE_MESSAGES", 4)
        with SessionDB(source, clock=clock) as origin:
            reports = []

            def change(*progress: object) -> None:
                reports.append(progress)
                if len(reports) == 3:
                    message_id = origin.append_message("alone", "user", "later")
                    origin.create_session("new", "cli")
                    origin.append_message("new", "user", "all of it is new")
                    origin.rewind_to_message("alone", message_id)
                    origin.set_session_title("b-child", "Named meanwhile")
                    origin.update_token_counts("rewound", input_tokens=5)
                    origin.replace_messages("z-parent", [{"role": "user", "content": "instead"}])

            migration = Migration(origin, target, change)
            migration.begin(resume=False)
            assert migration.copy_all() == []
            assert snapshot(target) == snapshot(origin)
            assert differences(origin, target) == []

    def test_sessions_that_keep_changing_are_reported(
        self, source: Path, target: SessionDBProvider, clock: FakeClock
    ) -> None:
        with SessionDB(source, clock=clock) as origin:

            def change(*_: object) -> None:
                origin.append_message("alone", "user", "and on")

            migration = Migration(origin, target, change)
            migration.begin(resume=False)
            assert migration.copy_all() == ["alone"]
            migrate(origin, target, resume=True)
            assert snapshot(target) == snapshot(origin)

    def test_messages_of_the_target_stay(
        self, origin: SessionDBProvider, target: SessionDBProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(message_pages, "PAGE_MESSAGES", 4)
        reports = []

        def change(*progress: object) -> None:
            reports.append(progress)
            if len(reports) == 3:
                target.create_session("mine", "cli")
                target.append_message("mine", "user", "typed too early")
                target.append_message("alone", "user", "typed here")

        migration = Migration(origin, target, change)
        migration.begin(resume=False)
        assert migration.copy_all() == []
        assert contents(target.get_messages("mine")) == ["typed too early"]
        assert "typed here" in contents(target.get_messages("alone"))
        assert session_of(target, "alone")["message_count"] == target.message_count("alone")
        assert [(each.session_id, each.is_ahead) for each in differences(origin, target)] == [("alone", True)]


class TestMismatches:
    @pytest.mark.parametrize(
        ("change", "what"),
        [
            ("UPDATE messages SET content = 'other' WHERE session_id = 'b-child'", "differs in 1 message"),
            ("DELETE FROM messages WHERE session_id = 'b-child'", "lacks 1 message"),
            ("UPDATE sessions SET model = 'other' WHERE id = 'b-child'", "model"),
            ("UPDATE messages SET active = 0 WHERE session_id = 'b-child'", "differs"),
            ("DELETE FROM usage_events WHERE session_id = 'alone'", "usage"),
            ("DELETE FROM rewinds WHERE session_id = 'rewound'", "rewinds"),
            ("DELETE FROM session_tools WHERE session_id = 'alone'", "tools"),
        ],
    )
    def test_mismatches_are_found_and_described(
        self, origin: SessionDBProvider, target: SessionDBProvider, change: str, what: str
    ) -> None:
        migrate(origin, target)
        engine_of(target).write(lambda tx: tx.run(change))
        (difference,) = differences(origin, target)
        assert difference.session_id in ("b-child", "alone", "rewound")
        assert what in difference.what
        assert not difference.is_ahead

    def test_a_missing_session_is_a_mismatch(self, origin: SessionDBProvider, target: SessionDBProvider) -> None:
        migrate(origin, target)
        target.delete_session("empty")
        (difference,) = differences(origin, target)
        assert (difference.session_id, difference.what) == ("empty", "is missing")


def stop_after(origin: SessionDBProvider, target: SessionDBProvider, steps: int) -> None:
    """Start a migration that stops in the middle."""

    class Stop(Exception):
        pass

    reports = []

    def stop(*progress: object) -> None:
        reports.append(progress)
        if len(reports) == steps:
            raise Stop

    migration = Migration(origin, target, stop)
    migration.begin(resume=False)
    with pytest.raises(Stop):
        migration.copy_all()


def test_many_sessions_with_mixed_messages_keep_their_ids(
    target: SessionDBProvider, tmp_path: Path, clock: FakeClock
) -> None:
    with SessionDB(tmp_path / "many.db", clock=clock) as origin:
        talk(origin, sessions=25, messages=8)
        fill(origin, clock)
        migrate(origin, target)
        assert snapshot(target) == snapshot(origin)
