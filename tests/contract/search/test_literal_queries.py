"""Queries that mean their text: pasted commands, exact quotes, units, ids, wrapped text."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.conversations import ids, say, start


def find(store: SessionDBProvider, query: str) -> list[int]:
    return ids(store.search_messages(query))


@pytest.mark.parametrize("command", ["kubectl get pods -n prod", "tar -xzf x", "grep -rn foo", "ls -la --color"])
def test_pasted_command_is_found(store: SessionDBProvider, command: str) -> None:
    start(store, "s")
    say(store, "s", "unrelated")
    (found,) = say(store, "s", f"I ran {command} and it worked")
    assert find(store, command) == [found]


def test_minus_means_not_where_no_message_has_the_text(store: SessionDBProvider) -> None:
    start(store, "s")
    plain, _ = say(store, "s", "docker alone", "docker compose")
    results = store.search_messages("docker -compose")
    assert ids(results) == [plain]


def test_text_that_occurs_says_how_the_query_was_read(store: SessionDBProvider) -> None:
    start(store, "s")
    say(store, "s", "type docker -compose here")
    assert store.search_messages("docker -compose").repairs


def test_not_is_a_word_before_it_is_dropped(store: SessionDBProvider) -> None:
    start(store, "s")
    found, *_ = say(store, "s", "page not found", *["I found it"] * 30)
    assert find(store, "not found") == [found]
    assert find(store, "page not found") == [found]


@pytest.mark.parametrize("text", ["it took 500ms", "it took 500 ms", "500ms"])
@pytest.mark.parametrize("query", ["500ms", "500 ms", "500"])
def test_units_are_found_with_and_without_a_blank(store: SessionDBProvider, text: str, query: str) -> None:
    start(store, "s")
    found, _ = say(store, "s", text, "it took 300 s")
    assert find(store, query) == [found]


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("a 5GB disk", "5 GB"),
        ("1080p video", "1080"),
        ("30s", "30 s"),
        ("at 5kHz", "5 kHz"),
        ("12GiB", '"12 gib"'),
        ("5 kHz", "5kh*"),
    ],
)
def test_number_and_its_unit_are_found_together(store: SessionDBProvider, text: str, query: str) -> None:
    start(store, "s")
    found = say(store, "s", text)
    assert find(store, query) == found


@pytest.mark.parametrize(
    ("text", "query"),
    [
        ("发生了记忆\n断裂的问题", "记忆断裂"),
        ("记忆断裂", '"记忆 断裂"'),
        ("記憶\u3000断裂", "記憶断裂"),
        ("데이터 베이스", "데이터베이스"),
        ("데이터베이스", '"데이터 베이스"'),
        ("ｶ ﾒﾗ", "カメラ"),
        ("น้ำภาษา", '"น้ำ ภาษา"'),
        ("see 记忆 断裂 here", '"记忆 断裂 here"'),
    ],
)
def test_blanks_inside_unspaced_scripts_do_not_matter(store: SessionDBProvider, text: str, query: str) -> None:
    start(store, "s")
    assert say(store, "s", text) == find(store, query)


@pytest.mark.parametrize(
    ("exact", "other", "query"),
    [
        ("git push --force", "git push by force", '"--force"'),
        ("see #tag here", "see tag here", '"#tag"'),
        ("100%完成", "100 完成", '"100%完成"'),
        ("a_b", "a b", '"a_b"'),
    ],
)
def test_quotes_match_the_punctuation(store: SessionDBProvider, exact: str, other: str, query: str) -> None:
    start(store, "s")
    found, _ = say(store, "s", exact, other)
    assert find(store, query) == [found]


@pytest.mark.parametrize("text", ["5 привет ms", "5 x ms"])
def test_number_and_unit_with_a_word_between_are_no_measure(store: SessionDBProvider, text: str) -> None:
    start(store, "s")
    say(store, "s", text)
    assert find(store, "5ms") == []


def test_vowel_signs_are_no_punctuation(store: SessionDBProvider) -> None:
    start(store, "s")
    assert say(store, "s", "नमस्ते, भाषा") == find(store, '"नमस्ते भाषा"')


@pytest.mark.parametrize("query", ["alpha beta gamma NOT x1", "a b c d e f NOT delta"])
def test_not_in_capitals_is_an_operator_in_any_row_of_words(store: SessionDBProvider, query: str) -> None:
    start(store, "s")
    found, _ = say(store, "s", "a b c d e f alpha beta gamma", "a b c d e f alpha beta gamma x1 delta")
    assert find(store, query) == [found]


@pytest.mark.parametrize("query", ["1.2.3 and", "世界地 and"])
def test_words_before_a_small_operator_stay_together(store: SessionDBProvider, query: str) -> None:
    start(store, "s")
    found, _ = say(store, "s", f"it has {query} more", "3, 2 and 1; 界地 and 世界")
    assert find(store, query) == [found]


def test_words_inside_the_id_of_a_tool_call_match_nothing(store: SessionDBProvider) -> None:
    start(store, "s")
    call = {"id": "call_GetWeather_12", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
    store.append_message("s", "assistant", None, tool_calls=[call])
    (message_id,) = say(store, "s", "the weather is fine")
    assert find(store, "weather") == [message_id]


def test_ids_of_tool_calls_match_whole_and_not_by_their_words(store: SessionDBProvider) -> None:
    start(store, "s")
    for number in range(30):
        call = {"id": f"call_{number:08x}", "type": "function", "function": {"name": "terminal", "arguments": "{}"}}
        store.append_message("s", "assistant", None, tool_calls=[call])
    (message_id,) = say(store, "s", "please call me back")
    assert find(store, "call") == [message_id]
    (hit,) = store.search_messages("call_00000007")
    assert ">>>call_00000007<<<" in hit["snippet"]
    assert find(store, '"call_00000007"') == [hit["id"]]


def test_arrows_are_looked_for_as_characters(store: SessionDBProvider) -> None:
    start(store, "s")
    one, other, _ = say(store, "s", "x -> y", "x => y", "x or y")
    assert sorted(find(store, "-> OR =>")) == [one, other]
    assert sorted(find(store, "*->* OR *=>*")) == [one, other]


def test_part_may_have_a_blank(store: SessionDBProvider) -> None:
    start(store, "s")
    found, _ = say(store, "s", "docker compose up", "compose docker")
    assert find(store, '*"ker comp"*') == [found]


def test_sentence_falls_back_to_the_messages_with_the_most_telling_words(store: SessionDBProvider) -> None:
    start(store, "s")
    best, some, _ = say(store, "s", "the boiler was repaired", "the boiler is old", "nothing here")
    results = store.search_messages("when was the boiler finally repaired by him")
    assert ids(results) == [best, some]
    assert (results.path, len(results.repairs)) == ("coverage", 1)


def test_sentence_does_not_find_the_last_character_of_its_runs_alone(store: SessionDBProvider) -> None:
    start(store, "s")
    found, _ = say(store, "s", "通信系统断裂", "统一")
    assert find(store, "通信的世界记忆系统3号") == [found]


def test_few_words_stay_strict(store: SessionDBProvider) -> None:
    start(store, "s")
    say(store, "s", "docker alone")
    assert find(store, "docker compose") == []


def test_rare_word_of_a_choice_is_first_however_old_it_is(store: SessionDBProvider) -> None:
    start(store, "s")
    (found,) = say(store, "s", "the xylophone arrived")
    say(store, "s", *[f"the parcel {number} arrived" for number in range(150)])
    assert find(store, "arrived OR xylophone")[0] == found


def test_half_width_kana_is_shown_as_it_was_written(store: SessionDBProvider) -> None:
    start(store, "s")
    say(store, "s", "これはｶﾞｲﾄﾞです")
    (hit,) = store.search_messages("ガイド")
    assert hit["snippet"] == "これは>>>ｶﾞｲﾄﾞ<<<です"


@pytest.mark.parametrize(
    ("text", "query", "snippet"),
    [
        ("it took 500 ms here", "500ms", "it took >>>500 ms<<< here"),
        ("记忆 断裂", "记忆断裂", ">>>记忆 断裂<<<"),
        ("she repaired it", "who repairs it for her today", "she >>>repaired<<< it"),
    ],
)
def test_snippet_marks_other_spellings_too(store: SessionDBProvider, text: str, query: str, snippet: str) -> None:
    start(store, "s")
    say(store, "s", text)
    (hit,) = store.search_messages(query)
    assert hit["snippet"] == snippet


@pytest.mark.parametrize(
    "filters", [{"source_filter": ["telegram"]}, {"exclude_sources": ["cli"]}, {"exclude_session_ids": ["many"]}]
)
def test_filters_are_part_of_the_fallback_of_a_sentence(store: SessionDBProvider, filters: dict[str, Any]) -> None:
    start(store, "answer", source="telegram")
    (found,) = say(store, "answer", "The harbour lighthouse is closed.")
    start(store, "many")
    store.append_messages("many", [{"role": "user", "content": f"harbour lighthouse note {n}"} for n in range(900)])
    assert ids(store.search_messages("Why was the harbour lighthouse painted magenta?", **filters)) == [found]
