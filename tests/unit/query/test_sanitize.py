"""Two documented helpers of earlier versions."""

from __future__ import annotations

import pytest

from hermes_state import SessionDB


@pytest.mark.parametrize(
    ("query", "cleaned"),
    [
        ("hello world", "hello world"),
        ("C++", "C"),
        ('"unterminated', "unterminated"),
        ("(problem", "problem"),
        ("{test}", "test"),
        ("hello AND", "hello"),
        ("OR world", "world"),
        ("NOT foo", "foo"),
        ("and", ""),
        ("***", ""),
        ("", ""),
        ("hello or not", "hello or"),
        ("AND AND foo", "AND foo"),
        ("a AND OR b", "a AND OR b"),
        ("deploy*", "deploy*"),
        ("de*ploy**", "de*ploy*"),
        ("* foo", "foo"),
        ("foo *bar", "foo bar"),
        ("TODO: fix", "TODO  fix"),
        ("error:timeout", "error timeout"),
        ("x^2", "x 2"),
        ("chat-send", '"chat-send"'),
        ("P2.2", '"P2.2"'),
        ("my-app.config.ts", '"my-app.config.ts"'),
        ("sp_new", '"sp_new"'),
        ("chat-send*", '"chat-send"*'),
        ('"chat-send"', '"chat-send"'),
        ('"my chat-send thing"', '"my chat-send thing"'),
        ('"exact phrase" OR chat-send', '"exact phrase" OR "chat-send"'),
        ('"a" "b', '"a"  b'),
        ("NEAR(foo bar)", "NEAR foo bar"),
        ('""', '""'),
        ("foo-", "foo-"),
        ("-foo", "-foo"),
        ("foo--bar", "foo--bar"),
        ("deploy-*", "deploy-*"),
        ("what's", "what's"),
        ("a/b", "a/b"),
        ("foo,bar", "foo,bar"),
        ("foo?", "foo?"),
        ("hello!", "hello!"),
        ("hello;", "hello;"),
        ("hello. world", "hello. world"),
        ("50%", "50%"),
        ("#123", "#123"),
        ("$HOME", "$HOME"),
        ("[x]", "[x]"),
        ("a=b", "a=b"),
        ("x<y", "x<y"),
        ("foo & bar", "foo & bar"),
        ("foo@bar.com", 'foo@"bar.com"'),
        ("http://x.com/a-b", 'http //"x.com"/"a-b"'),
        ("~/.hermes/state.db", '~/.hermes/"state.db"'),
        ("  hello  ", "hello"),
        ("hello AND world", "hello AND world"),
        ("hello or world", "hello or world"),
        ("Or hello", "hello"),
        ("hello nOt", "hello"),
        ("ORwell", "ORwell"),
        ("hello band", "hello band"),
        ("größe-maß", '"größe-maß"'),
        ("a-b-c", '"a-b-c"'),
        ("a.b_c-d", '"a.b_c-d"'),
        ("a..b", "a..b"),
        ("{a}:(b)^+", "a   b"),
        ("记忆断裂", "记忆断裂"),
    ],
)
def test_query_is_made_fit_for_fts5(query: str, cleaned: str) -> None:
    assert SessionDB._sanitize_fts5_query(query) == cleaned


@pytest.mark.parametrize("query", ['"a" \0Q0\0 "b"', "\0", "\0Q0\0", '"x"\0', "\0" * 9])
def test_a_nul_is_no_error(query: str) -> None:
    assert "\0" not in SessionDB._sanitize_fts5_query(query)


@pytest.mark.parametrize(
    ("first", "last"),
    [
        (0x4E00, 0x9FFF),
        (0x3400, 0x4DBF),
        (0x20000, 0x2A6DF),
        (0x3000, 0x303F),
        (0x3040, 0x309F),
        (0x30A0, 0x30FF),
        (0xAC00, 0xD7AF),
    ],
)
def test_range_is_cjk(first: int, last: int) -> None:
    assert SessionDB._contains_cjk(chr(first))
    assert SessionDB._contains_cjk(f"latin {chr((first + last) // 2)} latin")
    assert SessionDB._contains_cjk(chr(last))


@pytest.mark.parametrize(
    "code",
    [
        0x20,
        0x41,
        0xE9,
        0x2FFF,
        0x3100,
        0x33FF,
        0x4DC0,
        0x4DFF,
        0xA000,
        0xABFF,
        0xD7B0,
        0xE01,
        0x1FFFF,
        0x2A6E0,
        0x2A700,
    ],
)
def test_character_outside_the_ranges_is_not_cjk(code: int) -> None:
    assert not SessionDB._contains_cjk(chr(code))


@pytest.mark.parametrize("text", ["", "hello", "żółć", "привет", "ภาษาไทย", "\uf900", "ｶﾒﾗ", "😀", "\ud800"])
def test_text_of_another_script_is_not_cjk(text: str) -> None:
    assert not SessionDB._contains_cjk(text)


@pytest.mark.parametrize(
    "text", ["记忆断裂", "通信", "안녕", "世界", "こんにちは", "カタカナ", "Agent通信", "、", "100%完成", "〇"]
)
def test_text_with_a_cjk_character_is_recognized(text: str) -> None:
    assert SessionDB._contains_cjk(text)
