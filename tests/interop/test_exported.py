"""Exports come in whole or not at all, whatever is in them and however long they are."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from hermes.interop import exported
from hermes.interop.importer import TOGETHER
from hermes.interop.jsonl import lines
from hermes.interop.jsonl.encoding import line_of
from hermes.state.import_export.session_checks import EXPORT_SCHEMA
from hermes.state.import_export.session_reader import read_sessions
from hermes.state.import_export.session_writer import ImportOutcome
from hermes.state.provider import SessionDBProvider
from tests.interop.files import Claude, Entry, take, trouble, write
from tests.support.conversations import column, contents, session_of

BOM = "\ufeff"


def session(name: str, *words: str, **more: Any) -> Entry:
    """An exported session in which a person said something."""
    messages = [{"role": "user", "content": each, "uid": f"{name}-{n}"} for n, each in enumerate(words)]
    return {"schema": EXPORT_SCHEMA, "id": name, "source": "cli", **more, "messages": messages}


@pytest.fixture
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    """Lines count as long from 100 bytes on, and as too long from 2000."""
    monkeypatch.setattr(exported, "HELD_WHOLE", 100)
    monkeypatch.setattr("hermes.interop.detection.HELD_WHOLE", 100)
    monkeypatch.setattr("hermes.interop.jsonl.long_line._CHUNK", 16)
    for module in ("lines", "long_line"):
        monkeypatch.setattr(f"hermes.interop.jsonl.{module}.LONGEST_LINE", 2000)


class TestBadLines:
    @pytest.mark.parametrize(
        ("line", "why"),
        [
            ('{"id": "x", ', "it is not JSON"),
            ("nonsense", "it is not JSON"),
            ("[1]", "it is a list, not an object"),
            ('"x"', "it is a text, not an object"),
            ("null", "it is nothing, not an object"),
            ("{}", "id must be a string, not NoneType"),
            ('{"id": "x", "messages": 5}', "the messages of an exported session are a list"),
            ('{"id": "x", "messages": [5]}', "message 0 of session 'x' is not a dict"),
            ('{"id": "x", "messages": [{}]}', "role must be a string, not NoneType"),
            ('{"id": "x", "usage": [5]}', "the usage of an exported session is a list of dicts"),
            ('{"id": "x", "usage": [{"at": null, "kind": "delta"}]}', "at must be a number, not None"),
            ('{"id": "x", "usage": [{"at": 1, "kind": "gift"}]}', "kind must be one of delta, absolute, opening"),
            ('{"id": "x", "rewinds": [{"action": "fly", "at": 1}]}', "action must be one of rewind, restore"),
            ('{"id": "x", "title": 5}', "a title must be a string, not int"),
            ('{"id": "x", "input_tokens": 99999999999999999999}', "input_tokens is too large to store"),
            ("[" * 100_000, "it is nested too deeply"),
        ],
    )
    @pytest.mark.parametrize("is_long", [False, True])
    def test_the_line_is_named_and_nothing_comes_in(
        self,
        store: SessionDBProvider,
        tmp_path: Path,
        request: pytest.FixtureRequest,
        line: str,
        why: str,
        is_long: bool,
    ) -> None:
        if is_long and line.startswith("{"):
            request.getfixturevalue("small_pieces")
            line = '{"x": "' + "x" * 200 + '", ' + line[1:].lstrip() if line != "{}" else '{"x": "' + "x" * 200 + '"}'
        path = write(tmp_path / "export.jsonl", [session("good", "hello"), "", line, session("more", "hello")])
        tally = take(store, path)
        assert trouble(tally).startswith(f"{path}:3: {why}")
        assert store.session_count() == 0
        assert (tally.messages, sum(tally.sessions.values())) == (0, 0)

    def test_what_comes_before_it_can_be_had(self, store: SessionDBProvider, tmp_path: Path) -> None:
        path = write(tmp_path / "export.jsonl", [session("good", "hello"), "nonsense", session("more", "hello")])
        tally = take(store, path, keeps_going=True)
        assert f"{path}:2: " in trouble(tally)
        assert [row["id"] for row in store.search_sessions()] == ["good"]
        assert dict(tally.sessions) == {ImportOutcome.NEW: 1}

    @pytest.mark.parametrize("is_long", [False, True])
    def test_a_line_that_breaks_off_is_told_as_such(
        self, store: SessionDBProvider, tmp_path: Path, request: pytest.FixtureRequest, is_long: bool
    ) -> None:
        if is_long:
            request.getfixturevalue("small_pieces")
        path = write(tmp_path / "export.jsonl", [session("good", "hello")])
        path.write_bytes(path.read_bytes() + json.dumps(session("half", "x" * 150)).encode()[:-20])
        assert (
            trouble(take(store, path)) == f"{path}:2: it breaks off: the file is not whole, or is still being written"
        )

    def test_a_line_that_is_not_text_is_told_as_such(self, store: SessionDBProvider, tmp_path: Path) -> None:
        path = tmp_path / "export.jsonl"
        path.write_bytes(b'{"id": "x", "messages": []}\n{"id": "\xff"}\n')
        assert trouble(take(store, path)) == f"{path}:2: it is not UTF-8 (byte 9)"

    def test_no_other_file_is_kept_out(self, store: SessionDBProvider, tmp_path: Path) -> None:
        bad = write(tmp_path / "bad.jsonl", [session("bad", "hello"), "nonsense"])
        good = write(tmp_path / "good.jsonl", [session("good", "hello")])
        tally = take(store, bad, good)
        assert (tally.files, list(tally.failures), tally.messages) == (2, [bad], 1)


class TestSurrogatePairs:
    PAIRS = ("\ud83d\ude00", "\U0001f600 \ud83d\ude00", "\ud83d\x1a\ude00 \\u001a", "\ud83d\ude00" * 10)

    @pytest.mark.parametrize("is_long", [False, True])
    def test_come_back_as_two_characters_from_an_export(
        self, store: SessionDBProvider, tmp_path: Path, request: pytest.FixtureRequest, is_long: bool
    ) -> None:
        for said in self.PAIRS:
            store.ensure_session("s", "cli")
            store.append_message("s", "assistant", said, tool_calls=[{"name": said}], reasoning_details=[{said: said}])
        told = store.get_messages_as_conversation("s")
        path = tmp_path / "export.jsonl"
        path.write_bytes(read_sessions(store, ["s"], lambda sessions: b"".join(line_of(next(sessions)))))
        store.delete_session("s")
        if is_long:
            request.getfixturevalue("small_pieces")
        assert take(store, path).failures == {}
        assert store.get_messages_as_conversation("s") == told
        assert contents(told) == list(self.PAIRS)
        assert [message["reasoning_details"] for message in told] == [[{said: said}] for said in self.PAIRS]


class TestLongLines:
    def test_come_in_message_by_message(self, store: SessionDBProvider, tmp_path: Path, small_pieces: None) -> None:
        words = [f"word {number} 東京 \ud83d \0 {'x' * (number * 7 % 150)}" for number in range(60)]
        path = write(tmp_path / "export.jsonl", [session("long", *words, model="m"), session("short", "x")])
        assert take(store, path).failures == {}
        assert contents(store.get_messages("long")) == words
        assert session_of(store, "long")["model"] == "m"
        assert contents(store.get_messages("short")) == ["x"]
        assert take(store, path).messages == 0

    def test_may_have_their_messages_anywhere(
        self, store: SessionDBProvider, tmp_path: Path, small_pieces: None
    ) -> None:
        words = ["x" * 150, "y"]
        whole = session("long", *words, title="Tea", input_tokens=12345)
        del whole["schema"]
        turned = dict(reversed(whole.items()))
        take(store, write(tmp_path / "export.jsonl", [turned, session("short", "x")]))
        assert contents(store.get_messages("long")) == words
        assert (session_of(store, "long")["title"], session_of(store, "long")["input_tokens"]) == ("Tea", 12345)
        assert contents(store.get_messages("short")) == ["x"]

    @pytest.mark.parametrize("tail", ["", " \t", "\r"])
    def test_may_be_spaced_out(self, store: SessionDBProvider, tmp_path: Path, small_pieces: None, tail: str) -> None:
        line = json.dumps(session("long", "x" * 150), separators=(" , ", " : "))
        path = write(tmp_path / "export.jsonl", [f"  {line}{tail}", session("short", "x")])
        assert take(store, path).messages == 2

    @pytest.mark.parametrize("tail", ["x", "]", '{"id": "y"}'])
    def test_end_where_they_end(self, store: SessionDBProvider, tmp_path: Path, small_pieces: None, tail: str) -> None:
        path = write(tmp_path / "export.jsonl", [json.dumps(session("long", "x" * 150)) + tail])
        assert f"{path}:1: it is not JSON" in trouble(take(store, path))

    @pytest.mark.parametrize("where", ["message", "head", "key"])
    def test_with_too_long_a_piece_are_refused(
        self, store: SessionDBProvider, tmp_path: Path, small_pieces: None, where: str
    ) -> None:
        piece = "x" * 5000
        line = session("long", piece) if where == "message" else session("long", system_prompt=piece)
        line = {piece: 1, **session("long")} if where == "key" else line
        path = write(tmp_path / "export.jsonl", [session("good", "x"), line])
        assert f"{path}:2: more than" in trouble(take(store, path))
        assert store.session_count() == 0

    @pytest.mark.parametrize("length", [1000, 1500, 1900])
    def test_with_a_piece_that_is_just_not_too_long_come_in(
        self, store: SessionDBProvider, tmp_path: Path, small_pieces: None, length: int
    ) -> None:
        path = write(tmp_path / "export.jsonl", [session("long", "x" * length, "y" * length)])
        assert take(store, path).messages == 2

    def test_of_other_programs_are_held_whole(
        self, store: SessionDBProvider, tmp_path: Path, small_pieces: None
    ) -> None:
        long = Claude().user("x" * 500)
        assert take(store, write(tmp_path / "talk.jsonl", [long])).messages == 1
        tally = take(store, write(tmp_path / "more.jsonl", [long, Claude().user("x" * 5000)]))
        assert "more.jsonl:2: more than" in trouble(tally)


def test_a_line_of_a_hundred_megabytes_is_refused(store: SessionDBProvider, tmp_path: Path) -> None:
    path = tmp_path / "export.jsonl"
    with path.open("w") as file:
        file.write('{"id": "x", "messages": [{"role": "user", "content": "')
        for _ in range(100):
            file.write("x" * (1 << 20))
        file.write('"}]}\n')
    assert trouble(take(store, path)) == f"{path}:1: more than 64 MB in one piece"
    assert lines.LONGEST_LINE == 64 << 20


def test_more_sessions_than_come_in_at_once_all_come_in(store: SessionDBProvider, tmp_path: Path) -> None:
    path = write(tmp_path / "export.jsonl", [session(f"s{n}", *("x",) * 7) for n in range(TOGETHER // 5)])
    assert take(store, path).messages == TOGETHER // 5 * 7
    assert store.message_count() == TOGETHER // 5 * 7


class TestConflicts:
    @pytest.fixture
    def path(self, store: SessionDBProvider, tmp_path: Path) -> Path:
        """A file with a family of which the parent is here already, with one message less."""
        take(store, write(tmp_path / "before.jsonl", [session("parent", "one")]))
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
    def test_are_told(
        self, store: SessionDBProvider, path: Path, on_conflict: Any, outcomes: Any, messages: int, is_dry_run: bool
    ) -> None:
        tally = take(store, path, on_conflict=on_conflict, is_dry_run=is_dry_run)
        assert (dict(tally.sessions), tally.messages) == (outcomes, messages)

    def test_that_are_renamed_leave_a_family_together(self, store: SessionDBProvider, path: Path) -> None:
        take(store, path, on_conflict="rename")
        parent = session_of(store, "child")["parent_session_id"]
        assert parent != "parent"
        assert contents(store.get_messages(parent)) == ["one", "two"]
        assert contents(store.get_messages("parent")) == ["one"]

    def test_with_the_same_session_twice_in_a_file(self, store: SessionDBProvider, tmp_path: Path) -> None:
        path = write(tmp_path / "twice.jsonl", [session("s", "one"), session("s", "one", "two")])
        assert dict(take(store, path).sessions) == {ImportOutcome.NEW: 1, ImportOutcome.MERGED: 1}
        assert contents(store.get_messages("s")) == ["one", "two"]
        assert dict(take(store, path, on_conflict="rename").sessions) == {ImportOutcome.RENAMED: 2}


class TestUsage:
    @staticmethod
    def booked(at: float, tokens: int, **more: Any) -> Entry:
        return {"at": at, "kind": "delta", "model": "m", "input_tokens": tokens, **more}

    def test_is_booked_as_it_was(self, store: SessionDBProvider, tmp_path: Path) -> None:
        usage = [self.booked(10.0, 5), self.booked(20.0, 7, estimated_cost_usd=0.5)]
        take(store, write(tmp_path / "a.jsonl", [session("s", usage=usage)]))
        assert [(e["at"], e["input_tokens"]) for e in store.list_usage_events("s")] == [(10.0, 5), (20.0, 7)]
        row = session_of(store, "s")
        assert (row["input_tokens"], row["estimated_cost_usd"], row["actual_cost_usd"]) == (12, 0.5, None)

    def test_that_nobody_booked_is_an_opening(self, store: SessionDBProvider, tmp_path: Path) -> None:
        told = session("s", usage=[self.booked(10.0, 5)], input_tokens=9, started_at=3.0)
        take(store, write(tmp_path / "a.jsonl", [told]))
        booked = [(e["kind"], e["at"], e["input_tokens"]) for e in store.list_usage_events("s")]
        assert booked == [("opening", 3.0, 4), ("delta", 10.0, 5)]
        assert session_of(store, "s")["input_tokens"] == 9

    def test_that_is_new_is_added_when_sessions_merge(self, store: SessionDBProvider, tmp_path: Path) -> None:
        first, second = self.booked(10.0, 5), self.booked(20.0, 7)
        for usage in ([first], [first, second], [second], [first, first, second]):
            take(store, write(tmp_path / "a.jsonl", [session("s", usage=usage)]))
        assert column(store.list_usage_events("s"), "at") == [10.0, 20.0, 10.0]
        assert session_of(store, "s")["input_tokens"] == 17

    def test_that_was_only_counted_is_not_counted_again(self, store: SessionDBProvider, tmp_path: Path) -> None:
        path = write(tmp_path / "a.jsonl", [session("s", usage=[self.booked(10.0, 5)], input_tokens=9)])
        for _ in range(2):
            take(store, path)
        write(path, [session("s", input_tokens=9)])
        take(store, path)
        assert session_of(store, "s")["input_tokens"] == 9

    def test_is_not_counted_twice_when_it_may_be_in_an_opening(self, store: SessionDBProvider, tmp_path: Path) -> None:
        take(store, write(tmp_path / "a.jsonl", [session("s", input_tokens=5)]))
        take(store, write(tmp_path / "a.jsonl", [session("s", usage=[self.booked(10.0, 5)])]))
        assert session_of(store, "s")["input_tokens"] == 5
