"""Random queries on random messages find what the naive search finds."""

from __future__ import annotations

import pytest

from tests.property.naive_search import Branch, Leaf, Message, find, fold, items, parts
from tests.property.search_oracle import mismatches, smallest

SEEDS = range(1, 11)


@pytest.mark.parametrize("seed", SEEDS)
def test_a_store_finds_what_the_naive_search_finds(seed: int) -> None:
    wrong, asked = mismatches(seed, queries=90)
    assert asked > 0
    assert not wrong, f"{wrong[0]}\n{smallest(wrong[0])}"


def test_a_store_of_several_batches_finds_what_the_naive_search_finds() -> None:
    wrong, _ = mismatches(99, messages=1_100, queries=20)
    assert not wrong, f"{wrong[0]}\n{smallest(wrong[0])}"


class TestNaiveSearch:
    """Examples for the naive search itself."""

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("Hello, wörld_2", "hello world 2"),
            ("C++ F# a++b", "c ⧺ f ♯ a b"),
            ("世界a", "世界 a"),
            ("👍🏽€5", "👍 € 5"),
            ("ｶﾞ नमस्ते", "ガ नमस्ते"),
        ],
    )
    def test_naive_search_splits_a_text_into_words(self, text: str, words: str) -> None:
        assert [word for _, word in items(text)] == words.split()

    def test_naive_search_folds_a_text(self) -> None:
        assert fold("Straße ŁÓDŹ ﬁ ＡＢ مُحَمَّد") == "strasse lodz fi ab محمد"

    @pytest.mark.parametrize(
        ("text", "groups"),
        [
            ("getUserName", [["get", "user", "name"]]),
            ("HTTPServer", [["http", "server"]]),
            ("v1.2.3", [["v", "1"], ["v", "1", "2", "3"]]),
            ("OAuth2ClientConfig", [["o", "auth", "2", "client", "config"]]),
            ("a1b2c3d4 plain DONE eyJhbGciOiJIUzI1NiJ9", []),
        ],
    )
    def test_naive_search_knows_the_parts_of_identifiers(self, text: str, groups: list[list[str]]) -> None:
        assert sorted([word for _, word in group] for group in parts(text)) == groups

    @pytest.mark.parametrize(
        ("text", "leaf", "is_found"),
        [
            ("a b c", Leaf("b c", "phrase"), True),
            ("a b c", Leaf("c b", "phrase"), False),
            ("世界地図", Leaf("界地"), True),
            ("世 界", Leaf("世界"), False),
            ("agent世界", Leaf("agent世"), True),
            ("agent大世界", Leaf("agent世"), False),
            ("deployment", Leaf("deploy", "prefix"), True),
            ("redeploy", Leaf("plo", "part"), True),
            ("redeploy", Leaf("plo"), True),
            ("redeploy", Leaf("pl"), False),
        ],
    )
    def test_naive_search_finds_a_word(self, text: str, leaf: Leaf, is_found: bool) -> None:
        message = Message(1, "s", "cli", None, "user", 0.0, text)
        assert (find([message], leaf, lambda _: True) == {1}) == is_found

    def test_naive_search_joins_conditions(self) -> None:
        messages = [
            Message(number, "s", "cli", None, "user", 0.0, text) for number, text in enumerate(("a", "b", "a b"))
        ]
        a, b = Leaf("a"), Leaf("b")
        assert find(messages, Branch("and", (a, b)), lambda _: True) == {2}
        assert find(messages, Branch("or", (a, b)), lambda _: True) == {0, 1, 2}
        assert find(messages, Branch("and", (a, Branch("not", (b,)))), lambda _: True) == {0}
