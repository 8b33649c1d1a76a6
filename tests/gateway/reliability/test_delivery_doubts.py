"""Replies whose delivery is in doubt, late, or begins with a preview: a chat gets one copy, or learns the truth."""

from __future__ import annotations

import threading
from pathlib import Path

import pytest

from hermes.gateway.delivery.undelivered import KEY as NOTICE
from tests.gateway.delivery.faulty_platform import FaultyAdapter, Platform
from tests.gateway.reliability.model import held
from tests.gateway.reliability.node import read_texts
from tests.gateway.reliability.world import World
from tests.support.stores import engine_of
from tests.support.waiting import wait_until

END_LEASES = "UPDATE outbox SET due_at = 1 WHERE state = 'sending'"
PASS_TIME = """UPDATE outbox SET created_at = created_at - :s, due_at = due_at - :s, expires_at = expires_at - :s
               WHERE due_at > 0"""


def change(world: World, sql: str, **values: float) -> None:
    """Change the outbox behind the back of the gateways."""
    engine_of(world.store).write(lambda tx: tx.run(sql, **values))


@pytest.mark.parametrize("can_tell", [True, False], ids=["reconciled", "labelled"])
def test_17_a_kill_between_the_success_of_the_platform_and_the_receipt_makes_no_silent_copy(
    one: World, can_tell: bool
) -> None:
    file = one.directory / "platform.txt"
    node = one.process(platform_file=file, platform_dies="after")
    one.accept("hello", platform="faulty")
    assert node.wait() == -9
    (row,) = one.replies("hello")
    assert (row["state"], posted(file)) == ("sending", [row["key"]])
    change(one, END_LEASES)
    one.process(platform_file=file, platform_can_tell=can_tell)
    wait_until(lambda: state_of(one) in ("sent", "unknown"), "the doubt to end")
    assert state_of(one) == ("sent" if can_tell else "unknown")
    assert posted(file) == [row["key"]]
    if can_tell:
        assert one.store.outbox.find(NOTICE + row["key"]) is None
    else:
        wait_until(lambda: one.store.outbox.find(NOTICE + row["key"]) is not None, "a notice about the doubt")
        assert "may not have arrived" in str(one.store.outbox.find(NOTICE + row["key"]))
    assert len(one.model.asked("hello")) == 1


def test_18_replies_of_a_gateway_that_was_down_for_15_hours_are_not_sent_but_listed(one: World) -> None:
    home = one.home(gateway={"reply_ttl_hours": 12})
    node = one.thread(home=home)
    assert node.receive("old", platform="faulty") == "accepted"  # the platform is not connected
    one.wait_until_done("old")
    node.stop()
    (row,) = one.replies("old")
    assert row["state"] == "pending"
    change(one, PASS_TIME, s=15 * 3600.0)
    server = Platform()
    node = one.thread(home=home, adapters=lambda _: [FaultyAdapter(server, can_tell=False)])
    wait_until(lambda: one.replies("old")[0]["state"] == "expired", "the reply to expire")
    assert [each["key"] for each in one.store.outbox.dead()] == [row["key"]]
    assert node.receive("new", platform="faulty") == "accepted"
    wait_until(lambda: len(server.posted) == 2, "the next reply, and a notice about the expired one")
    assert row["key"] not in server.posted
    assert sorted(key.startswith(NOTICE) for key in server.posted) == [False, True]
    (notice,) = [text for text in server.texts.values() if "could not be delivered" in text]
    assert "its time ran out before it was sent" in notice
    assert "answer to new" in server.texts.values() or "answer to old new" in server.texts.values()


def test_23_a_final_after_a_preview_longer_than_one_message_is_there_once(one: World) -> None:
    free = threading.Event()
    words = ["answer", "to", "tale", *(f"word{number}" for number in range(1000))]
    pieces = [f"{' '.join(words[start : start + 50])} " for start in range(0, len(words), 50)]
    one.model.on("tale", held(free, *pieces))
    server = Platform()
    streaming = {"enabled": True, "edit_interval": 0.02, "buffer_threshold": 1}
    adapter = FaultyAdapter(server, can_tell=False)
    node = one.thread(home=one.home(streaming=streaming), adapters=lambda _: [adapter])
    wait_until(lambda: ("faulty", "") in node.runner.parts.adapters, "the platform to be connected")
    assert node.receive("tale", platform="faulty") == "accepted"
    wait_until(lambda: len(server.texts.get("1", "")) > 3900, "a preview that fills a message")
    assert len(server.texts) == 1
    free.set()
    wait_until(lambda: any(row["state"] == "sent" for row in one.replies("tale")), "the final reply")
    assert len(server.texts) == 2
    assert all(len(text) <= adapter.text_limit for text in server.texts.values())
    assert " ".join(server.texts[number] for number in sorted(server.texts, key=int)).split() == words


def test_23_a_preview_of_a_killed_node_is_completed_and_the_answer_is_there_once(one: World) -> None:
    free = threading.Event()
    one.model.on("tale", held(free, "Once ", "upon ", "a ", "time"))
    file = one.directory / "platform.txt"
    home = one.home(streaming={"enabled": True, "edit_interval": 0.02, "buffer_threshold": 1})
    node = one.process(home=home, platform_file=file, platform_can_edit=True)
    one.accept("tale", platform="faulty")
    wait_until(lambda: read_texts(file).get("1", "").startswith("Once upon a time"), "a preview of the whole text")
    wait_until(lambda: has_receipt(one), "the id of the preview to be stored")
    node.kill()
    free.set()
    one.process(home=home, platform_file=file, platform_can_edit=True)
    one.wait_until_done("tale")
    wait_until(lambda: all(row["state"] == "sent" for row in one.replies("tale")), "all replies to be sent")
    texts = read_texts(file)
    assert texts == {"1": "answer to tale"}


def has_receipt(world: World) -> bool:
    """Whether the platform's id of a preview is stored."""
    return any(row["receipt"] for row in world.store.outbox.drafts(0.0))


def posted(file: Path) -> list[str]:
    """The keys of the messages that the platform has."""
    return file.read_text("utf-8").split() if file.exists() else []


def state_of(world: World) -> str:
    """The state of the only reply."""
    (row,) = world.replies("hello")
    return row["state"]
