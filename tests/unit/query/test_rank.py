"""The order of found messages."""

from __future__ import annotations

from random import Random

import pytest

from hermes.query.parse import parse
from hermes.query.rank import Candidate, rank
from hermes.query.tree import has_alternatives, wanted_leaves

FILLER = "the quick brown fox jumps over the lazy dog and then walks home "


def order(query: str, *texts: str | tuple[str, str]) -> list[int]:
    """Return the positions of the messages, best first; the first message is the newest."""
    tree = parse(query).tree
    assert tree is not None
    sought = list(wanted_leaves(tree))
    candidates = [
        Candidate(number, *(each if isinstance(each, tuple) else ("assistant", each)))
        for number, each in enumerate(texts)
    ]
    return rank(candidates, sought, is_choice=has_alternatives(tree))


def test_no_candidates_give_an_empty_order() -> None:
    assert order("docker") == []


def test_more_mentions_beat_fewer() -> None:
    once, often = f"docker {FILLER}", "docker here, docker there, docker everywhere, the lazy dog sleeps"
    assert order("docker", once, often) == [1, 0]


def test_words_together_beat_words_far_apart() -> None:
    apart, together = f"docker {FILLER} timeout", f"docker timeout {FILLER}"
    assert order("docker timeout", apart, together) == [1, 0]


def test_a_rare_word_counts_for_more_than_a_common_one() -> None:
    common = [f"docker {FILLER}"] * 8
    assert order("docker OR timeout", *common, f"timeout {FILLER}")[0] == 8


@pytest.mark.parametrize("question", ["how do I fix the docker timeout?", "docker timeout?", "Docker timeout again!"])
def test_the_answer_beats_the_short_question(question: str) -> None:
    answer = (
        "The docker timeout comes from the DNS: set dns in daemon.json, then restart docker. The timeout is gone "
        "afterwards; if not, raise the docker client timeout to 300 seconds with DOCKER_CLIENT_TIMEOUT."
    )
    assert order("docker timeout", ("user", question), ("assistant", answer)) == [1, 0]


def test_a_message_beats_a_tool_result() -> None:
    assert order("docker", ("tool", "docker is up"), ("assistant", "docker is up")) == [1, 0]


def test_newest_of_equal_messages_comes_first() -> None:
    assert order("docker", *["docker is up"] * 5) == [0, 1, 2, 3, 4]


def test_a_message_that_is_far_better_beats_all_newer_ones() -> None:
    newer = [f"docker {FILLER}"] * 50
    assert order("docker timeout", *newer, "docker timeout: docker timeout, docker timeout")[0] == 50


def test_a_query_without_wanted_words_is_ordered_newest_first() -> None:
    assert order("NOT docker", "a", "b " * 50, "c") == [0, 1, 2]


def test_case_does_not_affect_the_rank() -> None:
    assert order("docker", f"DOCKER {FILLER}", f"docker {FILLER}") == [0, 1]


def test_empty_texts_are_ranked_too() -> None:
    assert sorted(order("docker", "", "", "docker")) == [0, 1, 2]


def test_the_order_is_stable_and_has_every_message_once() -> None:
    random = Random(3)
    vocabulary = ["docker", "timeout", "error", "table", "the", "of", "a", "server"]
    texts = [" ".join(random.choices(vocabulary, k=random.randint(1, 60))) for _ in range(300)]
    first = order("docker timeout", *texts)
    assert sorted(first) == list(range(300))
    assert order("docker timeout", *texts) == first


@pytest.mark.parametrize("query", ["docker", "*ocke*", "dock*", '"docker timeout"', "docker OR x*"])
def test_every_kind_of_query_prefers_more_mentions(query: str) -> None:
    once, often = f"docker timeout {FILLER}", "docker timeout " * 4
    assert order(query, once, often) == [1, 0]


def test_both_of_two_alternatives_beat_one_of_them_mentioned_twice() -> None:
    assert order("docker OR timeout", "docker and docker again here", "docker and timeout again here")[0] == 1


def test_an_empty_text_does_not_beat_one_with_the_word() -> None:
    assert order("docker", "", "", "docker")[0] == 2
