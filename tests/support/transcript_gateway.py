"""States with a gateway for the transcripts of the documents."""

from __future__ import annotations

import subprocess
from shutil import which

from hermes.state.lanes.queue.leases import turn_of_one
from hermes.state.lanes.types import Intent, NewSession, Start
from tests.support.plainsql import change
from tests.support.transcript_home import Home
from tests.support.waiting import wait_until

READY = "Ctrl-C drains and stops it."
LANE = "agent:main:telegram:dm:4711"
ORIGIN = {"platform": "telegram", "chat_id": "4711", "chat_type": "dm", "user_id": "4711"}


def gateway_running(home: Home) -> None:
    """A gateway named desk."""
    written = home.path / "gateway.out"
    with written.open("wb") as output:
        process = subprocess.Popen(
            [*home.entry("hermes", 0), "gateway", "run", "--node", "desk"],
            env=home.environment(),
            cwd=home.work,
            stdout=output,
        )
    home.resources.callback(_stop, process)
    wait_until(lambda: READY in written.read_text() or process.poll() is not None, "the gateway is ready")
    assert process.poll() is None, "the gateway did not start"


def gateway_http(home: Home) -> None:
    """The gateway of `gateway_running` with the HTTP API, on a free port, and a file with the key of a user."""
    key = "0f5e3c1d9b7a48266482a7b9d1c3e5f0"
    home.configure(f"agent:\n  auto_title: false\napi_server:\n  enabled: true\n  port: 0\n  keys:\n    ann: {key}\n")
    (home.work / "key.txt").write_text(f"Authorization: Bearer {key}\n")
    gateway_running(home)
    port = (home.path / "gateway.out").read_text().partition("http://127.0.0.1:")[2].split()[0]
    curl = home.bin / "curl"
    curl.write_text(f'#!/bin/sh\nexec {which("curl")} --connect-to 127.0.0.1:8642:127.0.0.1:{port} "$@"\n')
    curl.chmod(0o700)


def gateway_letters(home: Home) -> None:
    """A message that was given up, and a reply that came too late."""
    home.hermes.mkdir(mode=0o700)
    with home.open() as db:
        payload = {"text": "Please restart the print server.", "source": ORIGIN}
        db.inbox.accept(LANE, payload, platform="telegram", chat_id="4711", message_id="812")
        for _ in range(3):
            claim = db.turns.claim_next("desk/0badcafe", choose=turn_of_one)
            assert claim is not None
            assert claim.turn_id is not None
            db.turns.fail(claim.lease, claim.turn_id, "MemoryError in the gateway")
        late = Intent("reply:1", {"chat_id": "99", "text": "Done.", "reply_to": "33"}, "telegram", session_key=LANE)
        db.outbox.expire(db.outbox.intend(late)["id"])


def gateway_asks(home: Home) -> None:
    """A request of permission that waits."""
    home.hermes.mkdir(mode=0o700)
    place = str(home.hermes / "workspaces" / "4f2a")
    with home.open() as db:
        session = NewSession("20261116_095500_5be01f77", "telegram", user_id="4711")
        db.lanes.resolve(LANE, lambda *_: Start(session, {"platform": "telegram", "origin": ORIGIN}))
        db.approvals.request(
            LANE,
            session.session_id,
            "terminal",
            '{"command": "rm -r build"}',
            ttl_seconds=86_400,
            directory=place,
            subject="rm -r build",
            summary="run rm -r build",
            detail=f"rm -r build\n\nin {place}\n\nCheck this before you allow it:\n- it uses rm",
            risk="high",
        )
    change(home.database, "UPDATE approvals SET id = '3A7QXV'")


def _stop(process: subprocess.Popen[bytes]) -> None:
    process.kill()
    process.wait()
