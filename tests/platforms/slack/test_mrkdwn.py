"""Markdown as Slack shows it, and messages of people as the model reads them."""

from __future__ import annotations

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hermes.platforms.base.splitting import split_text
from hermes.platforms.slack.adapter import TEXT_LIMIT
from hermes.platforms.slack.mrkdwn import escape, mentioned_users, mentions, shown_length, to_mrkdwn, to_plain

MOST = 4000
"""The longest text that Slack changes."""


@pytest.mark.parametrize(
    ("markdown", "shown"),
    [
        ("plain & simple", "plain &amp; simple"),
        ("**bold** and __bold__", "*bold* and *bold*"),
        ("*italic* and _italic_", "_italic_ and _italic_"),
        ("***both***", "*_both_*"),
        ("~~gone~~", "~gone~"),
        ("# Title", "*Title*"),
        ("### **Title** ###", "*Title*"),
        ("- one\n* two\n+ three", "• one\n• two\n• three"),
        ("  - inner", "  • inner"),
        ("> quoted\n>> twice", "> quoted\n> twice"),
        ("[a page](https://x.example/?a=1&b=2)", "<https://x.example/?a=1&amp;b=2|a page>"),
        ("![a picture](https://x.example/a_b__c__d.png)", "<https://x.example/a_b__c__d.png|a picture>"),
        ("[a](javascript:alert)", "[a](javascript:alert)"),
        ("[a](https://x.example|b)", "[a](https://x.example|b)"),
        ("2 * 3 * 4 and 2*3*4", "2 * 3 * 4 and 2*3*4"),
        ("snake__case__name", "snake__case__name"),
        ("`**code** <b>`", "`**code** &lt;b&gt;`"),
        ("```python\nif a < b:\n    **x**\n```", "```\nif a &lt; b:\n    **x**\n```"),
        ("~~~\na\n```\nb\n~~~", "```\na\n``\u200b`\nb\n```"),
        ("````\n```\n````\nafter", "```\n``\u200b`\n```\nafter"),
        ("before\n```\nopen", "before\n```\nopen\n```"),
        ("", ""),
    ],
)
def test_markdown_is_shown_as_it_is_meant(markdown: str, shown: str) -> None:
    assert to_mrkdwn(markdown) == shown


@pytest.mark.parametrize(
    "text",
    [
        "<!channel>",
        "<!here|here>",
        "<!everyone>",
        "<!subteam^S1>",
        "`<!channel>`",
        "```\n<!channel>\n```",
        "[x](https://a.example/<!channel>)",
        "[<!channel>](https://a.example)",
        "**<!channel>**",
        "&lt;!channel&gt;",
        "<\x00!channel>",
        "<\x01!channel>",
        "\x000\x00<!channel>",
        "<@U1<!channel>>",
        "<<@U1>!channel>",
        "> <!channel>",
        "# <!channel>",
        "<https://a.example|<!channel>",
    ],
)
def test_no_text_notifies_a_channel(text: str) -> None:
    assert "<!" not in to_mrkdwn(text)


@given(st.text(alphabet="<>!@#&;|`~*_[]()\n\x00\x01 U1ahttps:/.channelt0", max_size=80))
def test_no_text_gives_other_marks_than_mentions_of_users_and_links(text: str) -> None:
    for mark in re.findall(r"<([^>\n]*)", to_mrkdwn(text)):
        assert re.match(r"@[UW]|https?://|mailto:", mark), mark


@given(st.text(alphabet="<>&`~*_#-[]()\n U1abc!", max_size=400).map(lambda text: text * 40))
@example("~~~\n" * 2000)
def test_no_part_is_longer_than_slack_changes(text: str) -> None:
    for part in split_text(text, TEXT_LIMIT, shown_length):
        assert len(to_mrkdwn(part)) <= MOST


def test_mentions_of_users_stay_mentions_outside_of_code() -> None:
    assert to_mrkdwn("ask <@U123> or `<@U123>`") == "ask <@U123> or `&lt;@U123&gt;`"


@pytest.mark.parametrize(
    "text", ["**a" * 1300, "[" * 3900, "*" * 3900, "_a_" * 1300, "`" * 3900, "<@U" * 1300, "> " * 1900, "# " * 1900]
)
def test_hostile_text_is_converted(text: str) -> None:
    assert len(to_mrkdwn(text)) <= 4 * len(text)


@pytest.mark.parametrize(
    ("text", "read"),
    [
        ("<@UBOT> hello", "hello"),
        ("hello <@UBOT|hermes>", "hello"),
        ("ask <@U1>", "ask @Alice"),
        ("ask <@U2>", "ask @U2"),
        ("ask <@U2|bob>", "ask @bob"),
        ("in <#C1|general> and <#C2>", "in #general and #C2"),
        ("<!here> and <!subteam^S1|@team> and <!channel>", "@here and @team and @channel"),
        ("<https://a.example>", "https://a.example"),
        ("<https://a.example|a page>", "a page (https://a.example)"),
        ("<mailto:a@b.example|a@b.example>", "a@b.example"),
        ("a &lt; b &amp;&amp; c &gt; d &amp;lt;", "a < b && c > d &lt;"),
        ("a\x00b\ud800", "ab?"),
        ("<" * 50, "<" * 50),
    ],
)
def test_messages_are_read_as_people_see_them(text: str, read: str) -> None:
    assert to_plain(text, "UBOT", {"U1": "Alice"}) == read


def test_a_megabyte_is_read() -> None:
    assert len(to_plain("<@U1>" + "x<" * 500_000, "UBOT", {})) == 1_000_003


def test_mentioned_users_are_found_once_and_not_too_many() -> None:
    text = "<@U1> <@U2|b> <@U1> <#C1> <@U3>"
    assert mentioned_users(text, 20) == ["U1", "U2", "U3"]
    assert mentioned_users(text, 2) == ["U1", "U2"]
    assert mentions(text, "U2")
    assert not mentions(text, "")


def test_escaping_leaves_no_mark() -> None:
    assert escape("<!channel> & <@U1>") == "&lt;!channel&gt; &amp; &lt;@U1&gt;"
