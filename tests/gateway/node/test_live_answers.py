"""Previews of answers, and notices about requests of permission."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.config import Config
from hermes.gateway import GatewayConfig
from hermes.gateway.engine.ports import Adapter
from hermes.gateway.node.approval_notices import ApprovalNotices
from hermes.gateway.node.live_answers import LiveAnswers
from hermes.gateway.platform import Platform
from hermes.gateway.platform_config import StreamingConfig
from hermes.gateway.source import SessionSource
from hermes.state.lanes.approvals import ApprovalRow
from hermes.state.lanes.types import OutboxRow
from hermes_state import SessionDB
from tests.gateway.engine.engine_node import ALICE, BOB, EngineNode, running
from tests.gateway.node.fake_adapter import FakeAdapter
from tests.support.clock import FakeClock


def run(home: Path, scenario: Callable[[EngineNode], Awaitable[None]], config: Config | None = None) -> None:
    """Run a scenario on a node that shows answers while they are written."""
    chats = GatewayConfig(
        sessions_dir=home / "sessions",
        timezone="UTC",
        streaming=StreamingConfig(enabled=True, edit_interval=0.01, buffer_threshold=1),
    )

    async def main(provider: SessionDB) -> None:
        node = EngineNode(home, provider, FakeClock(), chats=chats, config=config)
        async with running(node):
            await scenario(node)

    with SessionDB(home / "state.db") as provider:
        asyncio.run(main(provider))


def show_on(node: EngineNode, *, can_edit: bool = True) -> tuple[LiveAnswers, FakeAdapter]:
    adapter = FakeAdapter()
    adapter.can_edit = can_edit
    made: Adapter = adapter
    node.parts.adapters["telegram", ""] = made
    shown = LiveAnswers(node.parts)
    node.parts.watcher = shown
    return shown, adapter


async def is_shown(node: EngineNode, adapter: FakeAdapter) -> None:
    async def has_sent() -> bool:
        return bool(adapter.sent)

    await node.until(has_sent, "a preview is shown")


def test_an_answer_is_shown_while_it_is_written_and_the_reply_completes_it(home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        shown, adapter = show_on(node)
        await node.say("hello")
        turn = await node.brain.next_turn()
        turn.text = "The first part of a long answer"
        await is_shown(node, adapter)
        assert not adapter.sent[0].is_final
        turn.answer("The whole answer")
        await node.idle()
        rows = await node.db.outbox.pending()
        assert [row["key"] for row in rows] == [f"reply:{turn.request.rows[-1]['uid']}"]
        assert rows[0]["receipt"]
        assert shown._shown == {}

    run(home, scenario)


def test_a_stopped_answer_is_completed_with_what_the_chat_has_seen(home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        shown, adapter = show_on(node)
        await node.say("hello")
        turn = await node.brain.next_turn()
        turn.text = "The first part of a long answer"
        await is_shown(node, adapter)
        await node.say("/stop")
        await node.idle()
        texts = await node.texts()
        assert texts[0] == "The first part of a long answer\n\n(stopped)"
        assert shown._shown == {}

    run(home, scenario)


def test_a_turn_that_ends_by_a_bug_leaves_no_preview_running(home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        shown, adapter = show_on(node)
        await node.say("hello")
        turn = await node.brain.next_turn()
        turn.text = "The first part of a long answer"
        await is_shown(node, adapter)
        turn.raise_bug(RuntimeError("a bug"))
        again = await node.brain.next_turn()
        assert turn.request.turn_id not in shown._shown
        again.answer("fine")
        await node.idle()
        assert shown._shown == {}
        assert not any(task.get_name() == "hermes-preview" for task in asyncio.all_tasks())

    run(home, scenario)


def test_a_platform_that_cannot_change_messages_gets_only_the_reply(home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        shown, adapter = show_on(node, can_edit=False)
        await node.say("hello")
        turn = await node.brain.next_turn()
        turn.text = "The first part of a long answer"
        await asyncio.sleep(0.2)
        assert adapter.sent == []
        assert shown._shown == {}
        turn.answer()
        await node.idle()

    run(home, scenario)


def test_a_request_of_permission_is_announced_once_to_its_chat_and_to_each_approver(home: Path) -> None:
    config = Config()
    config = replace(config, gateway=replace(config.gateway, admins=("Telegram: 2",), approvers=("telegram:2",)))

    async def scenario(node: EngineNode) -> None:
        await node.say("hello", account="bot-2")
        turn = await node.brain.next_turn()
        turn.answer()
        await node.idle()
        row = await node.db.approvals.request(
            node.key(), turn.request.session_id, "terminal", "{}", ttl_seconds=60.0, summary="rm x", detail="rm x y"
        )
        notices = ApprovalNotices(node.parts)
        for _ in range(2):  # the brain may report a request again
            notices.requested(row, "bot-2")
        await node.reply(2)
        await node.reply(1, BOB)
        await asyncio.gather(*notices._tasks)
        wanted = await node.texts(ALICE, "notice")
        asked = await node.texts(BOB, "notice")
        assert len(wanted) == 1
        assert row["id"] in wanted[0]
        assert "/approve" not in wanted[0]
        assert len(asked) == 1
        assert f"/approve {row['id']}" in asked[0]
        assert "rm x y" in asked[0]
        rows = {each["key"]: each for each in await node.db.outbox.pending()}
        assert rows[f"notice:approval:{row['id']}"]["account"] == "bot-2"
        assert rows[f"notice:approval:{row['id']}:telegram:2"]["account"] == "bot-2"

    run(home, scenario, config)


def test_an_approver_is_notified_through_an_account_of_the_node_if_the_request_comes_from_another_platform(
    home: Path,
) -> None:
    config = Config()
    config = replace(config, gateway=replace(config.gateway, admins=("telegram:2",)))

    async def scenario(node: EngineNode) -> None:
        adapter = FakeAdapter()
        adapter.account = "bot-2"
        row = await pending_request(node, replace(ALICE, platform=Platform.DISCORD))
        notices = ApprovalNotices(node.parts, lambda: [adapter])
        notices.requested(row, "")
        await asyncio.gather(*notices._tasks)
        assert (await request_notice(node, row))["account"] == "bot-2"
        # Once the approver has written, the answers show the account of that chat.
        await node.say("hello", BOB, account="bot-3")
        (await node.brain.next_turn()).answer()
        await node.idle()
        other = await pending_request(node, replace(ALICE, platform=Platform.DISCORD), "{ }")
        notices.requested(other, "")
        await asyncio.gather(*notices._tasks)
        assert (await request_notice(node, other))["account"] == "bot-3"

    run(home, scenario, config)


def test_a_request_whose_node_died_before_it_was_announced_is_announced_once_at_the_next_start(home: Path) -> None:
    config = Config()
    config = replace(config, gateway=replace(config.gateway, admins=("telegram:2",)))

    async def scenario(node: EngineNode) -> None:
        row = await pending_request(node, ALICE)
        notices = ApprovalNotices(node.parts)
        await notices.announce_pending()
        assert (await request_notice(node, row))["kind"] == "notice"
        written = len(await node.db.outbox.pending())
        node.parts.delivered = lambda: pytest.fail("it is announced again")
        await notices.announce_pending()
        assert len(await node.db.outbox.pending()) == written == 2

    run(home, scenario, config)


async def pending_request(node: EngineNode, source: SessionSource, arguments: str = "{}") -> ApprovalRow:
    """Store a request of a chat that has not got any message yet."""
    entry = await node.store.get_or_create_session(source)
    return await node.db.approvals.request(
        entry.session_key, entry.session_id, "terminal", arguments, ttl_seconds=60.0, summary="rm x"
    )


async def request_notice(node: EngineNode, row: ApprovalRow) -> OutboxRow:
    """The notice to the approver."""
    notice = await node.db.outbox.find(f"notice:approval:{row['id']}:telegram:2")
    assert notice is not None
    return notice
