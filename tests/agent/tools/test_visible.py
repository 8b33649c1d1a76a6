"""The text that the user sees when asked for approval."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.safety.visible_text import fold_blanks, has_disguise, make_visible


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("ls -la", "ls -la"),
        ("two\nlines", "two\nlines"),
        ("a\rb", "a\\rb"),
        ("a\tb", "a\\tb"),
        ("\x1b[2J\x1b[31mred", "\\x1b[2J\\x1b[31mred"),
        ("a\x00b\x7f", "a\\x00b\\x7f"),
        ("rm\u202etxt.exe", "rm\\u202etxt.exe"),
        ("a\u200bb\ufeff", "a\\u200bb\\ufeff"),
        ("a\u00a0b\u2003c", "a\\xa0b\\u2003c"),
        ("a\u2028b", "a\\u2028b"),
        ("pаypal.com", "p\\u0430ypal.com"),
        ("аpt install", "\\u0430pt install"),
        ("сасе", "\\u0441\\u0430\\u0441\\u0435"),
        ("ΑΒ", "\\u0391\\u0392"),
        ("gοogle", "g\\u03bfogle"),
        ("ｒｍ", "\\uff52\\uff4d"),
        ("𝐫𝐦", "\\U0001d42b\\U0001d426"),
        ("a；b", "a\\uff1bb"),
        ("http:∕∕x", "http:\\u2215\\u2215x"),
        ("–rf", "\\u2013rf"),
        ("‘a’ “b”", "\\u2018a\\u2019 \\u201cb\\u201d"),
        ("\ud800", "\\ud800"),
        ("\ue000", "\\ue000"),
        ("rm\u3164x", "rm\\u3164x"),
        ("a\u2800b", "a\\u2800b"),
        ("a\ufe0fb", "a\\ufe0fb"),
        ("a\U000e0100b", "a\\U000e0100b"),
        ("a\U000e0041b", "a\\U000e0041b"),
        ("a\u034fb", "a\\u034fb"),
        ("\u115f\u1160\uffa0", "\\u115f\\u1160\\uffa0"),
        ("a\u17b4\u180b\ufffc", "a\\u17b4\\u180b\\ufffc"),
        ("\U0001d159", "\\U0001d159"),
        ("אב", "\\u05d0\\u05d1"),
        ("مر", "\\u0645\\u0631"),
        ("٣", "\\u0663"),
        ("r\u0338m", "r\\u0338m"),
        ("-\u0301rf", "-\\u0301rf"),
        ("a\u20dd", "a\\u20dd"),
        ("e\u0301\u0301\u0301\u0301", "e\u0301\u0301\u0301\\u0301"),
        ("rm\u1161 \u11a8x\ud7b0", "rm\\u1161 \\u11a8x\\ud7b0"),
        ("go\u1d0fgle \u1d04at", "go\\u1d0fgle \\u1d04at"),
        ("\u1d04\u1d20", "\\u1d04\\u1d20"),
        ("it\ua78cs", "it\\ua78cs"),
        ("ls ˗rf", "ls \\u02d7rf"),
        ("good.org⧸.evil.org", "good.org\\u29f8.evil.org"),
        ("c꞉x", "c\\ua789x"),
        ("a ᐸ b ❯ c", "a \\u1438 b \\u276f c"),
        ("itʼs", "it\\u02bcs"),
        ("x ￨ y", "x \\uffe8 y"),
        ("∼/x", "\\u223c/x"),
        ("Ɩs", "\\u0196s"),
        ("→ ✓ ½°", "→ ✓ \\xbd°"),
        ("한국어", "한국어"),
        ("cafe\u0301", "cafe\u0301"),
        ("नमस्ते", "नमस्ते"),
        ("привет мир", "привет мир"),
        ("καλημέρα", "καλημέρα"),
        ("žluťoučký kůň", "žluťoučký kůň"),
        ("日本語 text", "日本語 text"),
        ("日本語text", "日本語text"),
        ("🎉", "🎉"),
        ("naïve café", "naïve café"),
    ],
)
def test_hidden_acting_or_imitating_characters_are_escaped(text: str, shown: str) -> None:
    assert make_visible(text) == shown
    assert has_disguise(text) is (shown != text and text != "a\tb")


@given(st.text())
def test_no_control_character_remains(text: str) -> None:
    assert all(line.isprintable() for line in make_visible(text).split("\n"))


@given(st.text())
def test_only_plain_characters_are_added(text: str) -> None:
    assert all(char.isascii() or char in text for char in make_visible(text))


@given(st.text(st.characters(min_codepoint=32, max_codepoint=126)))
def test_plain_text_is_unchanged(text: str) -> None:
    assert make_visible(text) == text
    assert not has_disguise(text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a", "a"),
        ("a\n\n\nb", "a\n\n\nb"),
        ("a\n\n\n\nb", "a\n[... 3 blank lines]\nb"),
        ("a" + "\n" * 41 + "b", "a\n[... 40 blank lines]\nb"),
        ("\n" * 41 + "b", "[... 41 blank lines]\nb"),
        ("a" + "\n" * 41, "a\n[... 41 blank lines]"),
        ("a\n  \n \n    \nb", "a\n[... 3 blank lines]\nb"),
        ("a" + " " * 20 + "b", "a" + " " * 20 + "b"),
        ("a" + " " * 21 + "b", "a [... 21 blanks] b"),
        (" " * 500 + "b", " [... 500 blanks] b"),
    ],
)
def test_long_runs_of_blanks_are_replaced_by_a_count(text: str, shown: str) -> None:
    assert fold_blanks(text) == shown


@given(st.text(st.sampled_from("x \n")))
def test_folding_keeps_all_visible_text(text: str) -> None:
    assert fold_blanks(text).count("x") == text.count("x")
    assert "\n\n\n\n" not in fold_blanks(text)
