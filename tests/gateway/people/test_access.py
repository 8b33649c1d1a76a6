"""Who is an administrator, and who may approve."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.config import Config
from hermes.errors import ConfigError
from hermes.gateway import Platform, SessionSource
from hermes.gateway.people.access import Access

ALICE = SessionSource(Platform.TELEGRAM, "1", user_id="7")


def test_without_a_list_no_user_has_rights() -> None:
    access = Access.of(Config())
    for source in (ALICE, SessionSource(Platform.LOCAL, "cli"), SessionSource(Platform.LOCAL, "x", user_id="root")):
        assert not access.is_admin(source)
        assert not access.may_approve(source)


def test_admins_may_approve_and_approvers_are_no_admins() -> None:
    config = Config()
    gateway = replace(config.gateway, admins=("telegram:7",), approvers=("discord:8", "local:root"))
    access = Access.of(replace(config, gateway=gateway))
    discord, local = (
        SessionSource(Platform.DISCORD, "1", user_id="8"),
        SessionSource(Platform.LOCAL, "x", user_id="root"),
    )
    assert [access.is_admin(each) for each in (ALICE, discord, local)] == [True, False, False]
    assert [access.may_approve(each) for each in (ALICE, discord, local)] == [True, True, True]
    assert access.approvers == {("telegram", "7"), ("discord", "8"), ("local", "root")}


@pytest.mark.parametrize(
    ("source", "is_admin"),
    [
        (ALICE, True),
        (SessionSource(Platform.TELEGRAM, "99", chat_type="group", user_id="7"), True),
        (SessionSource(Platform.SIGNAL, "1", user_id="+49", user_id_alt="uuid-1"), True),
        (SessionSource(Platform.DISCORD, "1", user_id="7"), False),
        (SessionSource(Platform.TELEGRAM, "7"), False),
        (SessionSource(Platform.TELEGRAM, "7", user_id=""), False),
        (SessionSource(Platform.TELEGRAM, "1", user_id="77"), False),
        (SessionSource(Platform.TELEGRAM, "1", user_id=" 7"), False),
        (SessionSource(Platform.TELEGRAM, "1", user_id="8", user_name="7"), False),
        (SessionSource(Platform.SLACK, "1", user_id="u1"), False),
        (SessionSource(Platform.SLACK, "1", user_id="U1"), True),
        (SessionSource(Platform.MATRIX, "1", user_id="@a:example.org"), True),
    ],
)
def test_users_are_compared_exactly_and_platforms_in_any_case(source: SessionSource, is_admin: bool) -> None:
    access = Access(("Telegram:7", " SIGNAL : uuid-1 ", "slack:U1", "matrix:@a:example.org"))
    assert access.is_admin(source) is is_admin


def test_a_decision_is_stored_under_the_name_that_is_listed() -> None:
    access = Access(approvers=("signal:uuid-1",))
    source = SessionSource(Platform.SIGNAL, "1", user_id="+49", user_id_alt="uuid-1")
    assert access.approver_name(source) == "signal:uuid-1"


@pytest.mark.parametrize("entry", ["", "7", ":7", "telegram:", "telegram: ", "*", "*:*", "telegram:*", "telegram:7*"])
def test_entries_that_name_no_single_user_are_refused(entry: str) -> None:
    with pytest.raises(ConfigError, match=r"gateway\.admins"):
        Access((entry,))
    with pytest.raises(ConfigError, match=r"gateway\.approvers"):
        Access((), (entry,))
