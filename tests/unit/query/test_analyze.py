"""Text is split into words."""

from __future__ import annotations

import unicodedata
from typing import Literal

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.query.analyze import GAP, character_word, fold, fold_to_line, is_unspaced, stream, words

PLACES = [
    (0x20, 0x7E),
    (0xA0, 0x17F),
    (0x300, 0x36F),
    (0x370, 0x3FF),
    (0x400, 0x45F),
    (0x591, 0x5F4),
    (0x600, 0x6FF),
    (0x900, 0x97F),
    (0xE00, 0xE7F),
    (0x1100, 0x11FF),
    (0x1E00, 0x1FFF),
    (0x2000, 0x20FF),
    (0x2100, 0x21FF),
    (0x3000, 0x30FF),
    (0x4E00, 0x4E40),
    (0xAC00, 0xAC80),
    (0xFB00, 0xFB4F),
    (0xFE00, 0xFE0F),
    (0xFF00, 0xFFEF),
    (0x1F1E6, 0x1F1FF),
    (0x1F3F0, 0x1F400),
    (0x1F600, 0x1F64F),
    (0xD800, 0xDFFF),
]
EVERY = [
    chr(code) for code in (*range(0xD800), *range(0xE000, 0x20000), *range(0x2F800, 0x2FA20), *range(0xE0000, 0xE01F0))
]
"""Every character but the ideographs that nothing happens to."""

Form = Literal["NFC", "NFD", "NFKC", "NFKD"]
FORMS: tuple[Form, ...] = ("NFC", "NFD", "NFKC", "NFKD")

characters = st.sampled_from(PLACES).flatmap(lambda place: st.integers(*place)).map(chr)
texts = st.text(characters, max_size=20)
ascii_texts = st.text(st.characters(max_codepoint=127), max_size=30)
quick = settings(
    max_examples=200, derandomize=True, deadline=None, database=None, suppress_health_check=[HealthCheck.too_slow]
)


def split(text: str) -> tuple[list[str], list[str], list[str]]:
    """Return the words of a text, the parts of its identifiers, and its single characters."""
    found = stream(text).split()
    singles = [each for each in found if each.startswith(GAP) and each != GAP]
    rest = [each for each in found if each not in singles]
    border = rest.index(GAP) if GAP in rest else len(rest)
    return rest[:border], rest[border:], singles


class TestFolding:
    @pytest.mark.parametrize(
        ("text", "folded"),
        [
            ("Docker", "docker"),
            ("Straße", "strasse"),
            ("STRAẞE", "strasse"),
            ("Łódź", "lodz"),
            ("Ærø", "aero"),
            ("Œuvre", "oeuvre"),
            ("Đà Nẵng", "da nang"),
            ("Þór", "thor"),
            ("naïve", "naive"),
            ("nai\u0308ve", "naive"),
            ("İstanbul", "istanbul"),
            ("ısı", "isi"),
            ("ﬁle", "file"),
            ("ＡＢＣ１２", "abc12"),
            ("x²", "x2"),
            ("½", "1⁄2"),
            ("㎏", "kg"),
            ("Ⅳ", "iv"),
            ("ΛΌΓΟΣ", "λογοσ"),
            ("λόγος", "λογοσ"),
            ("Йод ёлка", "иод елка"),
            ("مُحَمَّد", "محمد"),
            ("مـحـمـد", "محمد"),
            ("أحمد", "احمد"),
            ("שָׁלוֹם", "שלום"),
            ("ｶﾞｷﾞ", "ガギ"),
            ("か\u3099", "が"),
            ("한글", "한글"),
            (unicodedata.normalize("NFD", "한글"), "한글"),
            ("हिन्दी", "हिन्दी"),
            ("น้ำ", "น้ํา"),
            ("👍🏽", "👍"),
            ("❤️", "❤"),
            ("1️⃣", "1"),
            ("👨‍👩‍👧", "👨👩👧"),
            ("soft\u00adhyphen", "softhyphen"),
            ("\u202ertl\u202c", "rtl"),
            ("a\u200db\u200ec\ufeff", "abc"),
            ("a\0b", "a\0b"),
        ],
    )
    def test_folding_ignores_case_accents_width_and_invisible_characters(self, text: str, folded: str) -> None:
        assert fold(text) == folded

    def test_dakuten_are_not_accents(self) -> None:
        assert fold("か") != fold("が")

    def test_folding_a_character_twice_changes_nothing(self) -> None:
        assert [each for each in EVERY if fold(fold(each)) != fold(each)] == []

    def test_a_character_folds_the_same_in_every_form(self) -> None:
        for form in FORMS:
            formed = [(each, unicodedata.normalize(form, each)) for each in EVERY]
            changed = [each for each, other in formed if each != other and fold(other) != fold(each)]
            # Single Korean letters stay single; their compatibility forms are meant to be combined.
            assert [each for each in changed if not "\u3131" <= each <= "\u318e"] == []

    def test_a_character_folds_the_same_in_upper_and_lower_case(self) -> None:
        cased = [each for each in EVERY if not each.upper() == each == each.lower()]
        assert [each for each in cased if not fold(each.upper()) == fold(each) == fold(each.lower())] == []

    @quick
    @given(texts)
    def test_folding_twice_changes_nothing(self, text: str) -> None:
        assert fold(fold(text)) == fold(text)

    @quick
    @given(texts, st.sampled_from(FORMS))
    def test_the_form_of_a_text_does_not_count(self, text: str, form: Form) -> None:
        assert fold(unicodedata.normalize(form, text)) == fold(text)

    @quick
    @given(ascii_texts)
    def test_plain_text_only_becomes_lower_case(self, text: str) -> None:
        assert fold(text) == text.lower()

    @quick
    @given(texts)
    def test_flat_text_has_single_blanks_only(self, text: str) -> None:
        assert fold_to_line(text) == " ".join(fold_to_line(text).split(" "))
        assert fold_to_line(fold_to_line(text)) == fold_to_line(text)


class TestWords:
    @pytest.mark.parametrize(
        ("text", "expected"),
        [
            ("", ""),
            ("  ", ""),
            ("Hello, World!", "hello world"),
            ("foo-bar foo_bar foo.bar", "foo bar foo bar foo bar"),
            ("it's", "it s"),
            ("a\0b\x1fc", "a b c"),
            ("C++ c# F#.", "c ⧺ c ♯ f ♯"),
            ("C++11 a++b C## +++", "c ⧺ 11 a b c"),
            ("#1 + 2", "1 2"),
            ("price €5 – 10 £", "price € 5 10 £"),
            ("😀😀 👍🏽!", "😀 😀 👍"),
            ("🇩🇪", "🇩 🇪"),
            ("I ♥ NY", "i ♥ ny"),
            ("x → y", "x → y"),
            ("नमस्ते दुनिया।", "नमस्ते दुनिया"),
            ("தமிழ் மொழி", "தமிழ் மொழி"),
            ("שָׁלוֹם־עולם", "שלום עולם"),
            ("مرحبا، العالم؟", "مرحبا العالم"),
            ("“quoted” — and…", "quoted and"),
            ("½ x²", "1 2 x2"),
            ("1.2.3", "1 2 3"),
            (r"C:\Users\bob", "c users bob"),
            ("https://x.com/a?b=c#d", "https x com a b c d"),
        ],
    )
    def test_everything_that_is_no_letter_digit_or_symbol_separates(self, text: str, expected: str) -> None:
        assert split(text)[0] == expected.split()

    @pytest.mark.parametrize(
        ("text", "expected", "singles"),
        [
            ("世", "世", "世"),
            ("世界", "世界 界", "世界"),
            ("世界地図", "世界 界地 地図 図", "世界地図"),
            ("世界 地図", "世界 界 地図 図", "世界地図"),
            ("世界、地図", "世界 界 地図 図", "世界地図"),
            ("a世界b", "a 世界 界 b", "世界"),
            ("第3章", "第 3 章", "第章"),
            ("カメラ", "カメ メラ ラ", "カメラ"),
            ("ｶﾒﾗ", "カメ メラ ラ", "カメラ"),
            ("カメラ・テレビ", "カメ メラ ラ テレ レビ ビ", "カメラテレビ"),
            ("안녕 하세", "안녕 녕 하세 세", "안녕하세"),
            ("世世世", "世世 世世 世", "世"),
            ("𠀀𠀁", "𠀀𠀁 𠀁", "𠀀𠀁"),
        ],
    )
    def test_scripts_without_spaces_become_pairs_and_single_characters(
        self, text: str, expected: str, singles: str
    ) -> None:
        assert (split(text)[0], split(text)[2]) == (expected.split(), [character_word(each) for each in singles])

    @pytest.mark.parametrize("character", "世𠀀ァーあガ々〇안ᄀไลา་မកㄅ")
    def test_script_is_written_without_spaces(self, character: str) -> None:
        assert is_unspaced(character)

    @pytest.mark.parametrize("character", "aß1éжअעم・。、「 €😀_-")
    def test_script_is_written_with_spaces(self, character: str) -> None:
        assert not is_unspaced(character)

    @quick
    @given(texts)
    def test_a_text_has_all_words_of_a_query_from_it(self, text: str) -> None:
        asked = words(text)
        if asked and not (is_unspaced(asked[-1][0]) and len(asked[-1]) == 1):
            assert f" {' '.join(asked)} " in stream(text)

    @quick
    @given(texts)
    def test_words_of_folded_text_are_those_of_the_text(self, text: str) -> None:
        if "#" not in fold(text) and "++" not in fold(text):
            assert words(fold(text)) == words(text)

    @quick
    @given(ascii_texts, ascii_texts)
    def test_words_of_two_texts_are_those_of_both(self, first: str, second: str) -> None:
        assert split(f"{first}\n{second}")[0] == split(first)[0] + split(second)[0]

    @quick
    @given(ascii_texts)
    def test_a_word_in_another_script_changes_no_other_word(self, text: str) -> None:
        plain, parts, singles = split(text)
        assert split(f"{text} żółć") == ([*plain, "zolc"], parts, singles)
        assert split(f"żółć {text}") == (["zolc", *plain], parts, singles)

    @quick
    @given(texts)
    def test_no_word_of_a_text_looks_like_a_gap(self, text: str) -> None:
        assert not any(GAP in word for word in words(text))


class TestParts:
    @pytest.mark.parametrize(
        ("text", "parts"),
        [
            ("getUserName", "get user name"),
            ("GetUserName", "get user name"),
            ("HTTPServer", "http server"),
            ("parseXML", "parse xml"),
            ("userID", "user id"),
            ("iPhone", "i phone"),
            ("OpenAI", "open ai"),
            ("utf8", "utf 8"),
            ("sha256", "sha 256"),
            ("base64Encode", "base 64 encode"),
            ("python3", "python 3"),
            ("OAuth2ClientConfig", "o auth 2 client config"),
            ("getUserById2", "get user by id 2"),
            ("S3BucketName", "s 3 bucket name"),
            ("IPv6Address", "i pv 6 address"),
            ("http2ServerPush", "http 2 server push"),
            ("3DModelViewer", "3 d model viewer"),
        ],
    )
    def test_an_identifier_is_found_by_its_parts(self, text: str, parts: str) -> None:
        assert split(text)[1] == [GAP, *parts.split()]

    @pytest.mark.parametrize(
        ("text", "phrase"), [("v1.2.3", "1 2 3"), ("V2.0", "2 0"), ("python3.11", "3 11"), ("go1.21.5", "1 21 5")]
    )
    def test_a_version_is_found_without_its_prefix(self, text: str, phrase: str) -> None:
        assert f" {phrase} " in stream(text)

    @pytest.mark.parametrize(
        "text",
        [
            "docker",
            "Docker",
            "DOCKER",
            "1234",
            "1.2.3",
            "snake_case",
            "a1b2c3d4",
            "9f86d081884c7d65",
            "deadBEEF12ff34",
            "dQw4w9WgXcQ",
            "aGVsbG8gd29ybGQ",
            "eyJhbGciOiJIUzI1NiJ9",
            "世界",
            "",
        ],
    )
    def test_a_word_a_number_and_a_hash_have_no_parts(self, text: str) -> None:
        assert split(text)[1] == []

    def test_an_identifier_stays_findable_as_a_whole(self) -> None:
        assert split("getUserName()")[0] == ["getusername"]

    def test_no_phrase_reaches_from_one_identifier_into_the_next(self) -> None:
        assert split("getName setAge")[1] == [GAP, "get", "name", GAP, "set", "age"]

    def test_a_repeated_identifier_is_split_once(self) -> None:
        assert split("getName getName getName")[1] == [GAP, "get", "name"]
