"""What Meta sends: only signed notifications are read, and only what is stored is acknowledged."""

from __future__ import annotations

import asyncio
import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import httpx
import pytest

from hermes.errors import ConfigError
from hermes.gateway.engine.ports import Admission, Inbound, NotSent
from hermes.gateway.platform_config import PlatformConfig
from hermes.platforms.base.context import AdapterContext
from hermes.platforms.base.media import MediaFolder
from hermes.platforms.whatsapp.adapter import make
from tests.platforms.local_gateway import run, until
from tests.platforms.strangers import no_user_may_talk
from tests.platforms.whatsapp.meta import (
    NUMBER,
    OTHER_NUMBER,
    SECRET,
    TOKEN,
    USER,
    VERIFY,
    message,
    notification,
    refusal,
    sign,
)
from tests.platforms.whatsapp.numbers import PATH, Number, number

PICTURE = b"\x89PNG\r\n picture"


def picture(message_id: str = "wamid.1", media_id: str = "m1", **more: Any) -> dict[str, Any]:
    """A picture in a notification."""
    about = {"id": media_id, "mime_type": "image/png", "sha256": "x", "caption": "look", **more}
    return {"from": USER, "id": message_id, "type": "image", "image": about}


async def notify(phone: Number, *messages: dict[str, Any], **more: Any) -> int:
    """Send messages to the webhook and return the status."""
    return await asyncio.to_thread(phone.meta.notify, {"messages": list(messages)}, **more)


def test_only_notifications_that_the_app_has_signed_are_read(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            body = json.dumps(notification({"messages": [message("hi", "wamid.1")]})).encode()
            spaced = json.dumps(json.loads(body), indent=1).encode()
            for signature in (
                sign(body, "another secret"),
                sign(spaced),
                sign(body)[7:],
                "sha1=" + sign(body)[7:],
                "ä",
            ):
                assert await asyncio.to_thread(phone.meta.post, body, signature) == 403
            async with httpx.AsyncClient(base_url=phone.server.url, trust_env=False) as client:
                assert (await client.post(PATH, content=body)).status_code == 403
            assert phone.inbox.calls == 0
            assert await asyncio.to_thread(phone.meta.post, spaced) == 200
            assert phone.inbox.texts == ["hi"]

    run(test())


def test_the_webhook_is_confirmed_to_those_who_know_the_word(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone, httpx.AsyncClient(base_url=phone.server.url, trust_env=False) as client:
            asked = {"hub.mode": "subscribe", "hub.verify_token": VERIFY, "hub.challenge": "1158201444"}
            found = await client.get(PATH, params=asked)
            assert (found.status_code, found.text) == (200, "1158201444")
            assert found.headers["content-type"].startswith("text/plain")
            for wrong in ({"hub.verify_token": "guess"}, {"hub.verify_token": ""}, {"hub.mode": "unsubscribe"}):
                assert (await client.get(PATH, params={**asked, **wrong})).status_code == 403

    run(test())


def test_a_message_has_the_digits_the_name_and_what_it_quotes(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            (sent,) = await phone.send("Shall I deploy?")
            assert await notify(phone, message("yes", "wamid.1", context={"id": sent})) == 200
            inbound = phone.inbox.accepted[0]
            source = inbound.source
            assert (source.chat_id, source.user_id, source.user_name, source.chat_type) == (USER, USER, "Alice", "dm")
            assert (inbound.message_id, inbound.reply_to_text) == ("wamid.1", "Shall I deploy?")
            assert await notify(phone, message("once more", "wamid.2", f"+{USER}")) == 200
            assert phone.inbox.accepted[1].source.user_id == USER

    run(test())


def test_what_is_not_a_message_of_a_user_to_this_number_is_left_out(tmp_path: Path, caplog: Any) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            for sender in ("abc", "../1", "49170@g.us", "\u0661\u0662\u0663"):
                assert await notify(phone, message("no", "wamid.1", sender)) == 200
            assert await notify(phone, message("no", "wamid.1", group_id="g1")) == 200
            assert await notify(phone, message("no", "wamid.1"), number=OTHER_NUMBER) == 200
            assert await notify(phone, message("no", "wamid.1"), field="smb_message_echoes") == 200
            emoji = {"from": USER, "id": "wamid.2", "type": "reaction", "reaction": {"emoji": "x"}}
            assert await notify(phone, emoji, {"type": "unsupported", "from": USER, "id": "wamid.3"}) == 200
            assert phone.inbox.calls == 0

    run(test())
    assert OTHER_NUMBER in caplog.text


@pytest.mark.parametrize(
    ("kind", "about", "text"),
    [
        ("button", {"text": "Yes", "payload": "p"}, "Yes"),
        ("interactive", {"type": "button_reply", "button_reply": {"id": "1", "title": "No"}}, "No"),
        ("interactive", {"type": "list_reply", "list_reply": {"id": "1", "title": "Oak"}}, "Oak"),
        ("location", {"latitude": 52.5, "longitude": 13.4}, "[location: 52.5, 13.4]"),
    ],
)
def test_other_kinds_of_messages_are_read_as_text(tmp_path: Path, kind: str, about: dict[str, Any], text: str) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            assert await notify(phone, {"from": USER, "id": "wamid.1", "type": kind, kind: about}) == 200
            assert phone.inbox.texts == [text]

    run(test())


@pytest.mark.parametrize("kind", ["image", "audio", "video", "document", "sticker"])
def test_files_are_fetched_and_stored(tmp_path: Path, kind: str) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            phone.meta.files["m1"] = (f"{phone.meta.root}/files/1", PICTURE)
            about = {"id": "m1", "mime_type": "image/png; codecs=x", "caption": "look", "filename": "../../a.png"}
            assert await notify(phone, {"from": USER, "id": "wamid.1", "type": kind, kind: about}) == 200
            (inbound,) = phone.inbox.accepted
            (media,) = inbound.media
            assert Path(media["path"]).read_bytes() == PICTURE
            assert Path(media["path"]).parent == tmp_path / "media" / "whatsapp_cloud"
            assert (media["mime"], inbound.text) == ("image/png", "look")
            assert phone.meta.keys[-1] == f"Bearer {TOKEN}"

    run(test())


def test_the_file_of_a_message_that_comes_again_is_stored_once(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            phone.meta.files["m1"] = (f"{phone.meta.root}/files/1", PICTURE)
            phone.inbox.is_failing = True
            assert [await notify(phone, picture()) for _ in range(3)] == [503, 503, 503]
            phone.inbox.is_failing = False
            assert await notify(phone, picture()) == 200
            (inbound,) = phone.inbox.accepted
            phone.adapter._accepted.clear()  # as in another process
            assert await notify(phone, picture()) == 200
            assert [str(each) for each in (tmp_path / "media" / "whatsapp_cloud").iterdir()] == [
                inbound.media[0]["path"]
            ]

    run(test())


@pytest.mark.parametrize(
    "address",
    ["http://127.0.0.1:1/files/1", "https://lookaside.fbsbx.com.example.org/x", "https://a@lookaside.fbsbx.com/x", ""],
)
def test_the_token_goes_to_no_other_server(tmp_path: Path, address: str) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            phone.meta.files["m1"] = (address, PICTURE)
            assert await notify(phone, picture()) == 200
            (inbound,) = phone.inbox.accepted
            assert inbound.media == []
            assert inbound.text == (
                "look\n[a file could not be received: the address of the file is not one of the platform]"
            )

    run(test())


def test_a_file_of_a_user_who_may_not_talk_is_not_fetched(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            phone.adapter._context = replace(phone.adapter._context, may_talk=no_user_may_talk)
            assert await notify(phone, picture()) == 200
            assert phone.inbox.texts == ["look\n[a file that was not received]"]
            assert phone.inbox.accepted[0].media == []
            assert not (tmp_path / "media").exists()

    run(test())


def test_a_file_that_is_too_large_is_not_kept(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            phone.adapter._context.media.max_bytes = 1024 * 1024
            phone.meta.files["m1"] = (f"{phone.meta.root}/files/1", b"x" * (2 * 1024 * 1024))
            assert await notify(phone, picture()) == 200
            assert "larger than 1 MB" in phone.inbox.texts[0]
            assert list((tmp_path / "media" / "whatsapp_cloud").iterdir()) == []

    run(test())


def test_messages_of_a_user_keep_their_order_and_others_do_not_wait(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            may_go = asyncio.Event()
            order: list[str] = []

            async def slow(inbound: Inbound) -> Admission:
                if inbound.text == "first":
                    await may_go.wait()
                order.append(inbound.text)
                return Admission("accepted")

            phone.adapter.receive = slow
            waiting = [asyncio.create_task(notify(phone, message("first", "wamid.1")))]
            await until(lambda: bool(phone.adapter._order._last), "the first message to arrive")
            waiting.append(asyncio.create_task(notify(phone, message("second", "wamid.2"))))
            assert await notify(phone, message("of another", "wamid.3", "491700000000")) == 200
            may_go.set()
            await asyncio.gather(*waiting)
            assert order == ["of another", "first", "second"]

    run(test())


def test_the_user_learns_once_why_messages_are_refused(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:

            async def refuse(inbound: Inbound) -> Admission:
                return Admission("refused", "unauthorized", "Send this code to the operator: 1234")

            phone.adapter.receive = refuse
            for each in ("wamid.1", "wamid.2"):
                assert await notify(phone, message("hi", each)) == 200
            assert phone.meta.texts == ["Send this code to the operator: 1234"]

    run(test())


def test_a_stopped_adapter_leaves_no_webhook(tmp_path: Path) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            assert phone.adapter.describe() == f"+1 555-000-1111 (Oak), webhook at {PATH}"
            await phone.adapter.stop()
            assert await notify(phone, message("hi", "wamid.1")) == 404

    run(test())


def test_a_wrong_token_fails_the_start_and_is_never_shown(tmp_path: Path, caplog: Any) -> None:
    async def test() -> None:
        async with number(tmp_path) as phone:
            await phone.adapter.stop()
            said = f"Malformed access token {TOKEN}"
            phone.meta.handle = lambda *_: refusal(190, 401, said)  # type: ignore[method-assign]
            with pytest.raises(NotSent) as failed:
                await phone.adapter.start(phone.inbox)
            assert "error 190" in failed.value.reason
            assert TOKEN not in str(failed.value)

    run(test())
    assert TOKEN not in caplog.text


def test_settings_are_checked(tmp_path: Path) -> None:
    complete = {"phone_number_id": NUMBER, "app_secret": SECRET, "verify_token": VERIFY}
    for missing in complete:
        extra = {name: value for name, value in complete.items() if name != missing}
        config = PlatformConfig(enabled=True, token=TOKEN, extra=extra)
        with pytest.raises(ConfigError, match=missing):
            make(AdapterContext(config, tmp_path, MediaFolder(tmp_path, "w")))
    config = PlatformConfig(enabled=True, token=TOKEN, extra=complete)
    with pytest.raises(ConfigError) as failed:
        make(AdapterContext(config, tmp_path, MediaFolder(tmp_path, "w")))
    assert failed.value.hint == "set api_server.enabled: true"
