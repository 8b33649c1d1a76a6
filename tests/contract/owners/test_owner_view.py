"""A view of the store for one owner shows nothing of other owners."""

from __future__ import annotations

import inspect
import json
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import AmbiguousSession, Conflict, HermesError, InvalidValue, TitleTaken, UnknownSession
from hermes.state.operations import read
from hermes.state.owner import EVERYBODY, TERMINAL, owner_of, owner_of_room
from hermes.state.owner_view import OwnerView
from hermes.state.provider import SessionDBProvider
from hermes.state.recall.tool import session_search
from hermes.state.sessions.lookup import Purpose, find_session
from hermes_state import SessionDB
from tests.contract.owners.stored_rows import rows_of
from tests.contract.test_surface import GROUPS, NAMES
from tests.support.calls import READS, WRITES, Sample, fill
from tests.support.clock import FakeClock
from tests.support.conversations import contents, ids, say, start
from tests.support.stores import Opener

ALICE, BOB = owner_of("telegram", "1"), owner_of("telegram", "2")

OPERATOR_ONLY = {
    *GROUPS,
    "apply_telegram_topic_migration",
    "bind_telegram_topic",
    "capabilities",
    "claim_handoff",
    "close",
    "complete_handoff",
    "count_empty_sessions",
    "delete_empty_sessions",
    "delete_session",
    "delete_session_if_empty",
    "delete_sessions",
    "delete_with_receipt",
    "disable_telegram_topic_mode",
    "enable_telegram_topic_mode",
    "fail_handoff",
    "finalize_orphaned_compression_sessions",
    "for_owner",
    "get_handoff_state",
    "get_meta",
    "get_telegram_topic_binding",
    "get_telegram_topic_binding_by_session",
    "health",
    "import_database",
    "import_session",
    "initialize",
    "is_telegram_session_linked_to_topic",
    "is_telegram_topic_mode_enabled",
    "list_pending_handoffs",
    "list_prunable",
    "list_telegram_topic_bindings_for_chat",
    "list_unlinked_telegram_sessions_for_user",
    "maybe_auto_prune_and_vacuum",
    "optimize_fts",
    "preview_prune",
    "prune_empty_ghost_sessions",
    "prune_sessions",
    "prune_with_receipt",
    "read_only",
    "request_handoff",
    "schema_version",
    "set_meta",
    "vacuum",
}
"""What a view does not have, each because it is for the operator."""

OWN = {"asker", "fenced", "narrowed_to", "owner"}
"""What only a view has."""

CALLS = {name: call for name, call in {**READS, **WRITES}.items() if hasattr(OwnerView, name)}


@pytest.fixture
def sample(store: SessionDBProvider, tmp_path: Path) -> Sample:
    """Fill a store with sessions of Alice only, with rows in every table."""
    path = tmp_path / "elsewhere.db"
    with SessionDB(path) as other:
        sample = fill(store, other, path)
    assert store.try_acquire_compression_lock("s", "me")
    return sample


def outcome(view: OwnerView, sample: Sample, name: str) -> Any:
    """Return the result of a call, or its error."""
    try:
        came: Any = CALLS[name](view, sample)  # type: ignore[arg-type]
        # All messages of a store share one sequence of ids, for all owners.
        return {**came, "message_id": 0} if name == "start_session" else came
    except HermesError as error:
        return type(error), str(error), error.hint


def rows_of_alice(store: SessionDBProvider) -> dict[str, list[tuple[Any, ...]]]:
    return rows_of(store, "s", "ghost", "cron_job_20260101_000000")


def test_each_name_of_a_store_is_in_the_view_or_for_the_operator() -> None:
    public = {name for name in dir(OwnerView) if not name.startswith("_")}
    assert (public - OWN) | OPERATOR_ONLY == set(NAMES)
    assert not public & OPERATOR_ONLY


def test_each_operation_of_the_view_is_tried_by_a_stranger() -> None:
    public = {name for name in dir(OwnerView) if not name.startswith("_")}
    assert CALLS.keys() == public - OWN - {"MAX_TITLE_LENGTH", "sanitize_title"}


class TestAStranger:
    @pytest.mark.parametrize("name", CALLS)
    def test_stranger_gets_what_an_empty_store_would_give_them(
        self, store: SessionDBProvider, open_store: Opener, sample: Sample, name: str
    ) -> None:
        nothing = outcome(open_store("empty").for_owner(BOB), sample, name)
        assert outcome(store.for_owner(BOB), sample, name) == nothing

    @pytest.mark.parametrize("name", CALLS)
    def test_stranger_changes_nothing(self, store: SessionDBProvider, sample: Sample, name: str) -> None:
        before = rows_of_alice(store)
        outcome(store.for_owner(BOB), sample, name)
        assert rows_of_alice(store) == before

    @pytest.mark.parametrize("name", CALLS)
    def test_stranger_gets_nothing_as_the_terminal_either(
        self, store: SessionDBProvider, open_store: Opener, sample: Sample, name: str
    ) -> None:
        before = rows_of_alice(store)
        nothing = outcome(open_store("empty").for_owner(TERMINAL), sample, name)
        assert outcome(store.for_owner(TERMINAL), sample, name) == nothing
        assert rows_of_alice(store) == before


class TestTheOwner:
    @pytest.mark.parametrize("name", [each for each in CALLS if each in READS])
    def test_owner_reads_what_the_store_has(self, store: SessionDBProvider, sample: Sample, name: str) -> None:
        assert outcome(store.for_owner(ALICE), sample, name) == READS[name](store, sample)

    @pytest.mark.parametrize(
        "name", [each for each in CALLS if each in WRITES and each not in ("create_session", "start_session")]
    )
    def test_owner_changes_what_is_theirs(self, store: SessionDBProvider, sample: Sample, name: str) -> None:
        failed = outcome(store.for_owner(ALICE), sample, name)
        assert not (isinstance(failed, tuple) and isinstance(failed[0], type))

    def test_owner_owns_every_session_that_they_create(self, store: SessionDBProvider) -> None:
        view = store.for_owner(owner_of_room("agent:main:telegram:group:9"))
        view.create_session("a", "telegram", user_id="1")
        view.ensure_session("b", user_id="1")
        view.start_session("c", "telegram", {"role": "user", "content": "x"}, user_id="1")
        view.branch_session("c", "d")
        assert {row["owner"] for row in store.search_sessions()} == {"agent:main:telegram:group:9"}

    def test_owner_does_not_see_when_another_was_active(self, store: SessionDBProvider) -> None:
        alice, bob = store.for_owner(ALICE), store.for_owner(BOB)
        alice.create_session("hers", "telegram", started_at=10)
        alice.append_message("hers", "user", "hello", timestamp=20)
        store.create_session(
            "his", "telegram", owner="telegram:2", parent_session_id="hers", child_kind="compression", started_at=5
        )
        bob.append_message("his", "user", "hello", timestamp=4_000)
        alice.clear_messages("hers")
        assert [row["chain_active"] for row in alice.list_sessions_rich()] == [10]

    def test_owner_creates_no_session_of_the_terminal(self, store: SessionDBProvider) -> None:
        for source in ("cli", "tui"):
            with pytest.raises(InvalidValue):
                store.for_owner(ALICE).create_session("s", source)
        assert store.search_sessions() == []

    def test_owner_can_name_no_other_owner(self, store: SessionDBProvider, sample: Sample) -> None:
        view: Any = store.for_owner(BOB)
        takers = [name for name in CALLS if "owner" in inspect.signature(getattr(OwnerView, name)).parameters]
        assert len(takers) > 25
        given = {"session_id": "s", "title": "Title", "around_message_id": sample.message_id, "query": "hello"}
        given |= {"base_title": "Title", "session_id_or_prefix": "s", "job_id": "job", "source": "telegram"}
        for name in takers:
            wanted = [
                each.name
                for each in inspect.signature(getattr(view, name)).parameters.values()
                if each.default is inspect.Parameter.empty and each.kind is not inspect.Parameter.VAR_KEYWORD
            ]
            for other in (ALICE, EVERYBODY, TERMINAL, "telegram:1", ""):
                with pytest.raises(InvalidValue):
                    # An iterator starts to read only when `list` consumes it.
                    list(getattr(view, name)(**{each: given[each] for each in wanted}, owner=other))

    def test_owner_cannot_take_the_id_of_another_owners_session(self, store: SessionDBProvider, sample: Sample) -> None:
        view = store.for_owner(BOB)
        with pytest.raises(Conflict):
            view.create_session("s", "telegram")
        with pytest.raises(Conflict):
            view.start_session("s", "telegram", {"role": "user", "content": "x"})

    def test_owner_cannot_continue_another_owners_session(self, store: SessionDBProvider, sample: Sample) -> None:
        view = store.for_owner(BOB)
        for parent in ("s", "missing"):
            with pytest.raises(UnknownSession, match=parent):
                view.create_session("mine", "telegram", parent_session_id=parent)
        assert view.get_session("mine") is None


class TestTitles:
    def test_titles_of_others_are_free_and_count_for_nothing(self, store: SessionDBProvider, sample: Sample) -> None:
        view = store.for_owner(BOB)
        view.create_session("mine", "telegram")
        assert view.set_session_title("mine", "Title")
        assert view.get_next_title_in_lineage("Title") == "Title #2"
        assert view.resolve_session_by_title("Title") == "mine"
        started = view.start_session("next", "telegram", {"role": "user", "content": "x"}, title="Plan")
        assert started["title"] == "Plan"

    def test_automatic_titles_are_those_of_an_empty_store(self, store: SessionDBProvider, sample: Sample) -> None:
        view = store.for_owner(BOB)
        view.create_session("mine", "telegram")
        assert view.set_title_if_untitled("mine", "Title") == "Title"

    def test_titles_clash_within_one_owner(self, store: SessionDBProvider, sample: Sample) -> None:
        view = store.for_owner(ALICE)
        view.create_session("other", "telegram")
        with pytest.raises(TitleTaken, match="already in use by session s"):
            view.set_session_title("other", "Title")

    def test_titles_of_a_compressed_session_are_numbered_within_one_owner(self, store: SessionDBProvider) -> None:
        start(store, "theirs", source="telegram", user_id="1")
        store.set_session_title("theirs", "Plan #7")
        view = store.for_owner(BOB)
        view.start_session("mine", "telegram", {"role": "user", "content": "x"}, title="Plan")
        assert view.compress_session("mine", "child", "in short", tail_from=10**9)["title"] == "Plan #2"

    def test_titles_of_a_stranger_do_not_take_over_a_lineage_of_the_terminal(self, store: SessionDBProvider) -> None:
        start(store, "mine")
        store.set_session_title("mine", "Plan")
        start(store, "theirs", source="telegram", user_id="1")
        store.set_session_title("theirs", "Plan #99")
        assert store.resolve_session_by_title("Plan") == "mine"
        assert find_session(store, "Plan", Purpose.RESUME) == "mine"

    def test_titles_of_the_terminal_come_first_where_others_have_them_too(
        self, store: SessionDBProvider, clock: FakeClock
    ) -> None:
        start(store, "mine")
        clock.advance(1)
        start(store, "theirs", source="telegram", user_id="1")
        for each in ("mine", "theirs"):
            store.set_session_title(each, "Plan")
        found = store.get_session_by_title("Plan")
        assert found is not None
        assert found["id"] == "mine"

    def test_titles_of_an_import_are_free_if_another_owner_has_them(
        self, store: SessionDBProvider, sample: Sample
    ) -> None:
        data = {**sample.exported, "title": "Title", "owner": "telegram:2", "user_id": "2"}
        store.import_session(data)
        assert store.get_session_title("imported") == "Title"


class TestTheTerminalAsAnOwner:
    def test_terminal_sees_its_own_sessions_only(self, store: SessionDBProvider, sample: Sample) -> None:
        view = store.for_owner(TERMINAL)
        view.start_session("mine", "cli", {"role": "user", "content": "hello from here"}, user_id="other")
        assert ids(view.list_sessions_rich()) == ["mine"]
        assert ids(store.search_sessions(owner=TERMINAL)) == ["mine"]
        assert [hit["session_id"] for hit in view.search_messages("hello")] == ["mine"]

    def test_terminal_finds_its_own_messages_in_the_index(self, store: SessionDBProvider) -> None:
        start(store, "theirs", source="telegram", user_id="1")
        say(store, "theirs", "a lantern of theirs")
        start(store, "mine")
        say(store, "mine", "a lantern of mine")
        store.optimize_fts()
        assert contents(store.for_owner(TERMINAL).get_messages("mine")) == ["a lantern of mine"]
        assert [hit["session_id"] for hit in store.for_owner(TERMINAL).search_messages("lantern")] == ["mine"]


class TestEverybody:
    def test_everybody_must_be_named_explicitly(self, store: SessionDBProvider) -> None:
        for missing in (None, "", "telegram:1", "everybody", False):
            with pytest.raises(InvalidValue):
                store.for_owner(missing)  # type: ignore[arg-type]

    @pytest.mark.parametrize("name", [each for each in CALLS if each in READS])
    def test_everybody_reads_what_the_store_has(self, store: SessionDBProvider, sample: Sample, name: str) -> None:
        assert outcome(store.for_owner(EVERYBODY), sample, name) == READS[name](store, sample)

    def test_everybody_creates_sessions_of_the_terminal(self, store: SessionDBProvider) -> None:
        view = store.for_owner(EVERYBODY)
        view.create_session("s", "cli")
        assert view.owner == TERMINAL
        assert view.get_session("s", owner=TERMINAL) is not None

    def test_everybody_can_be_narrowed_and_an_owner_cannot_be_widened(self, store: SessionDBProvider) -> None:
        narrow = store.for_owner(EVERYBODY).narrowed_to(BOB)
        assert narrow.asker == narrow.narrowed_to(BOB).asker == BOB
        for other in (ALICE, TERMINAL, EVERYBODY, None):
            with pytest.raises(InvalidValue):
                narrow.narrowed_to(other)  # type: ignore[arg-type]


def test_reading_the_sessions_of_all_owners_refuses_a_view(store: SessionDBProvider) -> None:
    with pytest.raises(InvalidValue):
        read(store.for_owner(BOB), lambda tx: tx.value("SELECT 1"))
    assert read(store.for_owner(EVERYBODY), lambda tx: tx.value("SELECT 1")) == 1


def test_a_name_means_a_session_of_the_asker(store: SessionDBProvider, sample: Sample) -> None:
    view = store.for_owner(BOB)
    view.create_session("mine-1", "telegram")
    view.set_session_title("mine-1", "Title")
    for purpose in Purpose:
        assert find_session(view, "Title", purpose) == "mine-1"
        assert find_session(view, "mine", purpose) == "mine-1"
        for foreign in ("s", "ghost", "ghos", "cron_job"):
            with pytest.raises(UnknownSession) as caught:
                find_session(view, foreign, purpose)
            assert "cron" not in (caught.value.hint or "")
            assert not isinstance(caught.value, AmbiguousSession)


class TestRecall:
    def test_recall_shows_own_sessions_only(self, store: SessionDBProvider, sample: Sample) -> None:
        nothing = json.loads(session_search("hello", db=store.for_owner(BOB)))
        assert (nothing["success"], nothing["count"], nothing["hidden"]) == (True, 0, {})
        assert json.loads(session_search("hello", db=store.for_owner(ALICE)))["count"] == 1

    def test_recall_opens_no_profile_for_an_owner(self, store: SessionDBProvider) -> None:
        view = store.for_owner(BOB)
        for answer in (session_search(db=view, profile="default"), session_search(db=view, session_id="default/s")):
            assert json.loads(answer) == {"success": False, "error": "other profiles cannot be searched from here"}

    def test_recall_can_name_no_other_owner(self, store: SessionDBProvider, sample: Sample) -> None:
        for other in ("telegram:1", EVERYBODY, TERMINAL):
            assert not json.loads(session_search("hello", db=store.for_owner(BOB), owner=other))["success"]

    def test_recall_finds_a_message_of_another_owner_nowhere(self, store: SessionDBProvider, sample: Sample) -> None:
        view = store.for_owner(BOB)
        view.start_session("mine", "telegram", {"role": "user", "content": "x"})
        foreign, unknown = (
            session_search(session_id="mine", around_message_id=each, db=view) for each in (sample.message_id, 10**9)
        )
        assert foreign.replace(str(sample.message_id), "N") == unknown.replace(str(10**9), "N")
