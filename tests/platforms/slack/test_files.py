"""Files that people send: within limits, only from Slack, and the message arrives in any case."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.engine.ports import Inbound
from hermes.platforms.testing.harness import eventually
from tests.platforms.slack.adapters import connected
from tests.platforms.slack.server import TOKEN, SlackServer
from tests.platforms.strangers import no_user_may_talk


def receive(tmp_path: Path, server: SlackServer, *files: Any) -> Inbound:
    """Let a user send files, and return the message that the gateway gets."""

    async def scenario() -> Inbound:
        async with connected(tmp_path, server) as (_, inbox):
            server.say("look", subtype="file_share", files=list(files))
            await eventually(lambda: len(inbox.accepted) == 1, "the message arrives")
            return inbox.accepted[0]

    return asyncio.run(scenario())


def stored(tmp_path: Path) -> list[Path]:
    return [each for each in (tmp_path / "media").rglob("*") if each.is_file()]


def file(server: SlackServer, name: str = "a.txt", **fields: Any) -> dict[str, Any]:
    return {"name": name, "mimetype": "text/plain", "url_private": f"{server.origin}/files/{name}", **fields}


def test_file_is_stored_with_the_token_of_the_bot(tmp_path: Path, server: SlackServer) -> None:
    server.files["a.txt"] = ("text/plain", b"some data")
    inbound = receive(tmp_path, server, file(server))
    (media,) = inbound.media
    path = Path(media["path"])
    assert (inbound.text, inbound.message_type, path.read_bytes()) == ("look", "file", b"some data")
    assert (media["name"], media["mime"], path.suffix) == ("a.txt", "text/plain", ".txt")
    assert path.stat().st_mode & 0o777 == 0o600
    (headers,) = server.called("file a.txt")
    assert headers["Authorization"] == f"Bearer {TOKEN}"


def test_file_of_a_user_who_may_not_talk_is_not_fetched(tmp_path: Path, server: SlackServer) -> None:
    server.files["a.txt"] = ("text/plain", b"some data")

    async def scenario() -> None:
        async with connected(tmp_path, server) as (adapter, inbox):
            adapter._context = replace(adapter._context, may_talk=no_user_may_talk)
            server.say("", subtype="file_share", files=[file(server)])
            await eventually(lambda: len(inbox.accepted) == 1, "the message arrives")
            assert inbox.accepted[0].text == "[files that were not received]"

    asyncio.run(scenario())
    assert server.called("file a.txt") == []
    assert stored(tmp_path) == []


def test_file_that_is_delivered_again_is_fetched_once(tmp_path: Path, server: SlackServer) -> None:
    server.files["a.txt"] = ("text/plain", b"some data")

    async def scenario() -> None:
        async with connected(tmp_path, server) as (_, inbox):
            ts = server.say("look", files=[file(server)])
            server.say("look", files=[file(server)], ts=ts)
            await eventually(lambda: inbox.calls == 2, "the message arrives twice")
            assert len(inbox.accepted) == 1

    asyncio.run(scenario())
    assert len(server.called("file a.txt")) == 1


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"url_private": None}, "Slack gives no address for it"),
        ({"url_private": ["https://files.slack.com/x"]}, "Slack gives no address for it"),
        ({"url_private": "https://evil.example/x"}, "it is not on a server of Slack"),
        ({"url_private": "https://slack.com.evil.example/x"}, "it is not on a server of Slack"),
        ({"url_private": "https://evilslack.com/x"}, "it is not on a server of Slack"),
        ({"url_private": "https://files.slack.com@evil.example/x"}, "it is not on a server of Slack"),
        ({"url_private": "http://files.slack.com/x"}, "it is not on a server of Slack"),
        ({"url_private": "file:///etc/passwd"}, "it is not on a server of Slack"),
        ({"url_private": "http://[::1"}, "it is not on a server of Slack"),
        ({"url_private": "http://127.0.0.1:1/x"}, "it is not on a server of Slack"),
        ({"size": 2000}, "it is larger than 0 MB"),
    ],
)
def test_file_that_is_not_fetched_is_named_in_the_text(
    tmp_path: Path, server: SlackServer, fields: dict[str, Any], reason: str
) -> None:
    inbound = receive(tmp_path, server, file(server, **fields))
    assert inbound.text == f"look\n[the file a.txt was not received: {reason}]"
    assert (list(inbound.media), stored(tmp_path)) == ([], [])


@pytest.mark.parametrize(
    ("content", "failures", "reason"),
    [
        (("text/plain", b"x" * 1001), [], "the file is larger than 0 MB"),
        (("text/html", b"<html>log in</html>"), [], "the bot may not read files"),
        (("text/plain", b""), [302], "Slack returned the status 302"),
        (("text/plain", b""), [404], "Slack returned the status 404"),
        (("text/plain", b""), [500, 429, 500], "Slack returned the status 500"),
    ],
)
def test_server_that_does_not_give_the_file_does_not_hold_the_message_back(
    tmp_path: Path,
    server: SlackServer,
    content: tuple[str, bytes],
    failures: list[int],
    reason: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("hermes.platforms.slack.files._PAUSE_S", 0.01)
    server.files["a.txt"] = content
    server.fail("file", *failures)
    inbound = receive(tmp_path, server, file(server))
    assert inbound.text == f"look\n[the file a.txt was not received: {reason}]"
    assert stored(tmp_path) == []


def test_page_that_a_user_sends_is_a_file_and_a_failure_is_repeated(tmp_path: Path, server: SlackServer) -> None:
    server.files["a.html"] = ("text/html", b"<html>")
    server.fail("file", 503)
    inbound = receive(tmp_path, server, file(server, "a.html", mimetype="text/html"))
    assert [Path(each["path"]).read_bytes() for each in inbound.media] == [b"<html>"]


def test_hostile_names_stay_names(tmp_path: Path, server: SlackServer) -> None:
    server.files["x"] = ("text/plain", b"1")
    url = f"{server.origin}/files/x"
    inbound = receive(
        tmp_path,
        server,
        {"name": "../../\n.bashrc", "mimetype": "a\nb", "url_private": url},
        {"name": "n" * 9000, "mimetype": ["x"], "url_private": url},
        {"name": {"a": 1}, "url_private": None},
        "no file",
    )
    assert [each["name"] for each in inbound.media] == ["../../_.bashrc", "n" * 100]
    assert {each["mime"] for each in inbound.media} == {"application/octet-stream", "['x']"}
    assert {each.parent for each in stored(tmp_path)} == {tmp_path / "media" / "slack"}
    assert inbound.text == "look\n[the file {'a': 1} was not received: Slack gives no address for it]"
