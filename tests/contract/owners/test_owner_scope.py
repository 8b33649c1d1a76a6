"""A read for another owner's sessions returns the same as if there were none."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.support.calls import OWNER, STRANGER, Sample, fill
from tests.support.clock import FakeClock
from tests.support.conversations import contents, ids, say, start

NO_WINDOW = {"window": [], "messages_before": 0, "messages_after": 0}
Arguments = tuple[object, ...]

NOTHING: dict[str, tuple[Arguments, object]] = {
    "count_by_source": ((), {}),
    "export_all": ((), []),
    "export_session": (("s",), None),
    "get_anchored_view": (("s", "MESSAGE"), {**NO_WINDOW, "bookend_start": [], "bookend_end": []}),
    "get_ancestors": (("s",), []),
    "get_compression_tip": (("root",), "root"),
    "get_descendants": (("s",), []),
    "get_handoff_state": (("s",), None),
    "get_messages": (("s",), []),
    "get_messages_around": (("s", "MESSAGE"), NO_WINDOW),
    "get_messages_as_conversation": (("s",), []),
    "get_session": (("s",), None),
    "get_session_by_title": (("Title",), None),
    "get_session_title": (("s",), None),
    "get_session_tools": (("s",), {}),
    "iter_export": ((), []),
    "list_cron_job_runs": (("job",), []),
    "list_recent_user_messages": (("s",), []),
    "list_rewinds": (("s",), []),
    "list_sessions_rich": ((), []),
    "list_usage_events": (("s",), []),
    "message_count": (("s",), 0),
    "resolve_resume_session_id": (("root",), "root"),
    "resolve_session_by_title": (("Title",), None),
    "resolve_session_id": (("s",), None),
    "search_sessions": ((), []),
    "search_sessions_by_id": (("s",), []),
    "session_count": ((), 0),
    "top_sessions": ((), []),
    "usage_by_model": ((), []),
}


@pytest.fixture
def sample(store: SessionDBProvider, clock: FakeClock, tmp_path: Path) -> Sample:
    """Fill a store with sessions of `OWNER` only."""
    path = tmp_path / "elsewhere.db"
    with SessionDB(path) as other:
        sample = fill(store, other, path)
    start(store, "root", source="telegram", user_id="1")
    start(store, "tip", source="telegram", user_id="1", parent_session_id="root", child_kind="compression")
    say(store, "tip", "x")
    return sample


def ask(store: SessionDBProvider, sample: Sample, name: str, owner: str | None) -> Any:
    """Return the result of a read for an owner."""
    arguments, _ = NOTHING[name]
    given = [sample.message_id if each == "MESSAGE" else each for each in arguments]
    answer = getattr(store, name)(*given, owner=owner)
    return list(answer) if name == "iter_export" else answer


class TestReads:
    @pytest.mark.parametrize("name", NOTHING)
    def test_reads_show_a_stranger_nothing(self, store: SessionDBProvider, sample: Sample, name: str) -> None:
        assert ask(store, sample, name, STRANGER) == NOTHING[name][1]

    @pytest.mark.parametrize("name", NOTHING)
    def test_reads_show_the_owner_everything(self, store: SessionDBProvider, sample: Sample, name: str) -> None:
        assert NOTHING[name][1] != ask(store, sample, name, OWNER) == ask(store, sample, name, None)

    def test_reads_count_all_messages_of_an_owner(self, store: SessionDBProvider, sample: Sample) -> None:
        assert (store.message_count(owner=OWNER), store.message_count(owner=STRANGER)) == (3, 0)


class TestOwners:
    def test_owners_with_the_same_id_on_two_platforms_are_different(self, store: SessionDBProvider) -> None:
        start(store, "t", source="telegram", user_id="1")
        start(store, "d", source="discord", user_id="1")
        assert ids(store.list_sessions_rich(owner="discord:1")) == ["d"]

    def test_owners_do_not_see_sessions_of_the_terminal(self, store: SessionDBProvider) -> None:
        start(store, "s", source="cli")
        assert store.list_sessions_rich(owner=OWNER) == []

    def test_owners_of_a_shared_lane_see_its_sessions(self, store: SessionDBProvider) -> None:
        start(store, "s", source="telegram", user_id="1", owner="agent:main:telegram:group:9")
        assert ids(store.list_sessions_rich(owner="agent:main:telegram:group:9")) == ["s"]
        assert store.list_sessions_rich(owner="telegram:1") == []

    def test_owners_resolve_a_prefix_among_their_own(self, store: SessionDBProvider) -> None:
        start(store, "abc1", source="telegram", user_id="1")
        start(store, "abc2", source="telegram", user_id="2")
        assert store.resolve_session_id("abc", owner="telegram:1") == "abc1"

    def test_owners_resolve_a_title_among_their_own(self, store: SessionDBProvider) -> None:
        start(store, "mine", source="telegram", user_id="1")
        start(store, "theirs", source="telegram", user_id="2")
        store.set_session_title("mine", "Docker")
        store.set_session_title("theirs", "Docker #2")
        assert store.resolve_session_by_title("Docker", owner="telegram:1") == "mine"

    def test_owners_page_through_their_own(self, store: SessionDBProvider, clock: FakeClock) -> None:
        for number in range(6):
            clock.advance(1)
            start(store, f"s{number}", source="telegram", user_id=str(number % 2))
        first = store.list_sessions_rich(owner="telegram:1", limit=2)
        rest = store.list_sessions_rich(owner="telegram:1", limit=2, after=first[-1]["cursor"])
        assert ids(first) + ids(rest) == ["s5", "s3", "s1"]


class TestRelativesOfAnotherOwner:
    @pytest.fixture
    def mixed(self, store: SessionDBProvider) -> SessionDBProvider:
        """Let an own session continue one of another owner, and the reverse."""
        start(store, "theirs", source="telegram", user_id="2")
        say(store, "theirs", "their secret")
        start(store, "mine", source="telegram", user_id="1", parent_session_id="theirs", child_kind="compression")
        say(store, "mine", "my words")
        start(store, "theirs again", source="telegram", user_id="2", parent_session_id="mine", child_kind="branch")
        return store

    def test_relatives_of_another_owner_are_no_ancestors(self, mixed: SessionDBProvider) -> None:
        assert ids(mixed.get_ancestors("mine", owner=OWNER)) == ["mine"]

    def test_relatives_of_another_owner_are_no_descendants(self, mixed: SessionDBProvider) -> None:
        assert ids(mixed.get_descendants("mine", owner=OWNER)) == ["mine"]

    def test_relatives_of_another_owner_are_not_replayed(self, mixed: SessionDBProvider) -> None:
        replayed = mixed.get_messages_as_conversation("mine", include_ancestors=True, owner=OWNER)
        assert contents(replayed) == ["my words"]

    def test_relatives_of_another_owner_are_not_shown_as_the_tip_of_a_conversation(
        self, mixed: SessionDBProvider
    ) -> None:
        assert ids(mixed.list_sessions_rich(owner=STRANGER, project_compression_tips=True)) == [
            "theirs again",
            "theirs",
        ]
