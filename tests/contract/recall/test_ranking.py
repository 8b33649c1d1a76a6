"""Ranking: which conversation a whole sentence finds first, and how the result says so."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.conversations import column, say, start
from tests.support.recall import recall

NAME_ONLY = ["Maria, how are you?", "I met Maria at the market.", "Maria sends her regards."]


def fill(store: SessionDBProvider, session_id: str, *contents: str, at: datetime | None = None) -> list[int]:
    """Store messages of a user and a model in turn, at a time if one is given."""
    start(store, session_id)
    moment = {} if at is None else {"timestamp": at.timestamp()}
    roles = ("user", "assistant")
    messages = [{"role": roles[number % 2], "content": each, **moment} for number, each in enumerate(contents)]
    return store.append_messages(session_id, messages)


def order(store: SessionDBProvider, query: str, **arguments: Any) -> list[str]:
    return column(recall(store, query=query, limit=10, **arguments)["results"], "session_id")


class TestEvidence:
    def test_rare_word_in_an_old_session_beats_a_common_name_in_new_ones(self, store: SessionDBProvider) -> None:
        fill(store, "old", "Maria adopted a parrot.", "What is its name?")
        for number in range(12):
            fill(store, f"new{number}", *NAME_ONLY)
        assert order(store, "What animal did Maria adopt?")[0] == "old"

    def test_session_with_more_of_the_words_comes_first(self, store: SessionDBProvider) -> None:
        fill(store, "both", "The pottery class begins in the village hall.")
        fill(store, "one", "The pottery broke.", "Buy new pottery.", "Pottery is fragile.")
        assert order(store, "When does the pottery class begin?") == ["both", "one"]

    def test_words_in_neighbouring_messages_count_together(self, store: SessionDBProvider) -> None:
        filler = ["Fine.", "Good.", "Sure.", "Right."]
        fill(store, "near", "We drove to the harbour.", "And the lighthouse was closed.", *filler)
        fill(store, "far", "We drove to the harbour.", *filler, *filler, "Some lighthouse was closed.")
        assert order(store, "harbour lighthouse")[0] == "near"

    def test_word_that_a_tool_repeats_does_not_beat_the_user_who_wrote_it_once(self, store: SessionDBProvider) -> None:
        fill(store, "person", "My invoice number is in the drawer.")
        start(store, "machine")
        store.append_message("machine", "tool", "invoice " * 40, tool_name="terminal")
        assert order(store, "where is my invoice", role_filter="user,assistant,tool")[0] == "person"

    def test_call_of_an_earlier_search_comes_after_what_people_wrote(self, store: SessionDBProvider) -> None:
        fill(store, "person", "The boiler was repaired by Schmidt.")
        start(store, "search")
        call = {"id": "c", "function": {"name": "session_search", "arguments": '{"query": "who repaired the boiler"}'}}
        store.append_message("search", "assistant", None, tool_calls=[call])
        assert order(store, "who repaired the boiler")[0] == "person"

    def test_words_in_the_title_improve_the_rank(self, store: SessionDBProvider) -> None:
        fill(store, "untitled", "Something about the budget.")
        fill(store, "titled", "Something about the budget.")
        store.set_session_title("titled", "Kitchen renovation")
        assert order(store, "budget of the kitchen renovation")[0] == "titled"
        assert order(store, "our kitchen renovation") == ["titled"]


class TestSentences:
    def test_forms_of_a_word_are_found(self, store: SessionDBProvider) -> None:
        fill(store, "s", "She painted three sunrises.")
        fill(store, "other", "The weather is nice.")
        assert order(store, "When is she painting a sunrise?")[0] == "s"

    def test_sentence_without_all_words_says_so(self, store: SessionDBProvider) -> None:
        fill(store, "s", "The backup goes to the cellar.")
        found = recall(store, query="Where does the nightly backup go?")
        assert column(found["results"], "session_id") == ["s"]
        assert found["search"]["path"] == "coverage"
        assert len(found["search"]["repairs"]) == 1

    def test_sentence_with_all_words_needs_no_repair(self, store: SessionDBProvider) -> None:
        fill(store, "s", "The backup goes to the cellar.")
        assert recall(store, query="the backup in the cellar")["search"]["repairs"] == []

    def test_words_of_german_grammar_decide_nothing(self, store: SessionDBProvider) -> None:
        fill(store, "house", "Die Häuser am See wurden verkauft.")
        fill(store, "grammar", "Was haben wir denn und was haben wir nicht, das wissen wir.")
        assert order(store, "Was haben wir über die Häuser geschrieben?")[0] == "house"

    def test_question_in_chinese_finds_the_session_with_its_subject(self, store: SessionDBProvider) -> None:
        fill(store, "database", "我们决定把数据库迁移到新服务器。")
        fill(store, "weather", "今天天气很好，我们去公园。")
        assert order(store, "我们什么时候讨论的数据库迁移？")[0] == "database"

    @pytest.mark.parametrize("query", ['"dark horse" OR nothing', "horse NOT dark", '"dark  pony"'])
    def test_operators_and_quotes_stay_strict(self, store: SessionDBProvider, query: str) -> None:
        fill(store, "s", "A dark white horse.")
        assert order(store, query) == []


class TestTime:
    def test_month_lifts_the_session_of_that_month(self, store: SessionDBProvider) -> None:
        for month in (3, 5, 7):
            at = datetime(2026, month, 10, 12, tzinfo=UTC)
            fill(store, f"m{month}", "We went camping at the lake.", "How nice!", at=at)
        for name, month in (("March", 3), ("May", 5), ("July", 7)):
            assert order(store, f"Where did we go camping in {name}?")[0] == f"m{month}"

    def test_day_lifts_more_than_its_month(self, store: SessionDBProvider) -> None:
        for day in (8, 19):
            fill(store, f"d{day}", "The dentist called.", at=datetime(2026, 5, day, 12, tzinfo=UTC))
        assert order(store, "What did the dentist say on 8 May 2026?")[0] == "d8"
        assert order(store, "What did the dentist say on 2026-05-19?")[0] == "d19"


class TestAnchor:
    def test_window_is_around_the_message_that_answers(self, store: SessionDBProvider) -> None:
        asked, answered, *_ = fill(store, "s", "Which port does the staging server use?", "It listens on 8443.")
        (result,) = recall(store, query="port of the staging server")["results"]
        assert result["match_message_id"] == answered
        assert asked in column(result["messages"], "id")

    def test_statement_is_preferred_to_the_question_before_it(self, store: SessionDBProvider) -> None:
        _, answered, *_ = fill(store, "s", "What is the wifi password?", "The wifi password is on the fridge.")
        (result,) = recall(store, query="the wifi password at home")["results"]
        assert result["match_message_id"] == answered


def test_one_lineage_takes_one_place(store: SessionDBProvider) -> None:
    fill(store, "first", "The violin needs new strings.")
    store.create_session("second", "cli", parent_session_id="first", child_kind="branch")
    say(store, "second", "The violin needs new strings and a bow.")
    fill(store, "other", "The violin is in its case.")
    assert len(order(store, "what does the violin need")) == 2


def test_word_that_one_conversation_repeats_is_found_among_many_messages(store: SessionDBProvider) -> None:
    fill(store, "filler", *[f"an item of the list, number {number}" for number in range(700)])
    fill(store, "zither", *["the zither is out of tune"] * 101)
    assert order(store, "the zither item")[0] == "zither"


def test_question_of_common_words_alone_finds_something(store: SessionDBProvider) -> None:
    fill(store, "apples", *["we bought apples"] * 520)
    fill(store, "pears", *["they sold pears"] * 520)
    assert set(order(store, "apples pears")) == {"apples", "pears"}


def test_undone_messages_are_counted_as_hidden(store: SessionDBProvider) -> None:
    ids = fill(store, "s", "The zither is new.", "Nice.", "The zither is old.")
    store.rewind_to_message("s", ids[2])
    assert recall(store, query="the zither old thing")["hidden"] == {}
    assert recall(store, query="the old zither")["hidden"] == {"rewound": 1}


@pytest.mark.parametrize("holders", [3, 20, 40])
def test_message_of_an_agent_that_has_all_words_is_counted_among_many_that_have_one(
    store: SessionDBProvider, holders: int
) -> None:
    for number in range(holders):
        fill(store, f"s{number}", "The lantern is lit.")
    assert recall(store, query="lantern harbour keeper")["hidden"] == {}
    start(store, "agent", source="subagent")
    say(store, "agent", "The keeper of the harbour has a lantern.")
    assert recall(store, query="lantern harbour keeper")["hidden"] == {"subagent": 1}


def test_hidden_counts_obey_operators(store: SessionDBProvider) -> None:
    start(store, "t", source="tool")
    say(store, "t", "violin strings")
    assert recall(store, query="violin NOT strings")["hidden"] == {}
    assert recall(store, query="violin OR trumpet")["hidden"] == {"tool": 1}


class TestCrowds:
    def test_title_of_a_session_without_messages_does_no_harm(self, store: SessionDBProvider) -> None:
        fill(store, "good", "Our kitchen renovation costs 900 euro.")
        start(store, "empty")
        store.set_session_title("empty", "Kitchen renovation")
        assert order(store, "our kitchen renovation") == ["good"]

    def test_named_day_is_found_among_many_equal_sessions(self, store: SessionDBProvider) -> None:
        for day in range(1, 31):
            at = datetime(2026, 9, day, 12, tzinfo=UTC)
            fill(store, f"202609{day:02}", "Standup notes: we talked about the roadmap.", at=at)
        assert order(store, "What were the standup notes on 2026-09-27?")[0] == "20260927"
        assert order(store, "What were the standup notes?")[0] == "20260930"

    def test_messages_of_the_current_session_do_not_push_out_the_answer(self, store: SessionDBProvider) -> None:
        fill(store, "answer", "The harbour lighthouse key is under the mat.")
        fill(store, "other", "Where is my umbrella?", "I do not know.")
        fill(store, "current", *[f"harbour lighthouse note {number}" for number in range(600)])
        assert order(store, "harbour lighthouse umbrella", current_session_id="current")[0] == "answer"

    def test_count_of_matching_conversations_does_not_depend_on_the_limit(self, store: SessionDBProvider) -> None:
        for number in range(8):
            fill(store, f"s{number}", "The harbour lighthouse is closed.")
        seen = [recall(store, query="harbour lighthouse", limit=limit)["sessions_searched"] for limit in (1, 3, 10)]
        assert seen == [8, 8, 8]

    def test_message_with_all_words_in_a_long_session_needs_no_repair(self, store: SessionDBProvider) -> None:
        fill(store, "s", *[f"entry {number}" for number in range(1_200)])
        assert recall(store, query="entry 77")["search"]["repairs"] == []


def test_query_without_words_counts_nothing_as_hidden(store: SessionDBProvider) -> None:
    start(store, "t", source="tool")
    say(store, "t", "violin strings")
    assert recall(store, query="!!! ???")["hidden"] == {}
