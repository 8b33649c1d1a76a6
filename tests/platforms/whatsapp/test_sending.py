"""What the platform has of a message: said by its responses, and by its reports."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.delivery.receipts import PartlySent
from hermes.gateway.engine.ports import Delivery, MaybeSent, NotSent
from hermes.platforms.base.adapter import Part
from hermes.platforms.base.media import MediaFile, MediaKind
from hermes.platforms.whatsapp.graph import WINDOW_REASON
from tests.platforms.local_gateway import run
from tests.platforms.whatsapp.meta import TOKEN, USER, message, refusal
from tests.platforms.whatsapp.numbers import number


def test_a_long_text_is_sent_in_parts_of_which_the_first_quotes(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            text = "\n".join(f"line {each}" for each in range(1500))
            ids = await phone.send(text, reply_to="wamid.1")
            assert len(ids) == len(phone.meta.sent) == 4
            assert max(map(len, phone.meta.texts)) <= 4096
            assert "\n".join(phone.meta.texts) == text
            assert [each.get("context") for each in phone.meta.sent] == [{"message_id": "wamid.1"}, None, None, None]
            first = phone.meta.sent[0]
            assert (first["messaging_product"], first["to"], first["type"]) == ("whatsapp", USER, "text")

    run(test())


@pytest.mark.parametrize(("mode", "quotes"), [("off", 0), ("first", 1), ("all", 2)])
def test_the_setting_says_which_parts_quote(tmp_path: Path, mode: str, quotes: int) -> None:
    async def test() -> None:
        async with number(tmp_path, reply_to_mode=mode) as phone:
            await phone.send("x " * 3000, reply_to="wamid.1")
            assert sum("context" in each for each in phone.meta.sent) == quotes

    run(test())


@pytest.mark.parametrize("code", [4, 80007, 130429, 131048, 131056])
def test_a_limit_is_no_final_failure(tmp_path: Path, code: int) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            phone.meta.answers.append(refusal(code))
            with pytest.raises(NotSent) as failed:
                await phone.send("hi")
            assert (failed.value.is_final, failed.value.retry_after_s) == (False, 10.0)

    run(test())


@pytest.mark.parametrize(
    ("answer", "is_final"),
    [(refusal(131047), True), (refusal(131026), True), (refusal(190, 401), False), (refusal(131016, 503), False)],
)
def test_a_refusal_says_whether_trying_again_helps(tmp_path: Path, answer: Any, is_final: bool) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            phone.meta.answers.append(answer)
            with pytest.raises(NotSent) as failed:
                await phone.send("hi")
            assert failed.value.is_final is is_final
            assert phone.meta.sent == []

    run(test())


def test_a_server_error_leaves_the_message_in_doubt(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            phone.meta.answers += [(500, {"error": {"code": {"x": 1}}}), (200, {"messages": []})]
            for key in ("k1", "k2"):
                with pytest.raises(MaybeSent):
                    await phone.send("hi", key)

    run(test())


def test_a_message_after_24_hours_fails_although_the_platform_accepted_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path, confirm_s=20.0) as phone:
            error = {"code": 131047, "title": "Re-engagement message"}
            phone.meta.reports = {"status": "failed", "errors": [error]}
            with pytest.raises(NotSent) as failed:
                await phone.send("hi")
            assert (failed.value.reason, failed.value.is_final) == (WINDOW_REASON, True)
            phone.meta.reports = {"status": "failed", "errors": [{"code": 131056, "title": "Pair rate limit"}]}
            with pytest.raises(NotSent) as limited:
                await phone.send("hi", "k2")
            assert limited.value.is_final is False

    run(test())


def test_a_failure_in_the_middle_keeps_the_parts_before_it(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            phone.meta.answers += ["", refusal(130429)]
            with pytest.raises(PartlySent) as failed:
                await phone.send("x " * 3000)
            assert failed.value.finished_ids == ["wamid.out1"]
            ids = await phone.send("x " * 3000, preview={"finished_ids": failed.value.finished_ids})
            assert ids == ["wamid.out1", "wamid.out2"]

    run(test())


def test_a_lost_response_is_settled_by_the_report(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path, doubt_s=20.0) as phone:
            phone.meta.answers += ["lost", ""]
            phone.meta.reports = {"status": "sent"}
            assert await phone.send("x " * 3000) == ["wamid.out1", "wamid.out2"]
            phone.meta.answers.append("lost")
            phone.meta.reports = {"status": "failed", "errors": [{"code": 131026}]}
            with pytest.raises(NotSent, match="131026"):
                await phone.send("hi", "k2")

    run(test())


def test_a_message_of_a_process_that_died_is_found_by_its_reports(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            delivery = Delivery("k1", USER, "x " * 3000)
            assert await phone.adapter.find(delivery) is None
            await phone.adapter.send(delivery)
            first, second = phone.meta.sent
            failure = {"status": "failed", "errors": [{"code": 130429}]}
            await asyncio.to_thread(phone.meta.report, first, **failure)
            assert await phone.adapter.find(delivery) is None
            for each in (second, first):
                await asyncio.to_thread(phone.meta.report, each, status="delivered")
            receipt = await phone.adapter.find(delivery)
            assert receipt is not None
            assert list(receipt.message_ids) == [first["id"], second["id"]]

    run(test())


def test_reports_are_not_waited_for_where_none_arrive(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path, confirm_s=0.05) as phone:
            for each in range(3):
                await phone.send("hi", f"k{each}")
            phone.adapter._confirm_s = 1000.0
            await phone.send("hi", "k4")
            await asyncio.to_thread(phone.meta.report, phone.meta.sent[0], status="sent")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.3):
                    await phone.send("hi", "k5")

    run(test())


@pytest.mark.parametrize(
    ("name", "kind", "shown_as"),
    [
        ("a.png", "image", "image"),
        ("a.webp", "image", "document"),
        ("a.mp3", "audio", "audio"),
        ("a.bin", "file", "document"),
    ],
)
def test_files_are_uploaded_and_sent_as_what_the_platform_shows(
    tmp_path: Path, name: str, kind: MediaKind, shown_as: str
) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            path = tmp_path / name
            path.write_bytes(b"content of the file")
            part = Part(Delivery("k1", USER, ""), "")
            assert await phone.adapter.post_file(part, MediaFile(path, kind, "look")) == "wamid.out1"
            (sent,) = phone.meta.sent
            assert (sent["type"], sent[shown_as]["id"]) == (shown_as, "media1")
            assert sent[shown_as].get("filename") == (name if shown_as == "document" else None)
            assert sent[shown_as].get("caption") == (None if shown_as == "audio" else "look")
            assert b"content of the file" in phone.meta.uploads[0]
            assert TOKEN.encode() not in phone.meta.uploads[0]
            with pytest.raises(NotSent) as missing:
                await phone.adapter.post_file(part, MediaFile(tmp_path / "none", kind))
            assert missing.value.is_final

    run(test())


def test_typing_marks_the_last_message_as_read_and_is_not_repeated_at_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            await phone.adapter.typing(USER, None)
            assert await asyncio.to_thread(phone.meta.notify, {"messages": [message("hi", "wamid.7")]}) == 200
            for _ in range(3):
                await phone.adapter.typing(USER, None)
            (read,) = phone.meta.marked_read
            assert (read["message_id"], read["typing_indicator"]) == ("wamid.7", {"type": "text"})

    run(test())
