"""Random operations on a store and on a simple model."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from hermes_state import ChildKindName, Conflict, SessionDB, TitleTaken, UnknownMessage, UnknownSession
from tests.property.model import Message, Model, Session

KINDS = ("compression", "branch", "delegate", "reset", "import")
SOURCES = ("cli", "telegram", "discord")
REASONS = ("user_exit", "compression", "branched", "session_reset")
CALLS = [{"id": "c", "function": {"name": "terminal", "arguments": "{}"}}]

indexes = st.integers(0, 30)
texts = st.one_of(st.none(), st.sampled_from(["hello", "x", "", "東京", "a longer line of text, but not too long"]))
roles = st.sampled_from(["user", "user", "assistant", "tool"])
fields = st.fixed_dictionaries({"role": roles, "content": texts, "calls": st.integers(0, 1)})


class StoreMachine(RuleBasedStateMachine):
    """The store and the model."""

    def __init__(self) -> None:
        super().__init__()
        self.place = Path(tempfile.mkdtemp())
        self.now = 1_000_000_000.0
        self.made = 0
        self.model = Model()
        self.db = self.opened()

    def opened(self) -> SessionDB:
        """Open the store with the clock of the test."""
        return SessionDB(self.place / "state.db", clock=lambda: self.now)

    def teardown(self) -> None:
        self.db.close()
        shutil.rmtree(self.place)

    def some(self, index: int) -> Session:
        """Return one of the existing sessions."""
        sessions = list(self.model.sessions.values())
        return sessions[index % len(sessions)]

    def new_name(self) -> str:
        """Return an unused name."""
        self.made += 1
        return f"s{self.made:03}"

    def new_messages(self, many: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Return new messages for the store, each with a uid."""
        return [
            {
                "role": each["role"],
                "content": each["content"],
                "tool_calls": CALLS * each["calls"],
                "uid": self.new_name(),
                "timestamp": each.get("timestamp", self.now),
            }
            for each in many
        ]

    def note(self, session: Session, ids: list[int], given: list[dict[str, Any]]) -> None:
        """Store the same messages in the model."""
        for number, each in zip(ids, given, strict=True):
            message = Message(number, each["uid"], each["role"], each["content"], each["timestamp"])
            message.calls = len(each["tool_calls"])
            session.messages.append(message)

    @initialize()
    def first(self) -> None:
        self.create(0, None, "cli", None)

    @rule(seconds=st.sampled_from([0.001, 1.0, 3600.0, 40 * 86_400.0, -5.0, -86_400.0]))
    def time_passes(self, seconds: float) -> None:
        self.now += seconds

    @rule(
        parent=indexes,
        kind=st.one_of(st.none(), st.sampled_from(KINDS)),
        source=st.sampled_from(SOURCES),
        user=st.one_of(st.none(), st.sampled_from(["u1", "u2"])),
    )
    def create_child(self, parent: int, kind: ChildKindName | None, source: str, user: str | None) -> None:
        if self.model.sessions:
            self.create(parent, kind, source, user, has_parent=True)

    @rule(source=st.sampled_from(SOURCES), user=st.one_of(st.none(), st.sampled_from(["u1", "u2"])))
    def create_root(self, source: str, user: str | None) -> None:
        self.create(0, None, source, user)

    def create(
        self, parent: int, kind: ChildKindName | None, source: str, user: str | None, *, has_parent: bool = False
    ) -> None:
        name = self.new_name()
        above = self.some(parent).id if has_parent else None
        if kind == "compression" and above is not None and self.model.continuations(above):
            with pytest.raises(Conflict):
                self.db.create_session(name, source, user_id=user, parent_session_id=above, child_kind=kind)
            return
        self.db.create_session(name, source, user_id=user, parent_session_id=above, child_kind=kind)
        owner = f"{source}:{user}" if user and source != "cli" else None
        self.model.create(Session(name, source, self.now, parent=above, kind=kind, owner=owner))

    @rule(index=indexes)
    def create_again(self, index: int) -> None:
        if self.model.sessions:
            self.db.create_session(self.some(index).id, "elsewhere", model="other")

    @rule()
    def create_below_nothing(self) -> None:
        with pytest.raises(UnknownSession):
            self.db.create_session("never", "cli", parent_session_id="nowhere")

    @rule(index=indexes, message=fields)
    @precondition(lambda self: self.model.sessions)
    def append(self, index: int, message: dict[str, Any]) -> None:
        session, (given,) = self.some(index), self.new_messages([message])
        self.note(session, [self.db.append_message(session.id, **given)], [given])

    @rule(index=indexes, many=st.lists(fields, max_size=4), back=st.sampled_from([0.0, 10.0, -1e6]))
    @precondition(lambda self: self.model.sessions)
    def append_several(self, index: int, many: list[dict[str, Any]], back: float) -> None:
        session = self.some(index)
        given = self.new_messages([{**each, "timestamp": self.now - back} for each in many])
        self.note(session, self.db.append_messages(session.id, given), given)

    @rule(index=indexes, position=indexes)
    @precondition(lambda self: self.model.sessions)
    def repeat_a_uid(self, index: int, position: int) -> None:
        session = self.some(index)
        assume(session.messages)
        message = session.messages[position % len(session.messages)]
        assert self.db.append_message(session.id, "user", "again", uid=message.uid) == message.id

    @rule(index=indexes, many=st.lists(fields, max_size=3))
    @precondition(lambda self: self.model.sessions)
    def replace(self, index: int, many: list[dict[str, Any]]) -> None:
        session, given = self.some(index), self.new_messages(many)
        self.db.replace_messages(session.id, given)
        session.messages = []
        ids = [row["id"] for row in self.db.get_messages(session.id)]
        self.note(session, ids, given)

    @rule(index=indexes)
    @precondition(lambda self: self.model.sessions)
    def clear(self, index: int) -> None:
        session = self.some(index)
        assert self.db.clear_messages(session.id)
        session.messages = []

    @rule(index=indexes, position=indexes)
    @precondition(lambda self: self.model.sessions)
    def rewind(self, index: int, position: int) -> None:
        session = self.some(index)
        user_messages = [message for message in session.messages if message.role == "user"]
        assume(user_messages)
        target = user_messages[position % len(user_messages)]
        hidden = [message for message in session.active if message.id >= target.id]
        assert self.db.rewind_to_message(session.id, target.id)["rewound_count"] == len(hidden)
        for message in hidden:
            message.active = False

    @rule(index=indexes, position=indexes)
    @precondition(lambda self: self.model.sessions)
    def restore(self, index: int, position: int) -> None:
        session = self.some(index)
        assume(session.messages)
        since = session.messages[position % len(session.messages)].id
        back = [message for message in session.messages if message.id >= since and not message.active]
        assert self.db.restore_rewound(session.id, since) == len(back)
        for message in back:
            message.active = True

    @rule(index=indexes)
    @precondition(lambda self: self.model.sessions)
    def rewind_to_nothing(self, index: int) -> None:
        with pytest.raises(UnknownMessage):
            self.db.rewind_to_message(self.some(index).id, 10**9)

    @rule(index=indexes, reason=st.sampled_from(REASONS))
    @precondition(lambda self: self.model.sessions)
    def end(self, index: int, reason: str) -> None:
        session = self.some(index)
        assert self.db.end_session(session.id, reason) == (session.ended_at is None)
        if session.ended_at is None:
            session.ended_at, session.end_reason = self.now, reason

    @rule(index=indexes)
    @precondition(lambda self: self.model.sessions)
    def reopen(self, index: int) -> None:
        session = self.some(index)
        assert self.db.reopen_session(session.id)
        session.ended_at = session.end_reason = None

    @rule(index=indexes, title=st.sampled_from(["Docker", "Docker #2", "Docker #10", "Tea", "x #notes"]))
    @precondition(lambda self: self.model.sessions)
    def name(self, index: int, title: str) -> None:
        session = self.some(index)
        holder = self.model.holder_of(title, session.owner)
        if holder is not None and holder is not session:
            with pytest.raises(TitleTaken, match="already in use"):
                self.db.set_session_title(session.id, title)
        else:
            assert self.db.set_session_title(session.id, title)
            session.title = title

    @rule(index=indexes)
    @precondition(lambda self: self.model.sessions)
    def take_the_name_away(self, index: int) -> None:
        session = self.some(index)
        assert self.db.set_session_title(session.id, "")
        session.title = None

    @rule(index=indexes, column=st.sampled_from(["archived", "pinned"]), value=st.booleans())
    @precondition(lambda self: self.model.sessions)
    def mark(self, index: int, column: str, value: bool) -> None:
        session = self.some(index)
        assert getattr(self.db, f"set_session_{column}")(session.id, value)
        self.model.set_for_chain(session, column, value)

    @rule(index=indexes, tokens=st.integers(0, 1000), is_absolute=st.booleans())
    @precondition(lambda self: self.model.sessions)
    def count_tokens(self, index: int, tokens: int, is_absolute: bool) -> None:
        session = self.some(index)
        self.db.update_token_counts(session.id, input_tokens=tokens, absolute=is_absolute)
        session.input_tokens = tokens if is_absolute else session.input_tokens + tokens

    @rule(tokens=st.integers(1, 9))
    def count_tokens_of_an_unknown_session(self, tokens: int) -> None:
        name = self.new_name()
        self.db.update_token_counts(name, output_tokens=tokens)
        self.model.create(Session(name, "unknown", self.now, output_tokens=tokens))

    @rule(index=indexes)
    @precondition(lambda self: len(self.model.sessions) > 1)
    def delete(self, index: int) -> None:
        session = self.some(index)
        assert self.db.delete_session(session.id)
        self.model.delete([session.id])
        assert not self.db.delete_session(session.id)

    @rule(days=st.sampled_from([0.0, 1.0, 30.0]), source=st.one_of(st.none(), st.sampled_from(SOURCES)))
    def prune(self, days: float, source: str | None) -> None:
        expected_ids = self.model.prunable(self.now, days, source)
        assert sorted(self.db.list_prunable(days, source)) == sorted(expected_ids)
        assert self.db.prune_sessions(days, source) == len(expected_ids)
        self.model.delete(expected_ids)

    @rule(index=indexes)
    @precondition(lambda self: self.model.sessions)
    def delete_and_bring_back(self, index: int) -> None:
        """A session without children is restored unchanged from its export."""
        session = self.some(index)
        assume(all(each.parent != session.id for each in self.model.sessions.values()))
        # A child without a kind has its own test; an import has no time in the future.
        assume(session.parent is None or session.kind is not None)
        assume(session.latest <= self.now)
        exported = self.db.export_session(session.id, include_inactive=True)
        assert exported is not None
        self.db.delete_session(session.id)
        assert self.db.import_session(exported, keep_owner=True, add_to_own=True) == session.id
        ids = [row["id"] for row in self.db.get_messages(session.id, include_inactive=True)]
        for message, number in zip(session.messages, ids, strict=True):
            message.id = number

    @rule(index=indexes, on_conflict=st.sampled_from(["skip", "merge"]))
    @precondition(lambda self: self.model.sessions)
    def import_an_existing_session(self, index: int, on_conflict: Any) -> None:
        exported = self.db.export_session(self.some(index).id, include_inactive=True)
        assert exported is not None
        self.db.import_session(exported, on_conflict, keep_owner=True)

    @rule(index=indexes)
    @precondition(lambda self: self.model.sessions)
    def import_as_another(self, index: int) -> None:
        session = self.some(index)
        assume(session.title is None and session.parent is None and session.latest <= self.now)
        exported = self.db.export_session(session.id, include_inactive=True)
        assert exported is not None
        name = self.db.import_session(exported, "rename", keep_owner=True)
        copy = self.model.copy_of(session, id=name)
        for message, row in zip(copy.messages, self.db.get_messages(name, include_inactive=True), strict=True):
            message.id = row["id"]
        self.model.create(copy)

    @rule()
    def open_again(self) -> None:
        self.db.close()
        self.db = self.opened()
