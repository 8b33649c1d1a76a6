"""Session keys: the documented tables, isolation, odd ids, and the owner of a lane."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.gateway import (
    Platform,
    SessionSource,
    build_session_key,
    is_shared_multi_user_session,
    lane_owner,
)
from hermes.state.owner import EVERYBODY, TERMINAL


def source(platform: str, chat_type: str = "dm", chat: str = "", **more: str) -> SessionSource:
    return SessionSource(Platform(platform), chat, chat_type=chat_type, **more)  # type: ignore[arg-type]


DIRECT_MESSAGES = [
    (source("telegram", chat="12345"), "agent:main:telegram:dm:12345"),
    (source("discord", chat="12345"), "agent:main:discord:dm:12345"),
    (source("telegram", chat="12345", thread_id="thread_678"), "agent:main:telegram:dm:12345:thread_678"),
    (source("signal", user_id="user_abc"), "agent:main:signal:dm:user_abc"),
    (source("signal", user_id="a", user_id_alt="uuid"), "agent:main:signal:dm:uuid"),
    (source("signal", user_id="user_abc", thread_id="t"), "agent:main:signal:dm:user_abc:t"),
    (source("telegram", thread_id="t"), "agent:main:telegram:dm:t"),
    (source("telegram"), "agent:main:telegram:dm"),
    (source("whatsapp", chat="15551234567@s.whatsapp.net"), "agent:main:whatsapp:dm:15551234567"),
    (source("whatsapp", chat="15551234567:47@s.whatsapp.net"), "agent:main:whatsapp:dm:15551234567"),
    (source("whatsapp", chat="+15551234567"), "agent:main:whatsapp:dm:15551234567"),
    (source("whatsapp", user_id="15551234567@s.whatsapp.net"), "agent:main:whatsapp:dm:15551234567"),
    (source("telegram", chat="1", user_id="u"), "agent:main:telegram:dm:1"),
]


@pytest.mark.parametrize(("message", "key"), DIRECT_MESSAGES)
def test_key_of_a_direct_message(message: SessionSource, key: str) -> None:
    assert build_session_key(message) == key


@pytest.mark.parametrize(("message", "key"), DIRECT_MESSAGES)
def test_flags_do_not_change_the_key_of_a_direct_message(message: SessionSource, key: str) -> None:
    for group, thread in product([True, False], repeat=2):
        assert build_session_key(message, group, thread) == key


GROUPS = [
    (source("telegram", "group", "-10012345"), {}, "agent:main:telegram:group:-10012345"),
    (source("telegram", "group", "-10012345", user_id="user_abc"), {}, "agent:main:telegram:group:-10012345:user_abc"),
    (
        source("telegram", "group", "-10012345", user_id="user_abc"),
        {"group_sessions_per_user": False},
        "agent:main:telegram:group:-10012345",
    ),
    (
        source("discord", "group", "12345", user_id="user_abc", thread_id="thread_678"),
        {},
        "agent:main:discord:group:12345:thread_678",
    ),
    (
        source("discord", "group", "12345", user_id="user_abc", thread_id="thread_678"),
        {"thread_sessions_per_user": True},
        "agent:main:discord:group:12345:thread_678:user_abc",
    ),
    (
        source("discord", "group", "12345", user_id="user_abc", thread_id="thread_678"),
        {"group_sessions_per_user": False, "thread_sessions_per_user": True},
        "agent:main:discord:group:12345:thread_678:user_abc",
    ),
    (source("slack", "channel", "C12345"), {}, "agent:main:slack:channel:C12345"),
    (source("slack", "channel", "C12345", user_id="U1"), {}, "agent:main:slack:channel:C12345:U1"),
    (source("discord", "thread", "9", user_id="U1", thread_id="9"), {}, "agent:main:discord:thread:9:9"),
    (
        source("whatsapp", "group", "120363@g.us", user_id="15551234567@s.whatsapp.net"),
        {},
        "agent:main:whatsapp:group:120363:15551234567",
    ),
    (
        source("whatsapp", "group", "12345-678@g.us", user_id="15551234567:3@s.whatsapp.net"),
        {},
        "agent:main:whatsapp:group:12345-678:15551234567",
    ),
    (source("signal", "group", "g", user_id="+49", user_id_alt="uuid"), {}, "agent:main:signal:group:g:uuid"),
    (source("telegram", "group", user_id="u"), {}, "agent:main:telegram:group:u"),
    (source("telegram", "group"), {}, "agent:main:telegram:group"),
    (source("telegram", "forum", "5", user_id="u"), {}, "agent:main:telegram:forum:5:u"),
]


@pytest.mark.parametrize(("message", "flags", "key"), GROUPS)
def test_key_of_a_group_message(message: SessionSource, flags: dict[str, bool], key: str) -> None:
    assert build_session_key(message, **flags) == key


@pytest.mark.parametrize(
    ("chat_type", "thread", "group_flag", "thread_flag", "is_shared"),
    [
        ("dm", None, True, False, False),
        ("dm", None, False, False, False),
        ("dm", "t", True, True, False),
        ("dm", "t", False, False, False),
        ("group", None, True, False, False),
        ("group", None, False, False, True),
        ("channel", None, True, True, False),
        ("channel", None, False, True, True),
        ("group", "t", True, False, True),
        ("group", "t", True, True, False),
        ("group", "t", False, False, True),
        ("group", "t", False, True, False),
        ("thread", "t", True, False, True),
    ],
)
def test_who_shares_a_session(
    chat_type: str, thread: str | None, group_flag: bool, thread_flag: bool, is_shared: bool
) -> None:
    message = SessionSource(Platform.DISCORD, "c", chat_type=chat_type, user_id="u", thread_id=thread)
    flags = {"group_sessions_per_user": group_flag, "thread_sessions_per_user": thread_flag}
    assert is_shared_multi_user_session(message, **flags) is is_shared


IDS = st.none() | st.sampled_from(["", "a", "b", "a:b", "%", "a%3Ab", " "]) | st.text(max_size=6)


@given(chat=IDS, thread=IDS, alice=IDS, bob=IDS, kind=st.sampled_from(["group", "channel", "thread"]), data=st.data())
def test_key_and_shared_always_agree(
    chat: str | None, thread: str | None, alice: str | None, bob: str | None, kind: str, data: st.DataObject
) -> None:
    flags = {
        "group_sessions_per_user": data.draw(st.booleans()),
        "thread_sessions_per_user": data.draw(st.booleans()),
    }
    first = SessionSource(Platform.SLACK, chat or "", chat_type=kind, thread_id=thread, user_id=alice)
    second = SessionSource(Platform.SLACK, chat or "", chat_type=kind, thread_id=thread, user_id=bob)
    have_one_key = build_session_key(first, **flags) == build_session_key(second, **flags)
    is_shared = is_shared_multi_user_session(first, **flags)
    if alice and bob and alice != bob:
        assert have_one_key is is_shared
    if not alice:
        assert is_shared


@given(
    first=st.tuples(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8)),
    second=st.tuples(st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8), st.text(min_size=1, max_size=8)),
)
def test_different_ids_never_give_one_key(first: tuple[str, str, str], second: tuple[str, str, str]) -> None:
    def key(ids: tuple[str, str, str]) -> str:
        message = SessionSource(Platform.MATRIX, ids[0], chat_type="group", thread_id=ids[1], user_id=ids[2])
        return build_session_key(message, thread_sessions_per_user=True)

    assert (key(first) == key(second)) is (first == second)


def test_colons_inside_ids_are_unambiguous() -> None:
    one = build_session_key(source("matrix", "group", "a:b", thread_id="c"))
    other = build_session_key(source("matrix", "group", "a", thread_id="b:c"))
    assert one == "agent:main:matrix:group:a%3Ab:c"
    assert other == "agent:main:matrix:group:a:b%3Ac"


@pytest.mark.parametrize("odd", ["x" * 10_240, "a\x00b", "\n", "\ud800", "\u202e", "１２３", "\U0001f600" * 3000])
@pytest.mark.parametrize("platform", ["telegram", "whatsapp", "signal"])
def test_odd_ids_give_a_stable_short_key(platform: str, odd: str) -> None:
    message = SessionSource(Platform(platform), odd, chat_type="group", user_id=odd, thread_id=odd)
    key = build_session_key(message, thread_sessions_per_user=True)
    assert key == build_session_key(message, thread_sessions_per_user=True)
    assert len(key) < 600
    assert key.isprintable()
    assert key.startswith(f"agent:main:{platform}:group:")


def test_long_ids_with_the_same_beginning_give_different_keys() -> None:
    assert build_session_key(source("slack", chat="x" * 9000)) != build_session_key(source("slack", chat="x" * 9001))


@pytest.mark.parametrize("odd", ["a_b", "a b", "@", ":", "+", "@lid", "１２３", "a/../b", "x" * 5000])
def test_odd_whatsapp_id_gives_a_key(odd: str) -> None:
    assert build_session_key(source("whatsapp", chat=odd)).startswith("agent:main:whatsapp:dm:")


@pytest.fixture
def whatsapp_home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    folder = tmp_path / "whatsapp" / "session"
    folder.mkdir(parents=True)
    return folder


def test_linked_id_and_number_have_one_key_and_one_owner(whatsapp_home: Path) -> None:
    (whatsapp_home / "lid-mapping-999888777666555.json").write_text('"15551234567"')
    (whatsapp_home / "lid-mapping-15551234567_reverse.json").write_text('"999888777666555"')
    forms = ["15551234567@s.whatsapp.net", "999888777666555@lid", "+15551234567", "999888777666555:2@lid"]
    keys = {build_session_key(source("whatsapp", chat=form)) for form in forms}
    assert keys == {"agent:main:whatsapp:dm:15551234567"}
    owners = {lane_owner(source("whatsapp", chat="x", user_id=form), "k", is_shared=False).stored for form in forms}
    assert owners == {"whatsapp:15551234567"}


def test_unmapped_linked_id_is_not_the_owner_of_a_number() -> None:
    number = lane_owner(source("whatsapp", user_id="15551234567@s.whatsapp.net"), "k", is_shared=False)
    linked = lane_owner(source("whatsapp", user_id="15551234567@lid"), "k", is_shared=False)
    assert number != linked


@pytest.mark.parametrize(
    ("message", "is_shared", "owner"),
    [
        (source("telegram", chat="1", user_id="7"), False, "telegram:7"),
        (source("signal", chat="1", user_id="7", user_id_alt="uuid"), False, "signal:uuid"),
        (source("telegram", "group", "1", user_id="7"), True, "KEY"),
        (source("telegram", chat="1"), False, "KEY"),
        (source("telegram"), False, "KEY"),
        (source("telegram", chat="1", user_id="x" * 10_240), False, "KEY"),
        (source("telegram", chat="1", user_id="a\x00"), False, "KEY"),
    ],
)
def test_owner_of_a_lane(message: SessionSource, is_shared: bool, owner: str) -> None:
    assert lane_owner(message, "KEY", is_shared=is_shared).stored == owner


@given(user=IDS, alt=IDS, chat=IDS, shared=st.booleans())
def test_no_source_is_owned_by_the_terminal_or_everybody(
    user: str | None, alt: str | None, chat: str | None, shared: bool
) -> None:
    message = SessionSource(Platform.TELEGRAM, chat or "", user_id=user, user_id_alt=alt)
    owner = lane_owner(message, build_session_key(message), is_shared=shared)
    assert owner not in (TERMINAL, EVERYBODY)
    assert owner.stored
