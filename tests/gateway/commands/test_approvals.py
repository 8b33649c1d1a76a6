"""/approve and /deny: only the people whom the operator named can use them, and no other user learns anything."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hermes.config import Config
from hermes.gateway import GatewayConfig, Platform, SessionSource
from hermes.gateway.commands import OtherMessage
from hermes.gateway.commands.texts import MAX_ARGUMENTS
from hermes.gateway.engine.messages import decode_message
from hermes.state.lanes.approvals import ApprovalRow
from tests.gateway.commands.chats import ALICE, ALICE_IN_GROUP, BOB, BOB_IN_GROUP, CAROL, Chats, MakeChats

CONFIG = Config()
NAMED = replace(CONFIG, gateway=replace(CONFIG.gateway, approvers=("Telegram:2",), admins=("telegram:3",)))
UNKNOWN = "There is no open request with this id."
ARGUMENTS = '{"command": "rm -rf  ./build"}'


@pytest.fixture
def desk(make_chats: MakeChats) -> Chats:
    """A gateway on which Bob may approve, and Carol is an administrator."""
    return make_chats(NAMED)


def ask(chats: Chats, source: SessionSource = ALICE, arguments: str = ARGUMENTS, ttl_s: float = 3600) -> ApprovalRow:
    """Have the agent of a user ask for a permission."""
    session_id = chats.talk(source, "clean up")
    return chats.provider.approvals.request(
        chats.key(source),
        session_id,
        "terminal",
        arguments,
        ttl_seconds=ttl_s,
        directory="/srv/alice",
        owner="telegram:1",
        platform="telegram",
    )


def state_of(chats: Chats, row: ApprovalRow) -> str:
    found = chats.provider.approvals.get(row["id"])
    assert found is not None
    return found["state"]


def continuation(chats: Chats, row: ApprovalRow, source: SessionSource = ALICE) -> OtherMessage:
    """The message with which the lane of a request continues."""
    return OtherMessage(
        session_key=chats.key(source),
        payload={"internal": "approval", "approval_id": row["id"], "text": "", "source": source.to_dict()},
        delivery_id=f"approval:{row['id']}",
        platform="telegram",
    )


@pytest.mark.parametrize("form", ["{}", "<{}>", "[{}]"])
def test_an_approval_shows_exactly_what_is_run_and_continues_the_lane(desk: Chats, form: str) -> None:
    row = ask(desk)
    result = desk.send(BOB, f"/approve {form.format(row['id'].lower())}")
    assert result.text == (
        f"Request {row['id']} is approved, once. It is run exactly as requested:\n"
        f"Tool: terminal\nArguments: {ARGUMENTS}\nDirectory: /srv/alice"
    )
    assert result.other == (continuation(desk, row),)
    assert result.turn is None
    decided = desk.provider.approvals.get(row["id"])
    assert decided is not None
    assert (decided["state"], decided["scope"], decided["decided_by"]) == ("approved", "once", "telegram:2")
    assert desk.provider.approvals.use(row["id"], row["digest"])


def test_the_continuation_is_a_message_that_the_engine_can_read(desk: Chats) -> None:
    row = ask(desk)
    (other,) = desk.send(BOB, f"/approve {row['id']}").other
    first, second = (
        desk.provider.inbox.accept(
            other.session_key,
            dict(other.payload),
            platform=other.platform,
            delivery_id=other.delivery_id,
            kind=other.kind,
        )
        for _ in range(2)
    )
    assert (first.state, second.state) == ("accepted", "known")
    message = decode_message(first.message)
    assert (message.internal, message.approval_id, message.source) == ("approval", row["id"], ALICE)


@pytest.mark.parametrize("scope", ["session", "always", "ALWAYS"])
def test_an_approval_can_be_for_the_session_or_for_ever(desk: Chats, scope: str) -> None:
    row = ask(desk)
    desk.send(CAROL, f"/approve {row['id']} {scope}")
    decided = desk.provider.approvals.get(row["id"])
    assert decided is not None
    assert decided["scope"] == scope.lower()


def test_an_unknown_scope_approves_nothing(desk: Chats) -> None:
    row = ask(desk)
    for more in ("forever", "session always", "yes please"):
        assert desk.reply(BOB, f"/approve {row['id']} {more}").startswith("Send /approve ID to allow")
    assert state_of(desk, row) == "pending"


def test_a_denial_continues_the_lane_too(desk: Chats) -> None:
    row = ask(desk)
    result = desk.send(BOB, f"/deny {row['id']}")
    assert result.text == f"Request {row['id']} is denied. Nothing is run."
    assert result.other == (continuation(desk, row),)
    assert state_of(desk, row) == "denied"


@pytest.mark.parametrize(
    "stranger",
    [
        ALICE,
        ALICE_IN_GROUP,
        SessionSource(Platform.DISCORD, "2", user_id="2"),
        SessionSource(Platform.LOCAL, "2", user_id="2"),
        SessionSource(Platform.LOCAL, "2"),
        SessionSource(Platform.TELEGRAM, "2", user_id="22"),
        SessionSource(Platform.TELEGRAM, "2", user_name="2"),
    ],
    ids=["who asks", "who asks, in a group", "other platform", "local", "no user", "similar id", "name only"],
)
def test_all_other_users_get_the_same_text_whatever_they_send(desk: Chats, stranger: SessionSource) -> None:
    row = ask(desk)
    for command in ("/approve", "/deny"):
        for argument in (row["id"], f"{row['id']} always", f"{row['id']} nonsense", "AAAAAA", "", "x" * 100):
            result = desk.send(stranger, f"{command} {argument}")
            assert result.text == UNKNOWN
            assert result.other == ()
    assert state_of(desk, row) == "pending"


def test_a_wrong_id_reads_the_same_for_approvers(desk: Chats) -> None:
    ask(desk)
    for wrong in ("AAAAAA", "x" * 1000, "\x00", "''", "%"):
        assert desk.reply(BOB, f"/approve {wrong}") == UNKNOWN
        assert desk.reply(BOB, f"/deny {wrong}") == UNKNOWN


def test_users_who_are_listed_can_approve_what_they_asked_for_themselves(desk: Chats) -> None:
    row = ask(desk, BOB)
    assert "is approved" in desk.reply(BOB, f"/approve {row['id']}")


def test_a_request_is_decided_once(desk: Chats) -> None:
    row = ask(desk)
    desk.send(BOB, f"/deny {row['id']}")
    result = desk.send(CAROL, f"/approve {row['id']}")
    assert result.text == f"Request {row['id']} was denied before."
    assert result.other == ()
    assert desk.send(BOB, f"/approve {row['id']}").other == ()
    assert state_of(desk, row) == "denied"


def test_an_expired_request_cannot_be_approved(desk: Chats) -> None:
    row = ask(desk)
    desk.provider._engine.write(lambda tx: tx.run("UPDATE approvals SET expires_at = 1"))
    assert desk.reply(BOB, f"/approve {row['id']}") == (
        f"Request {row['id']} was not decided in time, so it is denied."
    )
    assert state_of(desk, row) == "expired"


@pytest.mark.parametrize("command", ["/approve", "/deny"])
def test_a_decision_that_runs_again_after_a_crash_continues_the_lane_again(desk: Chats, command: str) -> None:
    row = ask(desk)
    text = f"{command} {row['id']}"
    message = desk.accept(BOB, text, "command")
    first = desk.run(desk.obey(BOB, text, message, crashes=True))
    assert first.other
    assert desk.run(desk.obey(BOB, text, message)) == first
    assert desk.send(BOB, text).other == ()


def test_a_used_approval_is_not_approved_again(desk: Chats) -> None:
    row = ask(desk)
    desk.send(BOB, f"/approve {row['id']}")
    desk.provider.approvals.use(row["id"], row["digest"])
    result = desk.send(BOB, f"/approve {row['id']}")
    assert result.text == f"Request {row['id']} was approved and has been run."
    assert result.other == ()


def test_pending_requests_are_listed_for_approvers(desk: Chats) -> None:
    assert desk.reply(BOB, "/approve") == "No request waits for a decision."
    first, second = ask(desk), ask(desk, arguments='{"command": "ls"}')
    text = desk.reply(CAROL, "/approve")
    assert text.index(first["id"]) < text.index(second["id"])
    assert ARGUMENTS in text
    assert "Directory: /srv/alice" in text
    assert text.endswith("/approve ID allows one of them once, /deny ID refuses it.")
    assert desk.reply(BOB, "/deny").startswith("Send /deny ID")


def test_arguments_cannot_look_like_other_lines(desk: Chats) -> None:
    row = ask(desk, arguments='{"command": "ls"}\nDirectory: /tmp\u202e\x1b[2J')
    text = desk.reply(BOB, f"/approve {row['id']}")
    assert 'Arguments: {"command": "ls"}\\nDirectory: /tmp\\u202e\\x1b[2J\nDirectory: /srv/alice' in text


def test_arguments_that_are_too_long_to_show_are_marked(desk: Chats) -> None:
    row = ask(desk, arguments="x" * (MAX_ARGUMENTS + 1234))
    assert "WARNING: 1,234 more characters of the arguments are not shown." in desk.reply(BOB, f"/approve {row['id']}")


def test_a_group_does_not_see_what_happens_in_other_chats(desk: Chats) -> None:
    row = ask(desk)
    for text in (desk.reply(BOB_IN_GROUP, "/approve"), desk.reply(BOB_IN_GROUP, f"/approve {row['id']}")):
        assert "Details are shown only in a private chat." in text
        assert "rm -rf" not in text
        assert "/srv/alice" not in text
    assert state_of(desk, row) == "approved"


def test_a_group_sees_its_own_requests(make_chats: MakeChats) -> None:
    shared = make_chats(NAMED, GatewayConfig(group_sessions_per_user=False))
    row = ask(shared, ALICE_IN_GROUP)
    assert ARGUMENTS in shared.reply(BOB_IN_GROUP, f"/approve {row['id']}")


def test_a_request_of_a_chat_that_is_gone_is_decided_but_not_continued(desk: Chats) -> None:
    row = ask(desk)
    desk.time.advance(400 * 86_400)
    assert desk.provider.lanes.prune(desk.time()) == 1
    result = desk.send(BOB, f"/approve {row['id']}")
    assert result.other == ()
    assert result.text == "The chat that asked for this does not exist any more, so nothing is run."
