"""Values are read as they were stored, and values that cannot be stored are refused."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.mysql.provider import MySQLSessionDBProvider
from tests.support.conversations import contents, session_of, start
from tests.support.servers import Server
from tests.support.stores import engine_of

LONGEST = 700

NASTY = [
    "it's",
    "back\\slash\\'",
    "''; DROP TABLE messages; --",
    "\\",
    "%s %d %%",
    ":name ::",
    '"quoted"',
    "\x1a\x08\t",
]


class TestNames:
    def test_names_with_different_trailing_blanks_are_different(self, store: MySQLSessionDBProvider) -> None:
        names = ["s", "s ", "s  ", "s\t", " s"]
        start(store, *names)
        for name in names:
            store.append_message(name, "user", f"in {name!r}", uid="one ")
            store.append_message(name, "user", "another", uid="one")
        assert store.session_count() == len(names)
        assert [contents(store.get_messages(each))[0] for each in names] == [f"in {each!r}" for each in names]

    def test_names_with_different_capitals_or_accents_are_different(self, store: MySQLSessionDBProvider) -> None:
        names = ["resume", "Resume", "résumé", "re\u0301sume\u0301", "ß", "ss", "\U0001f600", "\U0001f601"]
        start(store, *names)
        assert sorted(each["id"] for each in store.list_sessions_rich(limit=99)) == sorted(names)

    def test_similar_titles_are_different(self, store: MySQLSessionDBProvider) -> None:
        start(store, "a", "b")
        assert store.set_session_title("a", "Plan")
        assert store.set_session_title("b", "plan")

    def test_names_of_the_longest_allowed_length_are_stored(self, store: MySQLSessionDBProvider) -> None:
        long = "\U0001f600" * LONGEST
        start(store, long, f"{long[:-1]}x")
        first = store.append_message(long, "user", "one", uid="u" * 5_000)
        assert store.append_message(long, "user", "two", uid="u" * 5_000) == first
        assert store.append_message(long, "user", "three", uid="u" * 4_999) != first
        assert session_of(store, long)["message_count"] == 2

    @pytest.mark.parametrize("name", ["x" * (LONGEST + 1), "世" * 5_000])
    def test_longer_names_are_refused_and_not_cut(self, store: MySQLSessionDBProvider, name: str) -> None:
        with pytest.raises(InvalidValue) as caught:
            store.create_session(name, "cli")
        assert "700 characters" in caught.value.hint
        assert store.session_count() == 0
        assert store.get_session(name) is None

    def test_tool_names_may_have_any_length(self, store: MySQLSessionDBProvider) -> None:
        start(store, "s")
        names = ["t" * 3_000, "t" * 3_001, "tool", "tool "]
        for name in [*names, *names]:
            store.append_message("s", "assistant", "x", tool_calls=[{"function": {"name": name, "arguments": "{}"}}])
        assert store.get_session_tools("s") == dict.fromkeys(names, 2)


@pytest.mark.parametrize("number", [0, 5, -1])
def test_a_number_is_no_name(store: MySQLSessionDBProvider, number: int) -> None:
    start(store, "s", "5th")
    calls: list[Callable[[Any], object]] = [store.get_session, store.get_messages, store.delete_session]
    for call in calls:
        assert not call(number)
    assert store.session_count() == 2


class TestTexts:
    @pytest.mark.parametrize("text", [*NASTY, "😀👩‍👩‍👧‍👦 世界", "a\0b", "\ud800", "x" * 3_000_000, "", " "])
    def test_texts_are_read_unchanged(self, store: MySQLSessionDBProvider, text: str) -> None:
        start(store, "s")
        store.append_message("s", "user", text, tool_name=text[:50], reasoning=text)
        (row,) = store.get_messages("s")
        assert (row["content"], row["tool_name"], row["reasoning"]) == (text, text[:50], text)

    @pytest.mark.parametrize("text", NASTY)
    def test_special_characters_in_names_have_no_meaning(self, store: MySQLSessionDBProvider, text: str) -> None:
        start(store, text)
        store.append_message(text, "user", "hello", uid=text)
        assert session_of(store, text)["message_count"] == 1


class TestNumbers:
    @pytest.mark.parametrize("moment", [0.1 + 0.2, 1_700_000_000.123456, -1.5, 1e300, 5e-324, 3.0])
    def test_numbers_keep_every_digit(self, store: MySQLSessionDBProvider, moment: float) -> None:
        start(store, "s")
        store.append_message("s", "user", "hello", timestamp=moment)
        assert store.get_messages("s")[0]["timestamp"] == moment

    def test_sums_are_ints_or_floats(self, store: MySQLSessionDBProvider) -> None:
        start(store, "s", "t", model="m")
        for session_id in ("s", "t"):
            store.update_token_counts(session_id, input_tokens=2**40, estimated_cost_usd=0.25, model="m")
        (row,) = store.usage_by_model()
        assert (row["total_input"], row["total_cost"]) == (2**41, 0.5)
        assert {type(row["total_input"]), type(row["total_cost"])} == {int, float}


def test_message_that_the_server_refuses_does_not_break_the_connection(private: Server, tmp_path: Path) -> None:
    from tests.support.mysql import in_database

    with MySQLSessionDBProvider(in_database(private.dsn, "hermes")) as store:
        start(store, "packets")
        with pytest.raises(InvalidValue, match="max_allowed_packet"):
            store.append_message("packets", "user", "x" * 5_000_000)
        number = engine_of(store).read(lambda tx: tx.value("SELECT CONNECTION_ID()"))
        with pytest.raises(InvalidValue, match="max_allowed_packet"):
            store.append_message("packets", "user", "it's " * 1_000_000)
        store.append_message("packets", "user", "x" * 3_000_000)
        assert engine_of(store).read(lambda tx: tx.value("SELECT CONNECTION_ID()")) == number
        assert len(str(store.get_messages("packets")[0]["content"])) == 3_000_000
