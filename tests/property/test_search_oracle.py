"""Random queries on random messages find what the naive search finds."""

from __future__ import annotations

import pytest

from tests.property.naive_query import read
from tests.property.naive_search import Branch, Leaf, Message, Tree, find, has_some, is_machine_id
from tests.property.naive_words import fold, items, parts
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
            ("500ms 5kHz 12GiB 3parts", [["12", "gib"], ["5", "khz"], ["500", "ms"]]),
            ("0callGetWeather12", []),
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
            ("世 界", Leaf("世界"), True),
            ("世\n \n界", Leaf("世界"), True),
            ("世" + " " * 9 + "界", Leaf("世界"), False),
            ("世界", Leaf("世 界", "phrase"), True),
            ("世 界 a", Leaf("世 界 a", "phrase"), True),
            ("世 a", Leaf("世a"), True),
            ("agent世界", Leaf("agent世"), True),
            ("agent大世界", Leaf("agent世"), False),
            ("deployment", Leaf("deploy", "prefix"), True),
            ("redeploy", Leaf("plo", "part"), True),
            ("redeploy", Leaf("plo"), True),
            ("redeploy", Leaf("pl"), False),
            ("it took 500 ms", Leaf("500ms"), True),
            ("it took 500ms", Leaf("500 ms", "phrase"), True),
            ("500 мир ms", Leaf("500ms"), False),
            ("500 kHz", Leaf("500kh", "prefix"), True),
            ("git push --force", Leaf("push --force", "phrase"), True),
            ("git push, force", Leaf("push --force", "phrase"), False),
            ("git push, force", Leaf("push force", "phrase"), True),
            ("नमस्ते, भाषा", Leaf("नमस्ते भाषा", "phrase"), True),
            ("a\0b", Leaf("a b", "part"), True),
        ],
    )
    def test_naive_search_finds_a_word(self, text: str, leaf: Leaf, is_found: bool) -> None:
        message = Message(1, "s", "cli", None, "user", 0.0, text)
        assert (find([message], leaf, lambda _: True) == {1}) == is_found

    @pytest.mark.parametrize(
        ("typed", "is_found"),
        [("call_42", True), ("CALL-42", True), ("call_4*", False), ("call_42*", True), ("call", False), ("42", False)],
    )
    def test_naive_search_knows_the_ids_of_tool_calls(self, typed: str, is_found: bool) -> None:
        call = {"id": "call_42", "function": {"name": "run", "arguments": "{}"}}
        messages = [
            Message(1, "s", "cli", None, "assistant", 0.0, None, tool_calls=[call]),
            # These words are here, so that they are not searched inside of others.
            Message(2, "s", "cli", None, "user", 0.0, "call 4 and 42 call_4"),
        ]
        assert (1 in find(messages, read(typed).tree, lambda _: True)) == is_found

    @pytest.mark.parametrize("text", ["call_42", "toolu-01ab", "a1b2c3d4e", "ab_12_cd_34_ef"])
    def test_oracle_recognizes_an_id(self, text: str) -> None:
        assert is_machine_id(text)

    @pytest.mark.parametrize("text", ["call_4", "user_name", "12-34", "a1b2c3d4", "é1b2c3d4e5", "c_42", "ab__12"])
    def test_other_words_are_no_ids(self, text: str) -> None:
        assert not is_machine_id(text)

    @pytest.mark.parametrize(
        ("sentence", "text", "is_found"),
        [("we painted it", "painting", True), ("we painted it", "sun", False), ("世界地", "界地", True)],
    )
    def test_naive_search_finds_some_words_of_a_sentence(self, sentence: str, text: str, is_found: bool) -> None:
        assert has_some(sentence, Message(1, "s", "cli", None, "user", 0.0, text)) == is_found

    def test_naive_search_joins_conditions(self) -> None:
        messages = [
            Message(number, "s", "cli", None, "user", 0.0, text) for number, text in enumerate(("a", "b", "a b"))
        ]
        a, b = Leaf("a"), Leaf("b")
        assert find(messages, Branch("and", (a, b)), lambda _: True) == {2}
        assert find(messages, Branch("or", (a, b)), lambda _: True) == {0, 1, 2}
        assert find(messages, Branch("and", (a, Branch("not", (b,)))), lambda _: True) == {0}


class TestNaiveReader:
    """Examples for the reader of typed words."""

    a, b, n = Leaf("a"), Leaf("b"), Leaf("n")

    @pytest.mark.parametrize(
        ("typed", "tree"),
        [
            ("a", a),
            ("a b", Branch("and", (a, b))),
            ("a -b", Branch("and", (a, Branch("not", (b,))))),
            ("a b -n", Branch("and", (a, b, n))),
            ("a b -foo", Branch("and", (a, b, Branch("not", (Leaf("foo"),))))),
            ("a b a b a -foo", Branch("and", (a, b, a, b, a, Leaf("foo")))),
            ("a -> b*", Branch("and", (a, Leaf("b", "prefix")))),
            ("and a or", a),
            ("*a*", Leaf("a", "part")),
            ("-> =>", Leaf("-> =>", "part")),
            ("-> -=", Branch("and", (Leaf("->", "part"), Branch("not", (Leaf("=", "part"),))))),
        ],
    )
    def test_words_mean_a_tree(self, typed: str, tree: Tree) -> None:
        assert read(typed).tree == tree

    @pytest.mark.parametrize(
        ("typed", "literal"),
        [
            ("a b", None),
            ("-a", None),
            ("a -b", Leaf("a -b", "literal")),
            ("a b -n", None),
            ("a not", Branch("and", (a, Leaf("not")))),
            ("and or", None),
        ],
    )
    def test_oracle_searches_literal_text_that_occurs(self, typed: str, literal: Tree | None) -> None:
        assert read(typed).literal == literal

    @pytest.mark.parametrize(("text", "wanted"), [("x a -b", {2}), ("x", {1})])
    def test_text_of_a_message_wins(self, text: str, wanted: set[int]) -> None:
        messages = [Message(1, "s", "cli", None, "user", 0.0, "a"), Message(2, "s", "cli", None, "user", 0.0, text)]
        meaning = read("a -b")
        assert find(messages, meaning.tree, lambda _: True, meaning.literal) == wanted
