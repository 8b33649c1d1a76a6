"""The data model: fields, defaults, JSON shapes, round trips, and the platforms of plugins."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.errors import InvalidValue
from hermes.gateway import MessageEvent, MessageType, Platform, SessionEntry, SessionSource
from hermes.gateway.entry import COUNTERS, FLAGS

TIME = datetime(2026, 1, 2, 3, 4, 5, 6)  # noqa: DTZ001  entries have local times


@pytest.fixture
def plugin() -> Iterator[Platform]:
    yield Platform.register("carrier_pigeon", pii_safe=True)
    Platform.unregister("carrier_pigeon")


def test_defaults_of_a_source() -> None:
    source = SessionSource(platform=Platform.TELEGRAM, chat_id="1")
    assert (source.chat_type, source.is_bot, source.role_authorized) == ("dm", False, False)
    rest = {"platform", "chat_id", "chat_type", "is_bot", "role_authorized"}
    assert all(getattr(source, each.name) is None for each in dataclasses.fields(source) if each.name not in rest)


def test_source_is_frozen() -> None:
    source = SessionSource(Platform.TELEGRAM, "1")
    with pytest.raises(dataclasses.FrozenInstanceError):
        source.chat_id = "2"  # type: ignore[misc]


@pytest.mark.parametrize(
    ("fields", "description"),
    [
        ({"user_name": "Alice", "user_id": "7"}, "DM with Alice"),
        ({"user_id": "7"}, "DM with 7"),
        ({}, "DM with user"),
        ({"chat_type": "group", "chat_name": "My Group", "thread_id": "12345"}, "group: My Group, thread: 12345"),
        ({"chat_type": "group"}, "group: c1"),
        ({"chat_type": "channel", "chat_name": "news"}, "channel: news"),
        ({"chat_type": "thread", "chat_name": "talk", "thread_id": "9"}, "talk, thread: 9"),
        ({"chat_type": "forum"}, "c1"),
        ({"user_name": "Alice", "thread_id": "9"}, "DM with Alice, thread: 9"),
    ],
)
def test_description_of_a_source(fields: dict[str, str], description: str) -> None:
    assert SessionSource(Platform.SLACK, "c1", **fields).description == description  # type: ignore[arg-type]


def test_description_of_the_local_platform_is_the_terminal() -> None:
    assert "terminal" in SessionSource(Platform.LOCAL, "x", user_name="Alice").description


def test_json_of_a_plain_source_has_the_documented_keys_in_order() -> None:
    assert list(SessionSource(Platform.TELEGRAM, "1").to_dict().items()) == [
        ("platform", "telegram"),
        ("chat_id", "1"),
        ("chat_name", None),
        ("chat_type", "dm"),
        ("user_id", None),
        ("user_name", None),
        ("thread_id", None),
        ("chat_topic", None),
    ]


def test_json_of_a_full_source_has_every_field() -> None:
    source = SessionSource(
        Platform.DISCORD, "1", "n", "group", "u", "un", "t", "top", "ua", "ca", True, "g", "p", "m", True
    )
    assert set(source.to_dict()) == {each.name for each in dataclasses.fields(SessionSource)}
    assert SessionSource.from_dict(json.loads(json.dumps(source.to_dict()))) == source


def test_numbers_as_ids_become_text() -> None:
    source = SessionSource.from_dict({"platform": "telegram", "chat_id": -100, "user_id": 7, "chat_type": None})
    assert (source.chat_id, source.user_id, source.chat_type) == ("-100", "7", "dm")


def test_source_on_an_unknown_platform_raises_value_error() -> None:
    with pytest.raises(ValueError, match="nowhere"):
        SessionSource.from_dict({"platform": "nowhere", "chat_id": "1"})


TEXTS = st.none() | st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=20)
SOURCES = st.builds(
    SessionSource,
    platform=st.sampled_from(list(Platform)),
    chat_id=st.text(st.characters(exclude_categories=["Cs"]), max_size=20),
    chat_type=st.sampled_from(["dm", "group", "channel", "thread", "forum"]),
    is_bot=st.booleans(),
    role_authorized=st.booleans(),
    **{
        each.name: TEXTS
        for each in dataclasses.fields(SessionSource)
        if each.name not in ("platform", "chat_id", "chat_type", "is_bot", "role_authorized")
    },
)
NUMBERS = st.integers(0, 2**53)
ENTRIES = st.builds(
    SessionEntry,
    session_key=st.text(min_size=1, max_size=20),
    session_id=st.text(min_size=1, max_size=20),
    created_at=st.datetimes(),
    updated_at=st.datetimes(),
    origin=st.none() | SOURCES,
    display_name=TEXTS,
    platform=st.none() | st.sampled_from(list(Platform)),
    chat_type=st.sampled_from(["dm", "group"]),
    estimated_cost_usd=st.floats(0, 1e6),
    cost_status=st.sampled_from(["unknown", "exact"]),
    auto_reset_reason=st.sampled_from([None, "idle", "daily", "suspended"]),
    resume_reason=st.sampled_from([None, "restart_timeout", "shutdown_timeout", "restart_interrupted"]),
    last_resume_marked_at=st.none() | st.datetimes(),
    **{name: st.booleans() for name in FLAGS},
    **dict.fromkeys((*COUNTERS, "last_prompt_tokens"), NUMBERS),
)


@given(SOURCES)
def test_every_source_round_trips_through_json(source: SessionSource) -> None:
    assert SessionSource.from_dict(json.loads(json.dumps(source.to_dict()))) == source


@given(ENTRIES)
def test_every_entry_round_trips_through_json(entry: SessionEntry) -> None:
    data = json.loads(json.dumps(entry.to_dict()))
    assert SessionEntry.from_dict(data) == entry
    assert SessionEntry.from_stored(data) == entry


def test_entry_with_every_field_set_round_trips() -> None:
    values: dict[str, Any] = {}
    for each in dataclasses.fields(SessionEntry):
        default = each.default
        values[each.name] = True if default is False else 7 if default == 0 else "x"
    values |= {"created_at": TIME, "updated_at": TIME, "last_resume_marked_at": TIME, "platform": Platform.SLACK}
    values |= {"origin": SessionSource(Platform.SLACK, "1"), "estimated_cost_usd": 1.5}
    entry = SessionEntry(**values)
    assert SessionEntry.from_dict(entry.to_dict()) == entry
    assert set(entry.to_dict()) == set(values)


def test_json_of_an_entry_has_the_documented_keys_in_order() -> None:
    entry = SessionEntry("k", "s", TIME, TIME.replace(microsecond=0))
    assert list(entry.to_dict().items()) == [
        ("session_key", "k"),
        ("session_id", "s"),
        ("created_at", "2026-01-02T03:04:05.000006"),
        ("updated_at", "2026-01-02T03:04:05"),
        ("display_name", None),
        ("platform", None),
        ("chat_type", "dm"),
        ("input_tokens", 0),
        ("output_tokens", 0),
        ("cache_read_tokens", 0),
        ("cache_write_tokens", 0),
        ("total_tokens", 0),
        ("last_prompt_tokens", 0),
        ("estimated_cost_usd", 0.0),
        ("cost_status", "unknown"),
        ("expiry_finalized", False),
        ("suspended", False),
        ("resume_pending", False),
        ("resume_reason", None),
        ("last_resume_marked_at", None),
        ("is_fresh_reset", False),
        ("was_auto_reset", False),
        ("auto_reset_reason", None),
        ("reset_had_activity", False),
    ]


PLAIN = {
    "session_key": "k",
    "session_id": "s",
    "created_at": "2026-01-02T03:04:05",
    "updated_at": "2026-01-02T03:04:05",
}


def test_missing_fields_of_an_entry_have_defaults() -> None:
    entry = SessionEntry.from_dict(PLAIN)
    assert entry == SessionEntry("k", "s", TIME.replace(microsecond=0), TIME.replace(microsecond=0))


@pytest.mark.parametrize(
    ("row", "field", "value"),
    [
        ({"memory_flushed": True}, "expiry_finalized", True),
        ({"memory_flushed": True, "expiry_finalized": False}, "expiry_finalized", False),
        ({"last_resume_marked_at": "yesterday"}, "last_resume_marked_at", None),
        ({"last_resume_marked_at": 5}, "last_resume_marked_at", None),
        ({"platform": "nowhere"}, "platform", None),
        ({"input_tokens": None}, "input_tokens", 0),
        ({"chat_type": None}, "chat_type", "dm"),
    ],
)
def test_tolerated_values_of_an_entry(row: dict[str, Any], field: str, value: object) -> None:
    assert getattr(SessionEntry.from_dict({**PLAIN, **row}), field) == value


@pytest.mark.parametrize(
    "row",
    [
        {"created_at": None},
        {"created_at": "yesterday"},
        {"updated_at": 5},
        {"session_id": ""},
        {"session_id": 5},
        {"input_tokens": "many"},
        {"input_tokens": [1]},
        {"origin": {"platform": "nowhere", "chat_id": "1"}},
        {"origin": {"platform": "telegram"}},
    ],
)
def test_bad_entry_raises_value_error(row: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        SessionEntry.from_dict({**PLAIN, **row})


@pytest.mark.parametrize("row", [[], "x", None, 5, {}, {**PLAIN, "origin": "x"}, {**PLAIN, "created_at": None}])
def test_bad_stored_row_raises_invalid_value(row: Any) -> None:
    with pytest.raises(InvalidValue):
        SessionEntry.from_stored(row)


def test_row_of_an_absent_plugin_is_kept() -> None:
    row = {**PLAIN, "platform": "gone_plugin", "origin": {"platform": "gone_plugin", "chat_id": "1"}}
    entry = SessionEntry.from_stored(row)
    assert entry.platform is not None
    assert not entry.platform.is_known
    assert entry.origin is not None
    assert entry.origin.platform is entry.platform
    assert entry.to_dict()["origin"]["platform"] == "gone_plugin"


@pytest.mark.parametrize(
    "name", ["telegram", "discord", "slack", "signal", "whatsapp", "matrix", "local", "feishu", "email", "webhook"]
)
def test_documented_platform_is_known(name: str) -> None:
    assert Platform(name).value == name
    assert Platform(name).is_known


def test_registered_platform_is_a_platform(plugin: Platform) -> None:
    assert Platform("carrier_pigeon") is plugin
    assert plugin.is_known
    assert SessionSource.from_dict({"platform": "carrier_pigeon", "chat_id": "1"}).platform is plugin
    assert plugin not in list(Platform)
    assert Platform.register("carrier_pigeon") is plugin


def test_unregistered_platform_is_unknown_but_its_rows_stay(plugin: Platform) -> None:
    Platform.unregister("carrier_pigeon")
    with pytest.raises(ValueError, match="carrier_pigeon"):
        Platform("carrier_pigeon")
    assert Platform.from_stored("carrier_pigeon") is plugin


@pytest.mark.parametrize("name", ["cli", "tui", "terminal", "telegram", "", "a:b", "A", "x" * 65, "a b"])
def test_bad_name_of_a_plugin_platform_is_refused(name: str) -> None:
    with pytest.raises(InvalidValue):
        Platform.register(name)


@pytest.mark.parametrize(
    ("text", "is_command", "name", "arguments"),
    [
        ("/new", True, "new", ""),
        ("/New@bot a b", True, "new", "a b"),
        ("/", True, "", ""),
        ("/usr/bin x", True, None, "x"),
        ("hi", False, None, "hi"),
        (" /x", False, None, " /x"),
        ("/queue\nfoo bar", True, "queue", "foo bar"),
        ("/q  a—b ——c –d", True, "q", "a--b --c -d"),
    ],
)
def test_command_of_a_message(text: str, is_command: bool, name: str | None, arguments: str) -> None:
    event = MessageEvent(text=text)
    assert (event.is_command(), event.get_command(), event.get_command_args()) == (is_command, name, arguments)


def test_defaults_of_a_message() -> None:
    event = MessageEvent(text="hi")
    assert event.message_type is MessageType.TEXT
    assert (event.media_urls, event.media_types, event.internal, event.source) == ([], [], False, None)
    assert event.timestamp.tzinfo is None
