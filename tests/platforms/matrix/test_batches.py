"""Batches of any form: a homeserver, or a user of one, must not be able to stop the reading of events."""

from __future__ import annotations

import asyncio
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hermes.gateway.engine.ports import MaybeSent
from hermes.platforms.testing import RecordingInbox
from tests.platforms.matrix.bots import make_adapter

OWN, ALICE, ROOM = "@bot:example.org", "@alice:example.org", "!room:example.org"
WORDS = ("m.room.message", "m.room.member", "m.room.name", "m.text", "m.image", "m.thread", "m.replace", "join", "x")
KEYS = (
    *("type", "event_id", "sender", "state_key", "content", "unsigned", "prev_content", "membership", "displayname"),
    *("body", "msgtype", "m.relates_to", "rel_type", "m.in_reply_to", "m.mentions", "user_ids", "url", "info"),
    *("events", "timeline", "state", "limited", "prev_batch", "invite_state", "is_direct", "name", "topic"),
)
VALUES = (
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from((*WORDS, OWN, ALICE, "$e", "mxc://a/b"))
)
ANYTHING = st.recursive(
    VALUES | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.sampled_from(KEYS), inner, max_size=6),
    max_leaves=25,
)
EVENT = st.fixed_dictionaries(
    {
        "type": st.sampled_from(WORDS) | ANYTHING,
        "event_id": st.just("$e") | ANYTHING,
        "sender": st.just(ALICE) | ANYTHING,
        "content": ANYTHING,
        "state_key": st.just(OWN) | ANYTHING,
    }
)
EVENTS = st.lists(EVENT | ANYTHING, min_size=1, max_size=4)
JOINED = st.fixed_dictionaries(
    {
        "timeline": st.fixed_dictionaries({"events": EVENTS, "limited": st.booleans() | ANYTHING}),
        "state": st.fixed_dictionaries({"events": EVENTS}) | ANYTHING,
    }
)
INVITED = st.fixed_dictionaries({"invite_state": st.fixed_dictionaries({"events": EVENTS}) | ANYTHING})
BATCHES = st.fixed_dictionaries(
    {
        "next_batch": st.just("s1"),
        "account_data": st.fixed_dictionaries({"events": EVENTS}),
        "rooms": st.fixed_dictionaries(
            {
                "join": st.fixed_dictionaries({ROOM: JOINED}, optional={"": ANYTHING, "!x": ANYTHING}),
                "invite": st.fixed_dictionaries({}, optional={"!y:x": INVITED, "!z:x": ANYTHING}),
            }
        ),
    }
)
GARBAGE = st.dictionaries(st.sampled_from(("next_batch", "account_data", "rooms")), ANYTHING)


class OneBatch:
    """A homeserver with one batch, which says nothing more about rooms."""

    def __init__(self, batch: Any) -> None:
        self._batch = batch
        self.sent = 0

    async def whoami(self) -> str:
        """Return the id of the bot."""
        return OWN

    async def display_name(self, user_id: str) -> str:
        """Return no name."""
        return ""

    async def sync(self, since: str | None, search: object, timeout_s: float) -> Any:
        """Return the batch after the first request, and after that nothing more."""
        if since is None:
            return {"next_batch": "s0"}
        if since != "s0":
            await asyncio.Event().wait()
        return self._batch

    async def send(self, *_: object) -> str:
        """Count a message of the bot."""
        self.sent += 1
        return "$sent"

    async def nothing(self, *_: object) -> dict[str, Any]:
        """Return nothing."""
        return {}

    joined_members = state = event = account_data = set_account_data = messages = join = close = nothing


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(batch=BATCHES | GARBAGE)
def test_batch_of_any_form_is_processed_or_has_no_token(batch: Any) -> None:
    async def test(home: Path) -> None:
        adapter, inbox = make_adapter(home, "http://127.0.0.1:1", "token"), RecordingInbox()
        adapter._api = OneBatch(batch)  # type: ignore[assignment]
        adapter.receive = inbox
        await adapter._connect()
        assert adapter._polling is not None
        adapter._polling.cancel()
        token = batch.get("next_batch")
        try:
            await adapter._sync.step()
        except MaybeSent:
            assert not isinstance(token, str) or not token
        await adapter.stop()
        assert all(each.source.user_id and each.message_id for each in inbox.accepted)

    with tempfile.TemporaryDirectory() as home:
        asyncio.run(test(Path(home)))
