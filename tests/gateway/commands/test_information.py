"""/status, /usage, /model, /help, and /queue and /steer without a text."""

from __future__ import annotations

from dataclasses import replace

from hermes.config import Config
from hermes.gateway import GatewayConfig
from hermes.gateway.commands import RunningInfo
from hermes.gateway.people.limits import Limits
from tests.gateway.commands.chats import ALICE, ALICE_IN_GROUP, BOB, BOB_IN_GROUP, Chats, MakeChats

CONFIG = Config()
ADMIN = replace(CONFIG, gateway=replace(CONFIG.gateway, admins=("telegram:1",)))
APPROVER = replace(CONFIG, gateway=replace(CONFIG.gateway, approvers=("telegram:1",)))


def facts(text: str) -> dict[str, str]:
    """The facts of a reply, by label."""
    pairs = [line.partition(": ") for line in text.splitlines()]
    return {label: fact for label, _, fact in pairs}


def test_status_shows_the_session_and_the_lane(make_chats: MakeChats) -> None:
    chats = make_chats(gateway_config=GatewayConfig(timezone="Europe/Berlin"))
    session_id = chats.talk(ALICE, "hello")
    chats.provider.set_session_title(session_id, "Trip")
    chats.provider.update_token_counts(session_id, input_tokens=1200, output_tokens=34, estimated_cost_usd=0.5)
    chats.accept(ALICE, "a")
    chats.accept(ALICE, "b", "queue")
    running = chats.with_services(running=lambda key: RunningInfo("runs terminal", 75.0))
    shown = facts(chats.reply(ALICE, "/status", is_turn_running=True, services=running))
    assert shown == {
        "Session": session_id,
        "Title": "Trip",
        "Created": "2025-06-15 17:06",
        "Last activity": "2025-06-15 17:06",
        "Messages": "2",
        "Tokens": "1,234",
        "Cost": "$0.5000 (estimated)",
        "Model": "offline",
        "Turn": "running for 1 min, runs terminal",
        "Waiting": "2 messages",
        "Held": "0 messages",
        "Node": "node-1",
    }


def test_status_of_a_stopped_lane_says_so(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "hello")
    chats.accept(ALICE, "a", "queue")
    chats.send(ALICE, "/stop")
    shown = facts(chats.reply(ALICE, "/status"))
    assert shown["Session"] == f"{session_id} (stopped; your next message starts a new one)"
    assert (shown["Held"], shown["Waiting"], shown["Turn"]) == ("1 message", "0 messages", "none is running")


def test_status_without_a_session(chats: Chats) -> None:
    chats.talk(BOB, "hello")
    shown = facts(chats.reply(ALICE, "/status"))
    assert shown["Session"] == "There is no session yet. Your next message starts one."
    assert "Title" not in shown


def test_status_and_usage_of_another_user_show_nothing(chats: Chats) -> None:
    bobs = chats.talk(BOB, "hello")
    chats.provider.set_session_title(bobs, "Bob's plan")
    chats.provider.update_token_counts(bobs, input_tokens=77_777)
    chats.talk(ALICE, "hello")
    for command in ("/status", "/usage"):
        text = chats.reply(ALICE, command)
        assert bobs not in text
        assert "Bob" not in text
        assert "77,777" not in text


def test_a_private_chat_with_a_second_user_shows_nothing_of_the_first(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "alice's secret")
    chats.provider.set_session_title(session_id, "Alice's plan")
    chats.accept(ALICE, "a", "queue")
    mallory = replace(ALICE, user_id="66", user_name="Mallory")
    assert chats.key(mallory) == chats.key(ALICE)
    commands = ("/status", "/usage", "/title", "/sessions", "/resume", "/undo", "/retry", "/branch", "/compress")
    for command in (*commands, "/queue", "/steer", "/stop", f"/resume {session_id}", "/resume Alice's plan", "/model"):
        result = chats.send(mallory, command)
        text = result.text.replace('You have no session "Alice\'s plan"', "").replace(f'"{session_id}"', "")
        assert result.turn is None
        assert session_id not in text
        assert "Alice" not in text
        assert "secret" not in text
        assert "1 " not in text, text
    assert chats.session(ALICE) == session_id
    assert not chats.lane(ALICE)["suspended"]
    assert len(chats.provider.inbox.waiting(chats.key(ALICE), kinds=("queue",))) == 1


def test_a_second_user_of_a_private_chat_gets_a_session_of_their_own(chats: Chats) -> None:
    alices = chats.talk(ALICE, "alice's secret")
    mallory = replace(ALICE, user_id="66", user_name="Mallory")
    assert chats.reply(mallory, "/new") == "New session."
    own = chats.provider.get_session(chats.session(mallory))
    assert own is not None
    assert own["owner"] == "telegram:66"
    assert chats.texts(alices) == ["alice's secret", "answer to alice's secret"]
    assert chats.reply(mallory, f"/resume {alices}").startswith("You have no session")


def test_usage_shows_tokens_costs_and_limits(make_chats: MakeChats) -> None:
    chats = make_chats()
    limits = Limits(replace(CONFIG.gateway.limits, turns_per_user=20, cost_per_chat=5.0), chats.db.quotas)
    services = chats.with_services(limits=limits)
    session_id = chats.talk(ALICE, "hello")
    chats.provider.update_token_counts(session_id, input_tokens=1200, output_tokens=34, actual_cost_usd=0.25)
    shown = facts(chats.reply(ALICE, "/usage", services=services))
    assert shown["Input tokens"] == "1,200"
    assert shown["Output tokens"] == "34"
    assert shown["Cost"] == "$0.2500"
    assert shown["Your turns today"] == "0 of 20"
    assert shown["This chat's cost today"] == "$0.00 of $5.00"


def test_usage_without_a_session(chats: Chats) -> None:
    assert chats.reply(ALICE, "/usage") == "Session: There is no session yet. Your next message starts one."


def test_a_model_is_chosen_for_the_chat_and_survives_in_the_lane(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    assert chats.reply(ALICE, "/model") == "Model: offline (the default)."
    assert chats.reply(ALICE, "/model offline") == (
        "Model: offline, from the next turn on. /model default changes it back."
    )
    assert chats.lane(ALICE)["extra"]["model"] == "offline"
    assert "chosen for this chat" in chats.reply(ALICE, "/model")
    assert chats.reply(ALICE, "/model default") == "This chat uses the default model again."
    assert "model" not in chats.lane(ALICE)["extra"]


def test_a_model_that_cannot_be_used_is_refused(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    for name in ("gpt-9", "x" * 300, "a\x00b"):
        assert chats.reply(ALICE, f"/model {name}").startswith("The model is unchanged: ")
    assert "model" not in chats.lane(ALICE)["extra"]


def test_the_model_is_not_changed_while_a_turn_runs(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    text = chats.reply(ALICE, "/model offline", is_turn_running=True)
    assert text == "A turn is running. Send /model again when it has ended, or /stop first."
    assert "model" not in chats.lane(ALICE)["extra"]
    assert chats.reply(ALICE, "/model", is_turn_running=True) == "Model: offline (the default)."


def test_a_model_of_one_user_is_not_that_of_another(chats: Chats) -> None:
    chats.talk(BOB, "hello")
    chats.send(ALICE, "/model offline")
    assert chats.reply(BOB, "/model") == "Model: offline (the default)."


def test_queue_and_steer_without_a_text_show_their_use_and_the_depth(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    assert chats.reply(ALICE, "/queue").endswith("No queued messages are waiting.")
    chats.accept(ALICE, "a", "queue")
    chats.accept(ALICE, "b")
    assert chats.reply(ALICE, "/queue").endswith("\n1 queued message waiting.")
    assert chats.reply(ALICE, "/steer").endswith("\n2 messages waiting.")
    chats.send(ALICE, "/stop")
    assert chats.reply(ALICE, "/queue").endswith("\n1 queued message held; your next message releases it.")
    assert chats.reply(BOB, "/queue").endswith("No queued messages are waiting.")


def test_help_lists_what_the_user_may_use(make_chats: MakeChats) -> None:
    for config, shown in ((CONFIG, ()), (APPROVER, ("/approve", "/deny")), (ADMIN, ("/approve", "/deny", "/restart"))):
        chats = make_chats(config)
        for source, expected in ((ALICE, shown), (BOB, ())):
            text = chats.reply(source, "/help")
            assert "/new [TITLE] - Start a new session. The present one is kept." in text
            assert tuple(each for each in ("/approve", "/deny", "/restart") if f"{each} " in text) == expected


def test_a_shared_group_has_one_status(shared: Chats) -> None:
    session_id = shared.talk(ALICE_IN_GROUP, "hello")
    for source in (ALICE_IN_GROUP, BOB_IN_GROUP):
        assert facts(shared.reply(source, "/status"))["Session"] == session_id
