"""The base of adapters: parts, previews, and what an error says about a message."""

from __future__ import annotations

import asyncio
import errno
import socket
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.delivery.receipts import PartlySent
from hermes.gateway.engine.ports import Adapter, Delivery, MaybeSent, NotSent, Receipt
from hermes.platforms.base import Backoff, BaseAdapter, Part, error_of_connection, error_of_status
from hermes.platforms.base.media import MediaFile


class Recorder(BaseAdapter):
    """An adapter that notes its calls and fails at some of them."""

    platform = "recorder"
    can_edit = True
    text_limit = 10

    def __init__(self, *failures: Exception | None) -> None:
        super().__init__()
        self.calls: list[Any] = []
        self.failures = list(failures)

    async def post(self, part: Part) -> str:
        """Note a new message."""
        self._fail()
        self.calls.append(("post", part.key, part.text, part.reply_to))
        return f"id{len(self.calls)}"

    async def edit(self, message_id: str, part: Part) -> None:
        """Note a changed message."""
        self._fail()
        self.calls.append(("edit", message_id, part.text))

    def _fail(self) -> None:
        if self.failures and (failure := self.failures.pop(0)) is not None:
            raise failure


def send(adapter: BaseAdapter, delivery: Delivery) -> Receipt:
    return asyncio.run(adapter.send(delivery))


def test_the_base_is_an_adapter_with_harmless_defaults() -> None:
    adapter: Adapter = BaseAdapter()
    delivery = Delivery("k", "c", "text")
    assert asyncio.run(adapter.find(delivery)) is None
    asyncio.run(adapter.typing("c", None))
    with pytest.raises(NotSent) as refused:
        asyncio.run(adapter.send(delivery))
    assert refused.value.is_final


def test_a_long_text_is_sent_in_parts_with_keys_of_their_own() -> None:
    adapter = Recorder()
    assert send(adapter, Delivery("k", "c", "aaaaaaa bbbbbbb ccc", reply_to="m")).message_ids == ["id1", "id2", "id3"]
    assert adapter.calls == [
        *(("post", "k", "aaaaaaa", "m"), ("post", "k#2", "bbbbbbb", None), ("post", "k#3", "ccc", None)),
    ]


def test_a_preview_is_one_message_and_says_when_it_is_full() -> None:
    adapter = Recorder()
    first = send(adapter, Delivery("k", "c", "aaa", is_final=False))
    assert (first.message_ids, first.extra) == (["id1"], {})
    preview = {"message_ids": ["id1"]}
    second = send(adapter, Delivery("k", "c", "aaa bbb ccc", preview=preview, is_final=False))
    assert (second.message_ids, second.extra) == (["id1"], {"is_full": True})
    assert adapter.calls[1] == ("edit", "id1", "aaa bbb")


def test_a_final_text_edits_the_preview_and_sends_the_rest() -> None:
    adapter = Recorder()
    receipt = send(adapter, Delivery("k", "c", "aaaaaaa bbbbbbb", preview={"message_ids": ["p"]}))
    assert adapter.calls == [("edit", "p", "aaaaaaa"), ("post", "k#2", "bbbbbbb", None)]
    assert receipt.message_ids == ["p", "id2"]


def test_a_part_that_was_sent_is_not_sent_again() -> None:
    adapter = Recorder(None, NotSent("slow down", retry_after_s=3))
    delivery = Delivery("k", "c", "aaaaaaa bbbbbbb ccc")
    with pytest.raises(PartlySent) as partly:
        send(adapter, delivery)
    assert (partly.value.finished_ids, partly.value.retry_after_s, partly.value.reason) == (["id1"], 3, "slow down")
    preview = {"message_ids": [], "finished_ids": ["id1"]}
    receipt = send(adapter, Delivery("k", "c", delivery.text, preview=preview))
    assert [each[1] for each in adapter.calls] == ["k", "k#2", "k#3"]
    assert receipt.message_ids == ["id1", "id2", "id3"]


def test_a_preview_is_ignored_where_messages_cannot_be_edited() -> None:
    adapter = Recorder()
    adapter.can_edit = False
    send(adapter, Delivery("k", "c", "aaa", preview={"message_ids": ["p"]}))
    assert adapter.calls == [("post", "k", "aaa", None)]


@pytest.mark.parametrize(
    ("status", "retry_after_s", "kind", "is_final"),
    [
        (429, 3.0, NotSent, False),
        (503, None, NotSent, False),
        (400, None, NotSent, True),
        (403, None, NotSent, True),
        (409, 2.0, NotSent, False),
        (500, None, MaybeSent, None),
        (502, None, MaybeSent, None),
        (504, None, MaybeSent, None),
        (408, None, MaybeSent, None),
    ],
)
def test_a_status_says_whether_the_platform_has_the_message(
    status: int, retry_after_s: float | None, kind: type[Exception], is_final: bool | None
) -> None:
    error = error_of_status(status, "reason", retry_after_s)
    assert type(error) is kind
    assert getattr(error, "is_final", None) == is_final
    assert getattr(error, "retry_after_s", None) == retry_after_s


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), NotSent),
        (socket.gaierror(-2, "unknown host"), NotSent),
        (OSError(errno.ENETUNREACH, "no network"), NotSent),
        (ConnectionResetError(errno.ECONNRESET, "reset"), MaybeSent),
        (BrokenPipeError(errno.EPIPE, "broken"), MaybeSent),
        (TimeoutError(), MaybeSent),
    ],
)
def test_only_a_connection_that_never_was_means_not_sent(error: OSError, kind: type[Exception]) -> None:
    assert type(error_of_connection(error)) is kind


def test_the_mode_decides_which_parts_quote_the_message() -> None:
    for mode, quoted in (("off", [None, None]), ("first", ["m", None]), ("all", ["m", "m"])):
        adapter = Recorder()
        adapter.reply_to_mode = mode
        send(adapter, Delivery("k", "c", "aaaaaaa bbbbbbb", reply_to="m"))
        assert [call[3] for call in adapter.calls] == quoted


def test_waits_double_up_to_a_limit_and_respect_the_platform() -> None:
    backoff = Backoff(1.0, 10.0, jitter=0.5, chance=lambda: 0.0)
    assert [backoff.next_s() for _ in range(6)] == [1.0, 2.0, 4.0, 8.0, 10.0, 10.0]
    assert backoff.next_s(at_least_s=99.0) == 99.0
    backoff.reset()
    assert Backoff(1.0, jitter=0.5, chance=lambda: 1.0).next_s() == 0.5
    assert backoff.next_s() == 1.0


def test_what_a_platform_cannot_do_is_said() -> None:
    adapter = Recorder()
    part = Part(Delivery("k", "c", ""), "")
    asyncio.run(adapter.post_file(part, MediaFile(Path("/x/photo.png"), "image")))
    assert "photo.png" in adapter.calls[0][2]
    with pytest.raises(NotSent, match="cannot delete"):
        asyncio.run(adapter.delete("1", part.delivery))
