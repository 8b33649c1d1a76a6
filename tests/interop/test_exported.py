"""Import of exported sessions: whole or not at all, whatever they contain and however long they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.interop import exported
from hermes.interop.importer import MAX_GROUP_MESSAGES
from hermes.interop.jsonl import lines
from hermes.interop.jsonl.encoding import line_of
from hermes.state.import_export.session_checks import EXPORT_SCHEMA
from hermes.state.import_export.session_reader import read_sessions
from hermes.state.import_export.session_writer import ImportOutcome
from hermes.state.provider import SessionDBProvider
from tests.interop.files import Claude, Entry, failure_of, import_files, write
from tests.support.conversations import column, contents, session_of

BOM = "\ufeff"


def session(name: str, *words: str, **more: Any) -> Entry:
    """An exported session with messages of the user."""
    messages = [{"role": "user", "content": each, "uid": f"{name}-{n}"} for n, each in enumerate(words)]
    return {"schema": EXPORT_SCHEMA, "id": name, "source": "cli", **more, "messages": messages}


@pytest.fixture
def small_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    """Treat lines of 100 bytes as long, and lines of 2000 bytes as too long."""
    monkeypatch.setattr(exported, "MAX_LINE_IN_MEMORY", 100)
    monkeypatch.setattr("hermes.interop.detection.MAX_LINE_IN_MEMORY", 100)
    monkeypatch.setattr("hermes.interop.jsonl.long_line._CHUNK", 16)
    for module in ("lines", "long_line"):
        monkeypatch.setattr(f"hermes.interop.jsonl.{module}.LONGEST_LINE", 2000)


class TestBadLines:
    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ('{"id": "x", ', "not JSON"),
            ("nonsense", "not JSON (Expecting value)"),
            ('{"id": "x\tcontrol", ', "not JSON (Invalid control character)"),
            ("[1]", "expected an object, found a list"),
            ('"x"', "expected an object, found a string"),
            ("null", "expected an object, found null"),
            ("{}", "id must be a string, not NoneType"),
            ('{"id": "x", "messages": 5}', "the messages of an exported session"),
            ('{"id": "x", "messages": [5]}', "message 0 of session 'x' is not a dict"),
            ('{"id": "x", "messages": [{}]}', "role must be a string, not NoneType"),
            ('{"id": "x", "usage": [5]}', "the usage of an exported session is a list of dicts"),
            ('{"id": "x", "usage": [{"at": null, "kind": "delta"}]}', "at must be a number, not None"),
            ('{"id": "x", "usage": [{"at": 1, "kind": "gift"}]}', "kind must be one of delta, absolute, opening"),
            ('{"id": "x", "rewinds": [{"action": "fly", "at": 1}]}', "action must be one of rewind, restore"),
            ('{"id": "x", "title": 5}', "a title must be a string, not int"),
            ('{"id": "x", "input_tokens": 99999999999999999999}', "input_tokens is too large to store"),
            ("[" * 100_000, "nested too deeply"),
        ],
    )
    @pytest.mark.parametrize("is_long", [False, True])
    def test_bad_line_is_reported_and_nothing_is_imported(
        self,
        store: SessionDBProvider,
        tmp_path: Path,
        request: pytest.FixtureRequest,
        line: str,
        why: str,
        is_long: bool,
    ) -> None:
        if is_long and line.startswith("{"):
            request.getfixturevalue("small_limits")
            line = '{"x": "' + "x" * 200 + '", ' + line[1:].lstrip() if line != "{}" else '{"x": "' + "x" * 200 + '"}'
        path = write(tmp_path / "export.jsonl", [session("good", "hello"), "", line, session("more", "hello")])
        tally = import_files(store, path)
        assert failure_of(tally).startswith(f"{path}:3: {why}")
        assert store.session_count() == 0
        assert (tally.messages, sum(tally.sessions.values())) == (0, 0)

    def test_sessions_before_a_bad_line_can_be_imported(self, store: SessionDBProvider, tmp_path: Path) -> None:
        path = write(tmp_path / "export.jsonl", [session("good", "hello"), "nonsense", session("more", "hello")])
        tally = import_files(store, path, keeps_going=True)
        assert f"{path}:2: " in failure_of(tally)
        assert [row["id"] for row in store.search_sessions()] == ["good"]
        assert dict(tally.sessions) == {ImportOutcome.NEW: 1}

    @pytest.mark.parametrize("is_long", [False, True])
    def test_incomplete_line_is_reported_as_incomplete(
        self, store: SessionDBProvider, tmp_path: Path, request: pytest.FixtureRequest, is_long: bool
    ) -> None:
        if is_long:
            request.getfixturevalue("small_limits")
        path = write(tmp_path / "export.jsonl", [session("good", "hello")])
        path.write_bytes(path.read_bytes() + json.dumps(session("half", "x" * 150)).encode()[:-20])
        assert (
            failure_of(import_files(store, path))
            == f"{path}:2: the line is incomplete: the file was cut off, or is still being written"
        )

    def test_invalid_utf8_is_reported_with_its_position(self, store: SessionDBProvider, tmp_path: Path) -> None:
        path = tmp_path / "export.jsonl"
        path.write_bytes(b'{"id": "x", "messages": []}\n{"id": "\xff"}\n')
        assert failure_of(import_files(store, path)) == f"{path}:2: not UTF-8 (byte 9)"

    def test_bad_file_does_not_stop_other_files(self, store: SessionDBProvider, tmp_path: Path) -> None:
        bad = write(tmp_path / "bad.jsonl", [session("bad", "hello"), "nonsense"])
        good = write(tmp_path / "good.jsonl", [session("good", "hello")])
        tally = import_files(store, bad, good)
        assert (tally.files, list(tally.failures), tally.messages) == (2, [bad], 1)


class TestSurrogatePairs:
    PAIRS = ("\ud83d\ude00", "\U0001f600 \ud83d\ude00", "\ud83d\x1a\ude00 \\u001a", "\ud83d\ude00" * 10)

    @pytest.mark.parametrize("is_long", [False, True])
    def test_adjacent_surrogates_survive_export_and_import(
        self, store: SessionDBProvider, tmp_path: Path, request: pytest.FixtureRequest, is_long: bool
    ) -> None:
        for text in self.PAIRS:
            store.ensure_session("s", "cli")
            store.append_message("s", "assistant", text, tool_calls=[{"name": text}], reasoning_details=[{text: text}])
        before = store.get_messages_as_conversation("s")
        path = tmp_path / "export.jsonl"
        path.write_bytes(read_sessions(store, ["s"], lambda sessions: b"".join(line_of(next(sessions)))))
        store.delete_session("s")
        if is_long:
            request.getfixturevalue("small_limits")
        assert import_files(store, path).failures == {}
        assert store.get_messages_as_conversation("s") == before
        assert contents(before) == list(self.PAIRS)
        assert [message["reasoning_details"] for message in before] == [[{text: text}] for text in self.PAIRS]


class TestLongLines:
    def test_long_line_is_imported_message_by_message(
        self, store: SessionDBProvider, tmp_path: Path, small_limits: None
    ) -> None:
        words = [f"word {number} 東京 \ud83d \0 {'x' * (number * 7 % 150)}" for number in range(60)]
        path = write(tmp_path / "export.jsonl", [session("long", *words, model="m"), session("short", "x")])
        assert import_files(store, path).failures == {}
        assert contents(store.get_messages("long")) == words
        assert session_of(store, "long")["model"] == "m"
        assert contents(store.get_messages("short")) == ["x"]
        assert import_files(store, path).messages == 0

    def test_long_line_may_have_its_messages_at_any_position(
        self, store: SessionDBProvider, tmp_path: Path, small_limits: None
    ) -> None:
        words = ["x" * 150, "y"]
        whole = session("long", *words, title="Tea", input_tokens=12345)
        del whole["schema"]
        turned = dict(reversed(whole.items()))
        import_files(store, write(tmp_path / "export.jsonl", [turned, session("short", "x")]))
        assert contents(store.get_messages("long")) == words
        assert (session_of(store, "long")["title"], session_of(store, "long")["input_tokens"]) == ("Tea", 12345)
        assert contents(store.get_messages("short")) == ["x"]

    @pytest.mark.parametrize("tail", ["", " \t", "\r"])
    def test_long_line_may_contain_whitespace(
        self, store: SessionDBProvider, tmp_path: Path, small_limits: None, tail: str
    ) -> None:
        line = json.dumps(session("long", "x" * 150), separators=(" , ", " : "))
        path = write(tmp_path / "export.jsonl", [f"  {line}{tail}", session("short", "x")])
        assert import_files(store, path).messages == 2

    @pytest.mark.parametrize("tail", ["x", "]", '{"id": "y"}'])
    def test_text_after_the_end_of_a_long_line_is_refused(
        self, store: SessionDBProvider, tmp_path: Path, small_limits: None, tail: str
    ) -> None:
        path = write(tmp_path / "export.jsonl", [json.dumps(session("long", "x" * 150)) + tail])
        assert f"{path}:1: not JSON" in failure_of(import_files(store, path))

    @pytest.mark.parametrize("where", ["message", "head", "key"])
    def test_long_line_with_a_too_long_part_is_refused(
        self, store: SessionDBProvider, tmp_path: Path, small_limits: None, where: str
    ) -> None:
        piece = "x" * 5000
        line = session("long", piece) if where == "message" else session("long", system_prompt=piece)
        line = {piece: 1, **session("long")} if where == "key" else line
        path = write(tmp_path / "export.jsonl", [session("good", "x"), line])
        assert f"{path}:2: longer than" in failure_of(import_files(store, path))
        assert store.session_count() == 0

    @pytest.mark.parametrize("length", [1000, 1500, 1900])
    def test_long_line_with_a_part_at_the_limit_is_imported(
        self, store: SessionDBProvider, tmp_path: Path, small_limits: None, length: int
    ) -> None:
        path = write(tmp_path / "export.jsonl", [session("long", "x" * length, "y" * length)])
        assert import_files(store, path).messages == 2

    def test_long_lines_of_other_programs_are_limited(
        self, store: SessionDBProvider, tmp_path: Path, small_limits: None
    ) -> None:
        long = Claude().user("x" * 500)
        assert import_files(store, write(tmp_path / "talk.jsonl", [long])).messages == 1
        tally = import_files(store, write(tmp_path / "more.jsonl", [long, Claude().user("x" * 5000)]))
        assert "more.jsonl:2: longer than" in failure_of(tally)


def test_line_of_a_hundred_megabytes_is_refused(store: SessionDBProvider, tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    with path.open("w") as file:
        file.write('{"id": "x", "messages": [{"role": "user", "content": "')
        for _ in range(100):
            file.write("x" * (1 << 20))
        file.write('"}]}\n')
    assert failure_of(import_files(store, path)) == f"{path}:1: longer than 64 MB"
    assert lines.LONGEST_LINE == 64 << 20


def test_more_sessions_than_one_group_are_all_imported(store: SessionDBProvider, tmp_path: Path) -> None:
    path = write(tmp_path / "export.jsonl", [session(f"s{n}", *("x",) * 7) for n in range(MAX_GROUP_MESSAGES // 5)])
    assert import_files(store, path).messages == MAX_GROUP_MESSAGES // 5 * 7
    assert store.message_count() == MAX_GROUP_MESSAGES // 5 * 7


class TestConflicts:
    @pytest.fixture
    def path(self, store: SessionDBProvider, tmp_path: Path) -> Path:
        """A file with a parent and a child; the store has the parent already, with one message less."""
        import_files(store, write(tmp_path / "before.jsonl", [session("parent", "one")]))
        child = session("child", "three", parent_session_id="parent", child_kind="branch")
        return write(tmp_path / "export.jsonl", [child, session("parent", "one", "two")])

    @pytest.mark.parametrize(
        ("on_conflict", "outcomes", "messages"),
        [
            ("skip", {ImportOutcome.NEW: 1, ImportOutcome.SKIPPED: 1}, 1),
            ("merge", {ImportOutcome.NEW: 1, ImportOutcome.MERGED: 1}, 2),
            ("rename", {ImportOutcome.NEW: 1, ImportOutcome.RENAMED: 1}, 3),
        ],
    )
    @pytest.mark.parametrize("is_dry_run", [True, False])
    def test_conflict_outcomes_are_counted(
        self, store: SessionDBProvider, path: Path, on_conflict: Any, outcomes: Any, messages: int, is_dry_run: bool
    ) -> None:
        tally = import_files(store, path, on_conflict=on_conflict, is_dry_run=is_dry_run)
        assert (dict(tally.sessions), tally.messages) == (outcomes, messages)

    def test_renamed_parent_keeps_its_children(self, store: SessionDBProvider, path: Path) -> None:
        import_files(store, path, on_conflict="rename")
        parent = session_of(store, "child")["parent_session_id"]
        assert parent != "parent"
        assert contents(store.get_messages(parent)) == ["one", "two"]
        assert contents(store.get_messages("parent")) == ["one"]

    def test_same_session_twice_in_a_file(self, store: SessionDBProvider, tmp_path: Path) -> None:
        path = write(tmp_path / "twice.jsonl", [session("s", "one"), session("s", "one", "two")])
        assert dict(import_files(store, path).sessions) == {ImportOutcome.NEW: 1, ImportOutcome.MERGED: 1}
        assert contents(store.get_messages("s")) == ["one", "two"]
        assert dict(import_files(store, path, on_conflict="rename").sessions) == {ImportOutcome.RENAMED: 2}


class TestUsage:
    @staticmethod
    def booked(at: float, tokens: int, **more: Any) -> Entry:
        return {"at": at, "kind": "delta", "model": "m", "input_tokens": tokens, **more}

    def test_usage_is_booked_as_exported(self, store: SessionDBProvider, tmp_path: Path) -> None:
        usage = [self.booked(10.0, 5), self.booked(20.0, 7, estimated_cost_usd=0.5)]
        import_files(store, write(tmp_path / "a.jsonl", [session("s", usage=usage)]))
        assert [(e["at"], e["input_tokens"]) for e in store.list_usage_events("s")] == [(10.0, 5), (20.0, 7)]
        row = session_of(store, "s")
        assert (row["input_tokens"], row["estimated_cost_usd"], row["actual_cost_usd"]) == (12, 0.5, None)

    def test_usage_without_events_becomes_an_opening_row(self, store: SessionDBProvider, tmp_path: Path) -> None:
        before = session("s", usage=[self.booked(10.0, 5)], input_tokens=9, started_at=3.0)
        import_files(store, write(tmp_path / "a.jsonl", [before]))
        booked = [(e["kind"], e["at"], e["input_tokens"]) for e in store.list_usage_events("s")]
        assert booked == [("opening", 3.0, 4), ("delta", 10.0, 5)]
        assert session_of(store, "s")["input_tokens"] == 9

    def test_new_usage_is_added_when_sessions_merge(self, store: SessionDBProvider, tmp_path: Path) -> None:
        first, second = self.booked(10.0, 5), self.booked(20.0, 7)
        for usage in ([first], [first, second], [second], [first, first, second]):
            import_files(store, write(tmp_path / "a.jsonl", [session("s", usage=usage)]))
        assert column(store.list_usage_events("s"), "at") == [10.0, 20.0, 10.0]
        assert session_of(store, "s")["input_tokens"] == 17

    def test_counted_usage_without_events_is_not_counted_again(self, store: SessionDBProvider, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", [session("s", usage=[self.booked(10.0, 5)], input_tokens=9)])
        for _ in range(2):
            import_files(store, path)
        write(path, [session("s", input_tokens=9)])
        import_files(store, path)
        assert session_of(store, "s")["input_tokens"] == 9

    def test_usage_that_an_opening_row_may_contain_is_not_counted_twice(
        self, store: SessionDBProvider, tmp_path: Path
    ) -> None:
        import_files(store, write(tmp_path / "a.jsonl", [session("s", input_tokens=5)]))
        import_files(store, write(tmp_path / "a.jsonl", [session("s", usage=[self.booked(10.0, 5)])]))
        assert session_of(store, "s")["input_tokens"] == 5
