"""A snippet shows why a message was found."""

from __future__ import annotations

import re
import unicodedata
from random import Random

import pytest

from hermes.query.analyze import fold
from hermes.query.match import Document, matches
from hermes.query.parse import parse
from hermes.query.snippet import CLOSE, CUT, OPEN, WIDTH, snippet
from hermes.query.tree import wanted_leaves

LOREM = "lorem ipsum dolor sit amet consectetur "
WORDS = (
    "docker compose timeout café naïve straße getUserName v1.2.3 世界地図 カメラ 안녕하세요 ภาษาไทย привет محمد שלום "
    "हिन्दी 👍 €5 C++ foo@bar.com /usr/local/bin sp_new 100%"
)


def show(text: str, query: str, width: int = WIDTH) -> str:
    tree = parse(query).tree
    assert tree is not None
    return snippet(text, list(wanted_leaves(tree)), width)


def marked(shown: str) -> list[str]:
    """Return the text between the markers."""
    return re.findall(f"{OPEN}(.*?){CLOSE}", shown, re.DOTALL)


def plain(shown: str) -> str:
    """Return a snippet without markers and cut marks."""
    return shown.replace(OPEN, "").replace(CLOSE, "").removeprefix(CUT).removesuffix(CUT)


class TestMarkers:
    @pytest.mark.parametrize(
        ("text", "query", "shown"),
        [
            ("Docker is up", "docker", ">>>Docker<<< is up"),
            ("docker and Docker", "docker", ">>>docker<<< and >>>Docker<<<"),
            ("a b c", "a c", ">>>a<<< b >>>c<<<"),
            ("foo bar", '"foo bar"', ">>>foo bar<<<"),
            ("foo,\n bar", '"foo bar"', ">>>foo,\n bar<<<"),
            ("foo-bar", "foo-bar", ">>>foo-bar<<<"),
            ("foo bar", "foo-bar", ">>>foo bar<<<"),
            ("dockerfile docker", "docker", "dockerfile >>>docker<<<"),
            ("deployment", "deploy*", ">>>deploy<<<ment"),
            ("redeployment", "*ploy*", "rede>>>ploy<<<ment"),
            ("getUserName", "user", "get>>>User<<<Name"),
            ("v1.2.3", "1.2.3", "v>>>1.2.3<<<"),
            ("python3.11", "3.11", "python>>>3.11<<<"),
            ("500ms and 5GB", "5", "500ms and >>>5<<<GB"),
            ("15 of 5GB", "gb 5", "15 of >>>5GB<<<"),
            ("C and C++", "C++", "C and >>>C++<<<"),
            ("Café", "cafe", ">>>Café<<<"),
            ("cafe", "café", ">>>cafe<<<"),
            ("Straße", "STRASSE", ">>>Straße<<<"),
            ("ﬁle", "file", ">>>ﬁle<<<"),
            ("ＡＢＣ", "abc", ">>>ＡＢＣ<<<"),
            ("İstanbul", "istanbul", ">>>İstanbul<<<"),
            ("世界地図", "界地", "世>>>界地<<<図"),
            ("世界地図", "図", "世界地>>>図<<<"),
            ("ｶﾒﾗ", "カメラ", ">>>ｶﾒﾗ<<<"),
            ("か\u3099き", "がき", ">>>がき<<<"),
            (unicodedata.normalize("NFD", "안녕한글"), "한글", "안녕>>>한글<<<"),
            ("Agent通信です", "agent通信", ">>>Agent通信<<<です"),
            ("مُحَمَّد هنا", "محمد", ">>>مُحَمَّد<<< هنا"),
            ("e\u0301cole", "école", ">>>e\u0301cole<<<"),
            ("soft\u00adhyphen", "softhyphen", ">>>soft\u00adhyphen<<<"),
            ("👨‍👩‍👧 x", "👨‍👩‍👧", ">>>👨‍👩‍👧<<< x"),
            ("x -> y", '"->"', "x >>>-><<< y"),
            ("foo", "-bar", "foo"),
            ("a b", "a OR zzz", ">>>a<<< b"),
            ("a b", "a -zzz", ">>>a<<< b"),
        ],
    )
    def test_markers_surround_each_match(self, text: str, query: str, shown: str) -> None:
        assert show(text, query) == shown

    def test_touching_and_overlapping_matches_are_one(self) -> None:
        assert show("abcdef", "*abcd* *cdef*") == ">>>abcdef<<<"

    @pytest.mark.parametrize("seed", range(10))
    def test_every_hit_of_a_corpus_has_its_match_marked(self, seed: int) -> None:
        random = Random(seed)
        vocabulary = WORDS.split()
        for _ in range(100):
            text = " ".join(random.choice((*vocabulary, LOREM)) for _ in range(random.randint(1, 80)))
            query = random.choice(vocabulary)
            tree = parse(query).tree
            assert tree is not None
            if matches(tree, Document(text)):
                shown = show(text, query)
                assert marked(shown), (text, query, shown)
                assert {fold(each) for each in marked(shown)} == {fold(query)}
                assert plain(shown) in text


class TestWindow:
    def test_a_short_text_is_shown_whole(self) -> None:
        assert show("x" * WIDTH, "y") == "x" * WIDTH

    def test_a_cut_is_marked_at_both_ends(self) -> None:
        shown = show(LOREM * 50 + "needle " + LOREM * 50, "needle")
        assert shown.startswith(CUT)
        assert shown.endswith(CUT)
        assert f"{OPEN}needle{CLOSE}" in shown

    def test_a_match_at_the_start_is_cut_only_at_the_end(self) -> None:
        shown = show("needle " + LOREM * 50, "needle")
        assert shown.startswith(f"{OPEN}needle{CLOSE} lorem")
        assert shown.endswith(CUT)

    def test_a_match_at_the_end_is_cut_only_at_the_start(self) -> None:
        shown = show(LOREM * 50 + "needle", "needle")
        assert shown.startswith(CUT)
        assert shown.endswith(f"{OPEN}needle{CLOSE}")

    def test_snippet_without_a_match_shows_the_start(self) -> None:
        shown = show(LOREM * 50, "needle")
        assert shown.startswith("lorem ipsum")
        assert shown.endswith(CUT)
        assert marked(shown) == []

    def test_the_place_with_the_most_different_words_is_shown(self) -> None:
        shown = show(f"alpha {LOREM * 20} beta {LOREM * 20} alpha and beta {LOREM * 20}", "alpha beta")
        assert marked(shown) == ["alpha", "beta"]

    def test_words_are_not_cut_in_two(self) -> None:
        text = LOREM * 30 + "needle " + LOREM * 30
        for piece in plain(show(text, "needle")).split():
            assert f" {piece} " in f" {text} "

    @pytest.mark.parametrize(
        "text", [LOREM * 200, "x" * 5_000, "世界" * 2_000, "é " * 3_000, "a\n" * 3_000, "\t" * 900]
    )
    @pytest.mark.parametrize("width", [20, 80, WIDTH, 1_000])
    @pytest.mark.parametrize("query", ["lorem", "*x*", "世", "é", "a", "absent"])
    def test_snippet_is_about_as_wide_as_requested(self, text: str, width: int, query: str) -> None:
        assert len(plain(show(text, query, width))) <= width + 20

    @pytest.mark.parametrize("position", [0, 1, 50, 199, 200, 201, 4_000, 65_530, 65_536, 65_600, 131_072, 199_999])
    @pytest.mark.parametrize("filler", ["x ", "é "])
    def test_a_match_is_shown_at_any_position(self, position: int, filler: str) -> None:
        text = filler * 100_000
        text = f"{text[:position]} needle {text[position:]}"
        shown = show(text, "needle")
        assert marked(shown) == ["needle"]
        assert plain(shown) in text

    def test_a_match_that_is_longer_than_the_width_is_shown_whole(self) -> None:
        long = "x" * 500
        assert marked(show(f"{LOREM} {long} {LOREM}", long)) == [long]

    @pytest.mark.parametrize("filler", [LOREM, "łorem ipsüm ", "世界地図", "x", "é", "-", "a\u0301", "\n"])
    def test_a_megabyte_is_shown_as_a_line_is(self, filler: str) -> None:
        text = filler * (1_000_000 // len(filler)) + " needle"
        assert marked(show(text, "needle")) == ["needle"]

    @pytest.mark.parametrize("text", ["", " ", "\0", "\ud800", ">>>", "<<<", "..."])
    @pytest.mark.parametrize("query", ["x", "*x*", '"->"', "世", "-x"])
    def test_odd_texts_are_shown_as_they_are(self, text: str, query: str) -> None:
        assert show(text, query) == text
