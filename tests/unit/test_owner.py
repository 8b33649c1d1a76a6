"""Owners: how they are made, and which ids are refused."""

from __future__ import annotations

import pytest

from hermes.errors import InvalidValue
from hermes.state.owner import (
    EVERYBODY,
    TERMINAL,
    Everybody,
    Owner,
    is_terminal_source,
    owner_column,
    owner_from_column,
    owner_of,
    owner_of_room,
    parse_asker,
)


def test_an_ordinary_owner_has_the_documented_form() -> None:
    assert owner_of("telegram", "42").stored == "telegram:42"
    assert owner_of("matrix", "@anna:example.org").stored == "matrix:@anna:example.org"


def test_the_terminal_is_stored_as_null() -> None:
    assert TERMINAL.stored is None
    assert owner_from_column(None) is TERMINAL
    assert owner_from_column("telegram:42") == owner_of("telegram", "42")


@pytest.mark.parametrize(
    "blank", [None, "", " ", "\t\n", "\u200b", "\u3164", "\u2800 \ufeff", "\u00a0", "\ufe0f", "\u202e", "\x00"]
)
def test_a_chat_without_a_user_is_refused(blank: str | None) -> None:
    with pytest.raises(InvalidValue):
        owner_of("telegram", blank)


@pytest.mark.parametrize(
    "claimed",
    ["cli", "tui", "CLI", " tui ", "ｔｕｉ", "ﬀcli"[1:], "Terminal", "everybody", "𝐜𝐥𝐢", "", " "],
)
def test_no_platform_can_claim_to_be_the_terminal(claimed: str) -> None:
    with pytest.raises(InvalidValue):
        owner_of(claimed, "42")


@pytest.mark.parametrize("claimed", ["tui\u200b", "c\u00adli", "\u2060cli", "tui\x00"])
def test_a_platform_with_invisible_characters_is_refused(claimed: str) -> None:
    with pytest.raises(InvalidValue):
        owner_of(claimed, "42")


def test_only_the_terminals_own_sources_are_the_terminals() -> None:
    assert [each for each in ("cli", "tui", "local", "telegram", "cron", "terminal") if is_terminal_source(each)] == [
        "cli",
        "tui",
    ]


def test_a_colon_does_not_move_a_user_to_another_platform() -> None:
    pairs = [("tele", "a:b"), ("tele:a", "b"), ("tele%3Aa", "b"), ("tele%253Aa", "b")]
    assert len({owner_of(*pair) for pair in pairs}) == len(pairs)


def test_no_user_is_a_room() -> None:
    room = owner_of_room("agent:main:telegram:group:-100")
    assert room.stored == "agent:main:telegram:group:-100"
    assert owner_of("agent", "main:telegram:group:-100") != room
    assert owner_column("agent", "main:telegram:group:-100") != room.stored


@pytest.mark.parametrize(
    "key",
    [
        "",
        " ",
        "telegram:42",
        "agent:main:telegram:dm",
        "agent:main:telegram:group:",
        "agent:main::group:1",
        "agent:main:tui:group:1",
        "agent:main:ＣＬＩ:group:1",
        "agent:main:telegram:group:\u200b",
        "agent:main:telegram:group:" + "1" * 1_000,
    ],
)
def test_a_key_that_names_no_room_is_refused(key: str) -> None:
    with pytest.raises(InvalidValue):
        owner_of_room(key)


@pytest.mark.parametrize(
    "spelling",
    [
        "+49 151 23456789",
        "4915123456789",
        "+49-151-23456789",
        "+49 (151) 234.567/89",
        "4915123456789@s.whatsapp.net",
        "4915123456789:12@s.whatsapp.net",
        "4915123456789_1:12@s.whatsapp.net",
        "4915123456789@c.us",
        "4915123456789@C.US",
        " 4915123456789 ",
        "４９１５１２３４５６７８９",
        "+49\u00a0151\u00a023456789",
    ],
)
def test_all_spellings_of_a_whatsapp_number_are_one_person(spelling: str) -> None:
    assert owner_of("whatsapp", spelling).stored == "whatsapp:4915123456789"


def test_a_whatsapp_number_that_hides_a_telephone_number_is_another_person_than_that_of_the_same_digits() -> None:
    hidden = owner_of("whatsapp", "4915123456789:3@LID")
    assert hidden == owner_of("whatsapp", "4915123456789@lid") != owner_of("whatsapp", "4915123456789")


def test_different_whatsapp_users_stay_apart() -> None:
    ids = [
        "4915123456789",
        "4915123456788",
        "4915123456789@elsewhere",
        "anna",
        "anna@s.whatsapp.net",
        "Anna",
        "49151x23456789",
    ]
    assert len({owner_of("whatsapp", each) for each in ids}) == len(ids)


@pytest.mark.parametrize("blank", ["+", "@s.whatsapp.net", ":12@s.whatsapp.net", "+@s.whatsapp.net", " - ", "()"])
def test_a_whatsapp_id_without_a_number_is_refused(blank: str) -> None:
    with pytest.raises(InvalidValue):
        owner_of("whatsapp", blank)


@pytest.mark.parametrize("group", ["4915123456789-1600000000@g.us", "120363000000000000@G.US", "status@broadcast"])
def test_a_whatsapp_group_is_not_a_person(group: str) -> None:
    with pytest.raises(InvalidValue, match="group"):
        owner_of("whatsapp", group)


def test_ids_of_other_platforms_are_never_made_alike() -> None:
    ids = ["1", "①", "１", "01", "+1", "a", "A", "é", "e\u0301", "ſ", "s", "ﬁ", "fi", "1@s.whatsapp.net"]
    assert len({owner_of("telegram", each) for each in ids}) == len(ids)


def test_blanks_around_an_id_make_no_other_person() -> None:
    assert owner_of("telegram", " 42\n") == owner_of(" telegram ", "42") == owner_of("telegram", "42")


@pytest.mark.parametrize("user_id", ["4\u200b2", "42\u202e", "4\x002", "4\n2", "4\ud8002", "42\u3164", "42\ufe0f"])
def test_an_id_with_invisible_characters_is_refused(user_id: str) -> None:
    with pytest.raises(InvalidValue):
        owner_of("telegram", user_id)


@pytest.mark.parametrize("platform", ["telegram", "whatsapp"])
def test_a_very_long_id_is_refused_and_none_is_cut(platform: str) -> None:
    assert owner_of("telegram", "1" * 255) != owner_of("telegram", "1" * 254)
    for user_id in ("1" * 256, "1" * 1_000_000, " +" * 1_000_000):
        with pytest.raises(InvalidValue):
            owner_of(platform, user_id)
    with pytest.raises(InvalidValue):
        owner_of("t" * 65, "42")


def test_an_owner_cannot_be_constructed_or_changed() -> None:
    with pytest.raises(TypeError):
        Owner(None)
    with pytest.raises(TypeError):
        Owner("telegram:42")
    with pytest.raises(AttributeError):
        TERMINAL._stored = "telegram:42"


def test_everybody_is_one_value_and_no_owner() -> None:
    assert list(Everybody) == [EVERYBODY]
    assert EVERYBODY != TERMINAL
    assert parse_asker(None) is EVERYBODY
    assert parse_asker("telegram:42") == owner_of("telegram", "42")
    assert parse_asker("") not in (EVERYBODY, TERMINAL)


@pytest.mark.parametrize("user_id", [None, ""])
def test_a_row_without_a_user_is_the_terminals(user_id: str | None) -> None:
    assert owner_column("telegram", user_id) is None


def test_a_row_of_a_refused_user_belongs_to_no_possible_asker() -> None:
    for user_id in (" ", "\u200b", "1" * 300):
        stored = owner_column("telegram", user_id)
        assert stored == f"telegram:{user_id}"
        with pytest.raises(InvalidValue):
            owner_of("telegram", user_id)
