"""Texts and queries that once broke search or hid matches."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import InvalidValue
from hermes.state.provider import SessionDBProvider
from tests.support.conversations import ids, say, start

FILLER = 600


@pytest.fixture(params=["unindexed", "indexed"])
def fill(request: pytest.FixtureRequest, store: SessionDBProvider) -> Any:
    """Return a function that adds enough messages that the earlier ones are indexed, or adds none."""
    start(store, "s")

    def after() -> None:
        if request.param == "indexed":
            store.append_messages("s", [{"role": "user", "content": f"filler user {i}"} for i in range(FILLER)])

    return after


def test_deeply_nested_content_does_not_break_search(store: SessionDBProvider, fill: Any) -> None:
    nested: Any = "buried"
    for _ in range(900):
        nested = [nested]
    say(store, "s", nested)
    found = say(store, "s", "a lantern")
    fill()
    assert ids(store.search_messages("lantern")) == found


def nested_query(rounds: int) -> str:
    query = "lantern"
    for number in range(rounds):
        query = f"NOT (a{number} OR NOT (bar {query}))"
    return query


@pytest.mark.parametrize(
    "query",
    [
        "(" * 300 + "lantern",
        "(" * 300 + "lantern" + ")" * 300,
        "-(" * 100 + "lantern" + ")" * 100,
        nested_query(12),
        "".join("(bar (" for _ in range(20)) + "lantern" + "".join(" OR x) -y)" for _ in range(20)),
        "".join("(x OR (bar " for _ in range(20)) + "lantern" + "))" * 20,
    ],
)
def test_deep_parentheses_are_searched_like_any_query(store: SessionDBProvider, fill: Any, query: str) -> None:
    message_ids = say(store, "s", "bar lantern")
    fill()
    assert ids(store.search_messages(query)) == message_ids


def test_an_offset_after_the_last_match_finds_nothing(store: SessionDBProvider, fill: Any) -> None:
    expected = say(store, "s", "docker one", "kubernetes two", "docker three")
    fill()
    pages = [ids(store.search_messages("docker OR kuber", limit=2, offset=offset)) for offset in (0, 2, 4)]
    assert pages == [expected[::-2], [], []]


@pytest.mark.parametrize("text", ["“getUserName”", "调用getUserName函数", "x—getUserName", "• getUserName…"])
def test_an_identifier_is_split_next_to_any_other_text(store: SessionDBProvider, fill: Any, text: str) -> None:
    found = say(store, "s", text)
    say(store, "s", "name it")
    fill()
    assert found[0] in ids(store.search_messages("name"))


def test_only_a_data_url_is_left_out(store: SessionDBProvider, fill: Any) -> None:
    picture = {"type": "image_url", "image_url": {"url": "data:image/png;base64,bGFudGVybg=="}}
    found = say(store, "s", [{"type": "text", "text": "data: the results"}, picture])
    fill()
    assert ids(store.search_messages("results")) == found
    assert ids(store.search_messages("*bGFudGVy*")) == []


@pytest.mark.parametrize("question", ["deployment", "customers", "inner", "true"])
def test_every_name_and_value_of_an_argument_is_found(store: SessionDBProvider, fill: Any, question: str) -> None:
    arguments = '{"a": {"type": "deployment", "index": "customers", "inner": [{"dry": true}]}}'
    call = {"id": "call_1", "type": "function", "function": {"name": "apply", "arguments": arguments}}
    found = store.append_message("s", "assistant", None, tool_calls=[call])
    fill()
    assert ids(store.search_messages(question)) == [found]


@pytest.mark.parametrize("question", ["*\ufe0f", "**\u200d*", "foo OR *\ufe0f"])
def test_stars_without_letters_find_nothing(store: SessionDBProvider, fill: Any, question: str) -> None:
    say(store, "s", "a lantern")
    fill()
    assert ids(store.search_messages(question)) == []


@pytest.mark.parametrize(
    "filters", [{"source_filter": [["a"]]}, {"role_filter": [{}]}, {"budget_s": "x"}, {"budget_s": float("nan")}]
)
def test_an_argument_of_the_wrong_kind_is_refused(store: SessionDBProvider, filters: dict[str, Any]) -> None:
    with pytest.raises(InvalidValue):
        store.search_messages("lantern", **filters)


def test_the_mark_of_a_match_includes_marks_of_its_last_character(store: SessionDBProvider) -> None:
    start(store, "s")
    say(store, "s", "cafe\u0301 noir", "👍🏽 yes", "ｶﾞｷﾞ no")
    shown = [store.search_messages(question)[0]["snippet"] for question in ("cafe", "👍", "ガギ")]
    assert shown == [">>>cafe\u0301<<< noir", ">>>👍🏽<<< yes", ">>>ｶﾞｷﾞ<<< no"]


def test_a_version_is_found_by_its_numbers_next_to_any_text(store: SessionDBProvider, fill: Any) -> None:
    found = say(store, "s", "python3.11 here", "python3.11 and utf8.")
    fill()
    assert sorted(ids(store.search_messages("3.11"))) == found


@pytest.mark.parametrize(
    ("text", "question", "is_found"),
    [
        ("x ∈ S", "∉", False),
        ("x ∉ S", "∉", True),
        ("a = b", '"≠"', False),
        ("ㅋㅋㅠㅠ 진짜", "ㅋㅋ", True),
        ("ㅋㅋㅠㅠ 진짜", "ㅠㅠ", True),
        ("written in C++17", "C++", True),
        ("foo\u200bbar", "foobar", True),
    ],
)
def test_similar_characters_differ_and_equivalent_ones_match(
    store: SessionDBProvider, fill: Any, text: str, question: str, *, is_found: bool
) -> None:
    found = say(store, "s", text)
    fill()
    assert ids(store.search_messages(question)) == (found if is_found else [])


@pytest.mark.parametrize(("text", "question"), [("👍🏽& yes", "👍🏽&"), ("go →( on", '"→("'), ("ﾊﾟﾝ da", "パン")])
def test_every_match_is_marked(store: SessionDBProvider, text: str, question: str) -> None:
    start(store, "s")
    say(store, "s", text)
    assert ">>>" in store.search_messages(question)[0]["snippet"]


def test_hidden_counts_do_not_include_messages_of_other_owners(store: SessionDBProvider, fill: Any) -> None:
    start(store, "mine", source="telegram", user_id="a")
    start(store, "theirs", source="telegram", user_id="b")
    (first,) = say(store, "theirs", "a lantern")
    store.rewind_to_message("theirs", first)
    fill()
    assert store.search_messages("lantern", owner="telegram:a").hidden == {}


def test_a_search_for_the_oldest_that_runs_out_of_time_does_not_start_with_the_newest(store: SessionDBProvider) -> None:
    start(store, "s")
    for _ in range(4):
        store.append_messages("s", [{"role": "user", "content": "lantern"} for _ in range(1_000)])
    found = ids(store.search_messages("lantern", sort="oldest", limit=5, budget_s=0.0))
    assert found == sorted(found)
    assert max(found, default=0) < 1_000
