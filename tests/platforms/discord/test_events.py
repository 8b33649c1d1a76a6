"""Reading the messages of Discord, whatever they contain."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hermes.platforms.discord.events import DiscordMessage, as_command, read_message, snowflake, without_mention

ANYTHING = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
AUTHOR = {"id": "7", "username": "alice"}
GOOD: dict[str, Any] = {"id": "5", "channel_id": "6", "type": 0, "content": "hi", "author": AUTHOR}
NAMES = [
    "id",
    "channel_id",
    "type",
    "content",
    "author",
    "member",
    "mentions",
    "mention_roles",
    "attachments",
    "webhook_id",
    "referenced_message",
    "message_reference",
    "message_snapshots",
    "sticker_items",
    "poll",
]


@settings(max_examples=300, deadline=None)
@given(changes=st.dictionaries(st.sampled_from(NAMES), ANYTHING, max_size=5), kind=st.sampled_from([0, 19]))
def test_every_event_is_a_message_or_none_or_malformed(changes: dict[str, Any], kind: int) -> None:
    try:
        message = read_message({**GOOD, "type": kind, **changes}, "100")
    except ValueError:
        return
    assert message is None or isinstance(message, DiscordMessage)


@settings(max_examples=300, deadline=None)
@given(
    inner=st.dictionaries(st.sampled_from([*NAMES, "roles", "nick", "url", "size", "filename", "question"]), ANYTHING)
)
def test_nested_objects_may_contain_anything(inner: dict[str, Any]) -> None:
    data = {**GOOD, "member": inner, "poll": inner, "mentions": [inner], "attachments": [inner], "type": 19}
    data |= {"referenced_message": inner, "message_reference": {"type": 1}, "message_snapshots": [{"message": inner}]}
    assert isinstance(read_message(data, "100"), DiscordMessage)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("<@100> hello", "hello"),
        ("<@!100>, hello", "hello"),
        ("hello <@100>", "hello"),
        ("<@&9> <@100> hello <@100>", "hello"),
        ("tell <@100> about <@7>", "tell <@100> about <@7>"),
        ("<@1000> hello", "<@1000> hello"),
        ("<@100>", ""),
    ],
)
def test_mention_of_the_bot_is_removed_at_both_ends(text: str, expected: str) -> None:
    assert without_mention(text, "100", {"9"}) == expected


@pytest.mark.parametrize("value", ["", "0", "-5", "５", "1" * 21, str(2**63), True, 1.5, None, "12a", " 1"])
def test_other_values_are_no_ids(value: object) -> None:
    assert snowflake(value) is None


def test_empty_prefix_changes_no_text() -> None:
    assert as_command("!new", "") == "!new"
