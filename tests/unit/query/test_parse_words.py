"""Words of a query: typed, quoted, with stars, in any script, or without a letter."""

from __future__ import annotations

import pytest

from hermes.query.parse import parse
from tests.support.trees import tree_text


@pytest.mark.parametrize(
    ("typed", "tree"),
    [
        ("foo-bar", "foo_bar"),
        ("foo_bar", "foo_bar"),
        ("foo.bar", "foo_bar"),
        ("a/b", "a_b"),
        ("foo@bar.com", "foo_bar_com"),
        ("my-app.config.ts", "my_app_config_ts"),
        ("sp_new", "sp_new"),
        ("P2.2", "p2_2"),
        ("content:foo", "content_foo"),
        ("x^2", "x_2"),
        ("a=b", "a_b"),
        ("what's", "what_s"),
        ("foo,bar", "foo_bar"),
        ("foo?", "foo"),
        ("50%", "50"),
        ("#123", "123"),
        ("$HOME", "home"),
        ("[x]", "x"),
        ("{test}", "test"),
        ("foo--bar", "foo_bar"),
        ("--flag", "flag"),
        ("->x", "x"),
        ("foo-", "foo"),
        (r"C:\Users\bob", "c_users_bob"),
        ("~/.hermes/state.db", "hermes_state_db"),
        ("http://x.com/a-b?q=1", "http_x_com_a_b_q_1"),
        ("foo()", "foo"),
        ("foo(bar)", "foo_bar"),
        ("foo(bar", "foo_bar"),
        ("foo)", "foo"),
        (")foo(", "foo"),
        ("(foo(bar) baz)", "(foo_bar & baz)"),
        ("C++", "c_⧺"),
        ("c#", "c_♯"),
        ("C++11", "c_⧺_11"),
        ("de*ploy", "de_ploy"),
        ("ＡＢＣ", "abc"),
        ("Straße", "strasse"),
        ("café", "cafe"),
        ("👍🏽", "👍"),
        ("❤️", "❤"),
        ("€5", "€_5"),
    ],
)
def test_a_typed_word_is_the_phrase_of_its_words(typed: str, tree: str) -> None:
    assert tree_text(parse(typed).tree) == tree


@pytest.mark.parametrize(
    ("typed", "tree"),
    [
        ('"foo bar"', "foo_bar"),
        ('"foo"', "foo"),
        ('"foo bar"*', "foo_bar*"),
        ('"Foo,  Bar!"', "foo_bar"),
        ("“foo bar”", "foo_bar"),
        ("„foo bar“", "foo_bar"),
        ("«foo bar»", "foo_bar"),
        ('"++"', "*++*"),
        ('"a" "b', "(a & b)"),
        ('"foo bar', "(foo & bar)"),
        ('foo "', "foo"),
        ('foo""bar', "foo_bar"),
        ('"" foo', "foo"),
        ('"   " foo', "foo"),
        ('content:"foo bar"', "(content & foo_bar)"),
        ('"(a OR b)"', "a_or_b"),
        ('"a""b"', "(a & b)"),
        ('"-foo"', "foo"),
        ('"foo*"', "foo"),
        ("'foo bar'", "(foo & bar)"),
        ("“foo", "foo"),
    ],
)
def test_quoted_text_is_a_phrase(typed: str, tree: str) -> None:
    assert tree_text(parse(typed).tree) == tree


@pytest.mark.parametrize(
    ("typed", "tree"),
    [
        ("deploy*", "deploy*"),
        ("deploy**", "deploy*"),
        ("foo-ba*", "foo_ba*"),
        ("*ploy*", "*ploy*"),
        ("*ploy", "*ploy*"),
        ("**bold**", "*bold*"),
        ("*.py", "*.py*"),
        ("*a.b*", "*a.b*"),
        ("*Straße*", "*strasse*"),
        ("*", "***"),
        ("***", "*****"),
        ("* foo", "foo"),
        ("foo *", "foo"),
        ("foo *bar*", "(foo & *bar*)"),
        ("-*bar* foo", "(!*bar* & foo)"),
        ("-foo* bar", "(!foo* & bar)"),
        ("foo* OR bar*", "(foo* | bar*)"),
    ],
)
def test_stars_mean_prefixes_and_parts(typed: str, tree: str) -> None:
    assert tree_text(parse(typed).tree) == tree


@pytest.mark.parametrize(
    ("typed", "tree"),
    [
        ("世", "¦世"),
        ("世界", "世界"),
        ("世界地", "世界_界地"),
        ("世界*", "世界"),
        ("世*", "¦世"),
        ("世界 地図", "(世界 & 地図)"),
        ("世界 OR 地図", "(世界 | 地図)"),
        ("世界 NOT 地図", "(世界 & !地図)"),
        ('"世界 地図"', "世界_界地_地図"),
        ("Agent通信", "agent_通信"),
        ("通信agent", "通信_信_agent"),
        ("a世", "a_世*"),
        ("世a", "世_a"),
        ("第3章", "第_3_章*"),
        ("カメラ", "カメ_メラ"),
        ("ｶﾒﾗ", "カメ_メラ"),
        ("안녕", "안녕"),
        ("ไทย", "ไท_ทย"),
        ("*世*", "*世*"),
        ("世界、地図", "世界_界_地図"),
    ],
)
def test_runs_of_scripts_without_spaces_are_pairs(typed: str, tree: str) -> None:
    assert tree_text(parse(typed).tree) == tree


@pytest.mark.parametrize(
    ("typed", "tree"),
    [
        ("++", "*++*"),
        ("->", "*->*"),
        ("...", "*...*"),
        ("( )", "*( )*"),
        ("?  !", "*? !*"),
        ('"', '*"*'),
        ('""', '*""*'),
        ("-", "*-*"),
        ("foo ++", "foo"),
        ("++ foo", "foo"),
        ("foo OR ++", "foo"),
        ("foo -++", "foo"),
        ('foo "++"', "(foo & *++*)"),
        ("foo & bar", "(foo & bar)"),
        ("foo | bar", "(foo & bar)"),
        ("foo / bar", "(foo & bar)"),
    ],
)
def test_punctuation_is_searched_only_alone_or_quoted(typed: str, tree: str) -> None:
    assert tree_text(parse(typed).tree) == tree
