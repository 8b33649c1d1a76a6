"""After any sequence of operations the store equals a simple model."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from hermes.state.sessions.lists.browsing import BrowseFilter, ListedConversation, Order, list_conversations
from hermes_state import SessionDB
from tests.property.machine import StoreMachine, indexes

IS_LONG = os.environ.get("HERMES_LONG") == "1"


class CheckedMachine(StoreMachine):
    """The store and the model, compared after every step."""

    @rule(
        by_activity=st.booleans(),
        size=st.integers(1, 4),
        wanted=st.sampled_from(["all", "source", "owner", "archived"]),
    )
    def page_through(self, by_activity: bool, size: int, wanted: str) -> None:
        mine: dict[str, Any] = {"source": {"source": "cli"}, "owner": {"owner": "telegram:u1"}}.get(wanted, {})
        only: dict[str, Any] = {"archived_only": True} if wanted == "archived" else {}
        expected = [
            session.id for session in self.model.listed(by_activity=by_activity, archived=wanted == "archived", **mine)
        ]
        arguments = {**mine, **only, "order_by_last_active": by_activity, "limit": size}
        found: list[str] = []
        cursor = None
        while page := self.db.list_sessions_rich(**arguments, after=cursor):
            found += [str(row.get("_lineage_root_id", row["id"])) for row in page]
            cursor = page[-1]["cursor"]
        assert found == expected
        second = self.db.list_sessions_rich(**arguments, offset=size)
        assert [row.get("_lineage_root_id", row["id"]) for row in second] == expected[size : 2 * size]

    @rule()
    def look_at_the_list(self) -> None:
        shown = self.db.list_sessions_rich(limit=-1)
        for row, session in zip(shown, self.model.listed(by_activity=False), strict=True):
            tip = self.model.tip(session)
            assert (row["id"], row["title"], row["preview"]) == (tip.id, tip.title, tip.preview)
            assert (row["message_count"], row["last_active"]) == (len(tip.active), tip.last_active)

    @rule(size=st.integers(1, 4), order=st.sampled_from(Order))
    def browse(self, size: int, order: Order) -> None:
        found: list[ListedConversation] = []
        while page := list_conversations(self.db, BrowseFilter(order=order), size, found[-1] if found else None):
            found += page
        listed = self.model.listed(by_activity=order is Order.ACTIVE)
        if order is Order.MESSAGES:
            listed.sort(key=lambda each: (len(self.model.tip(each).active), each.started_at, each.id), reverse=True)
        elif order is Order.TITLE:
            titles = {each.id: self.model.tip(each).title for each in listed}
            listed.sort(key=lambda each: (titles[each.id] is None, (titles[each.id] or "").lower(), each.id))
        assert [(each.root_id, each.id) for each in found] == [(each.id, self.model.tip(each).id) for each in listed]

    @rule()
    def look_at_everything_by_activity(self) -> None:
        found = [row["id"] for row in self.db.search_sessions(limit=-1)]
        order = sorted(self.model.sessions.values(), key=lambda s: (s.last_active, s.started_at, s.id), reverse=True)
        assert found == [session.id for session in order]

    @rule(index=indexes)
    @precondition(lambda self: self.model.sessions)
    def look_at_the_family(self, index: int) -> None:
        session = self.some(index)
        assert self.db.get_compression_tip(session.id) == self.model.tip(session).id
        above, family = session, [session.id]
        while above.parent is not None:
            above = self.model.sessions[above.parent]
            family.append(above.id)
        assert [row["id"] for row in self.db.get_ancestors(session.id)] == family
        conversation = self.db.get_messages_as_conversation(session.id)
        assert [message["content"] for message in conversation] == [message.content for message in session.active]

    @invariant()
    def every_session_is_as_in_the_model(self) -> None:
        for session in self.model.sessions.values():
            row = self.db.get_session(session.id)
            assert row is not None
            stored = {
                "source": row["source"],
                "started_at": row["started_at"],
                "parent": row["parent_session_id"],
                "kind": row["child_kind"],
                "owner": row["owner"],
                "ended_at": row["ended_at"],
                "end_reason": row["end_reason"],
                "title": row["title"],
                "archived": bool(row["archived"]),
                "pinned": bool(row["pinned"]),
                "input_tokens": row["input_tokens"],
                "output_tokens": row["output_tokens"],
                "last_active": row["last_active"],
                "preview": row["preview"] or "",
                "is_listed": bool(row["listed"]),
            }
            assert stored == {name: getattr(session, name) for name in stored}
            assert row["message_count"] == len(session.active)
            assert row["tool_call_count"] == sum(message.calls for message in session.active)

    @invariant()
    def every_message_is_as_in_the_model(self) -> None:
        for session in self.model.sessions.values():
            rows = self.db.get_messages(session.id, include_inactive=True)
            assert [
                (row["id"], row["uid"], row["role"], row["content"], row["timestamp"], bool(row["active"]))
                for row in rows
            ] == [(m.id, m.uid, m.role, m.content, m.timestamp, m.active) for m in session.messages]

    @invariant()
    def counters_are_the_sums_of_what_was_booked(self) -> None:
        for session in self.model.sessions.values():
            events = self.db.list_usage_events(session.id)
            assert sum(event["input_tokens"] for event in events) == session.input_tokens
            assert sum(event["output_tokens"] for event in events) == session.output_tokens
            calls = sum(message.calls for message in session.active)
            assert sum(self.db.get_session_tools(session.id).values()) == calls

    @invariant()
    def there_is_nothing_else(self) -> None:
        assert self.db.session_count(include_archived=True) == len(self.model.sessions)
        assert self.db.message_count() == sum(len(session.active) for session in self.model.sessions.values())


def test_child_without_a_kind_survives_export_and_import(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("parent", "cli")
        db.create_session("child", "cli", parent_session_id="parent")
        db.end_session("parent", "compression")
        exported = db.export_session("child")
        assert exported is not None
        db.delete_session("child")
        db.import_session(exported, add_to_own=True)
        assert db.export_session("child") == {**exported, "imported_from": "import_session"}


TestStoreAgainstModel = CheckedMachine.TestCase
TestStoreAgainstModel.settings = settings(
    max_examples=1500 if IS_LONG else 110,
    stateful_step_count=60 if IS_LONG else 40,
    derandomize=not IS_LONG,
    deadline=None,
    database=None,
    phases=[Phase.explicit, Phase.generate, Phase.shrink],
    suppress_health_check=list(HealthCheck),
)
