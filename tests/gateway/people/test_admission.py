"""Who may talk: lists, groups, and pairing codes."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.errors import NotFound
from hermes.gateway import GatewayConfig, Platform, SessionSource
from hermes.gateway.people.access import Access
from hermes.gateway.people.admission import Doorkeeper, Verdict, judge
from hermes.gateway.people.pairing import (
    ALPHABET,
    CODE_CHARACTERS,
    META_KEY,
    MOST_PER_HOUR,
    USER_WAIT_S,
    VALID_S,
    Pairings,
    approve_code,
    ask_for_code,
    make_code,
    read_pairings,
    revoke_user,
)
from hermes.gateway.platform_config import PlatformConfig
from hermes_state import SessionDB
from tests.support.clock import FakeClock

DM = SessionSource(Platform.TELEGRAM, "7", user_id="7", user_name="Alice")
GROUP = SessionSource(Platform.TELEGRAM, "-1", chat_type="group", user_id="7")
NOBODY: frozenset[tuple[str, str]] = frozenset()


def test_unknown_users_are_paired_in_private_and_ignored_in_groups() -> None:
    assert judge(DM, PlatformConfig(), NOBODY) is Verdict.PAIR
    assert judge(GROUP, PlatformConfig(), NOBODY) is Verdict.IGNORE
    assert judge(DM, PlatformConfig(), NOBODY, "ignore") is Verdict.IGNORE
    assert judge(DM, PlatformConfig(unauthorized_dm_behavior="ignore"), NOBODY) is Verdict.IGNORE


@pytest.mark.parametrize("source", [DM, GROUP])
def test_lists_roles_and_known_users_let_people_in(source: SessionSource) -> None:
    for config, known in (
        (PlatformConfig(allow_all=True), NOBODY),
        (PlatformConfig(allowed_users=("7",)), NOBODY),
        (PlatformConfig(allowed_chats=(source.chat_id,)), NOBODY),
        (PlatformConfig(), frozenset({("telegram", "7")})),
    ):
        assert judge(source, config, known) is Verdict.ALLOW
    assert judge(replace(source, role_authorized=True), PlatformConfig(), NOBODY) is Verdict.ALLOW


def test_the_policy_of_groups_opens_or_closes_them() -> None:
    assert judge(GROUP, PlatformConfig(group_policy="open"), NOBODY) is Verdict.ALLOW
    closed = PlatformConfig(group_policy="disabled", allowed_users=("7",))
    assert judge(GROUP, closed, NOBODY) is Verdict.IGNORE
    assert judge(DM, closed, NOBODY) is Verdict.ALLOW


def test_a_user_of_another_platform_with_the_same_id_is_unknown() -> None:
    assert judge(DM, PlatformConfig(), frozenset({("discord", "7")})) is Verdict.PAIR


def test_a_sender_without_an_id_gets_no_code() -> None:
    assert judge(SessionSource(Platform.TELEGRAM, "7"), PlatformConfig(), NOBODY) is Verdict.IGNORE


def test_codes_are_random_and_easy_to_read() -> None:
    codes = {make_code() for _ in range(50)}
    assert len(codes) == 50
    assert all(len(code) == CODE_CHARACTERS and set(code) <= set(ALPHABET) for code in codes)
    assert not set("01IO") & set(ALPHABET)


def test_a_code_works_once_and_for_an_hour(tmp_path: Path) -> None:
    with SessionDB(tmp_path / "state.db") as store:
        code = ask_for_code(store, ("telegram", "7"), "Alice", 1000.0)
        assert code is not None
        assert code not in str(store.get_meta(META_KEY))
        with pytest.raises(NotFound):
            approve_code(store, code, 1000.0 + VALID_S)
        with pytest.raises(NotFound):
            approve_code(store, "", 1001.0)
        assert approve_code(store, f" {code[:4]}-{code[4:].lower()}", 1001.0).user == "7"
        with pytest.raises(NotFound):
            approve_code(store, code, 1002.0)
    with SessionDB(tmp_path / "state.db") as store:
        assert read_pairings(store).people() == {("telegram", "7")}
        revoke_user(store, ("telegram", "7"))
        assert read_pairings(store).people() == NOBODY
        with pytest.raises(NotFound):
            revoke_user(store, ("telegram", "7"))


def test_one_user_and_all_together_get_few_codes() -> None:
    known = Pairings()
    assert known.ask(("telegram", "7"), "", "A", "s", 0.0)
    assert not known.ask(("telegram", "7"), "", "B", "s", USER_WAIT_S - 1)
    assert known.ask(("telegram", "7"), "", "C", "s", USER_WAIT_S)
    assert known.approve("A", USER_WAIT_S) is None
    asked = [known.ask(("telegram", str(user)), "", "D", "s", USER_WAIT_S) for user in range(100, 140)]
    assert sum(asked) == MOST_PER_HOUR - 2
    assert len(known.requests) == MOST_PER_HOUR
    assert known.ask(("telegram", "999"), "", "E", "s", USER_WAIT_S + 3601.0)


def test_unreadable_pairings_let_no_user_in() -> None:
    for text in ("[]", "{", '{"users": [1]}', '{"users": [{"platform": "telegram"}]}', '{"users": 5}'):
        assert Pairings.from_text(text).people() == NOBODY


def test_a_stranger_gets_one_code_and_then_silence_until_the_operator_approves(tmp_path: Path) -> None:
    clock = FakeClock()

    async def scenario(store: SessionDB) -> None:
        config = GatewayConfig(platforms={Platform.TELEGRAM: PlatformConfig(enabled=True)})
        keeper = Doorkeeper(config, Access(), store, clock, guards_all=True)
        assert not await keeper.may_talk(DM)
        assert read_pairings(store).people() == frozenset()  # asking without a message makes no code
        told = await keeper.refusal(DM)
        assert told is not None
        assert "pairing code is " in told
        assert [await keeper.refusal(DM) for _ in range(3)] == ["", "", ""]
        code = told.partition("pairing code is ")[2][:CODE_CHARACTERS]
        await asyncio.to_thread(approve_code, store, code, clock())
        clock.advance(5.0)
        assert await keeper.refusal(DM) is None
        assert await keeper.may_talk(DM)
        assert await keeper.refusal(GROUP) is None
        assert await keeper.refusal(replace(DM, user_id="8")) not in (None, "")
        await asyncio.to_thread(revoke_user, store, ("telegram", "7"))
        clock.advance(5.0)
        assert await keeper.refusal(GROUP) == ""

    with SessionDB(tmp_path / "state.db") as store:
        asyncio.run(scenario(store))


def test_the_socket_and_the_api_stay_open_and_other_platforms_do_not(tmp_path: Path) -> None:
    async def scenario(store: SessionDB) -> None:
        keeper = Doorkeeper(GatewayConfig(), Access(["telegram:9"]), store, FakeClock(), guards_all=True)
        for platform in (Platform.LOCAL, Platform.API_SERVER):
            assert await keeper.refusal(SessionSource(platform, "x", user_id="x")) is None
        assert await keeper.refusal(SessionSource(Platform.WEBHOOK, "x", chat_type="channel", user_id="x")) == ""
        assert await keeper.refusal(SessionSource(Platform.TELEGRAM, "9", user_id="9")) is None

    with SessionDB(tmp_path / "state.db") as store:
        asyncio.run(scenario(store))


def test_the_section_of_whatsapp_is_also_that_of_its_cloud_api(tmp_path: Path) -> None:
    async def scenario(store: SessionDB) -> None:
        config = GatewayConfig(platforms={Platform.WHATSAPP: PlatformConfig(enabled=True, allowed_users=("49",))})
        keeper = Doorkeeper(config, Access(), store, FakeClock(), guards_all=True)
        assert await keeper.refusal(SessionSource(Platform.WHATSAPP_CLOUD, "49", user_id="49")) is None
        assert await keeper.refusal(SessionSource(Platform.WHATSAPP_CLOUD, "50", user_id="50")) not in (None, "")

    with SessionDB(tmp_path / "state.db") as store:
        asyncio.run(scenario(store))
