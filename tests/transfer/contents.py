"""The contents of the stores in these tests, and the comparison of two stores."""

from __future__ import annotations

from typing import Any

from hermes.state.operations import read
from hermes.state.provider import SessionDBProvider
from hermes.state.transfer.migration import Migration
from hermes.state.transfer.verification import Difference, verify
from tests.support.clock import FakeClock
from tests.support.conversations import ids
from tests.support.stores import engine_of

CALLS = [{"id": "c1", "function": {"name": "terminal", "arguments": '{"command": "ls"}'}}]
CONTENTS: list[Any] = [
    "plain words",
    "",
    None,
    "nul \0 inside",
    "\x01json: begins as what is stored otherwise",
    "\x00json: begins as older files did",
    "a lone surrogate \ud800 and a pair 😀",
    "two surrogates \ud83d\ude00 beside their character 😀",
    "中文 한국어 ß Ünïcödé \u2028 \x85 '\"\\",
    [{"type": "text", "text": "a part with \0"}, {"type": "image_url", "image_url": {"url": "data:x"}}],
    {"a": {"b": [1, 2.5, None, True]}},
    "blanks at the end   ",
    "x" * 70_000,
]


def fill(store: SessionDBProvider, clock: FakeClock) -> None:
    """Add rows to every table of a store."""
    store.create_session(
        "alone", "cli", model="m", system_prompt="Be kind.\0", cwd="/home/\udcff", model_config={"a": 1}
    )
    for number, content in enumerate(CONTENTS):
        clock.advance(0.25)
        uid = f"given-{number}" if number % 2 else None
        store.append_message("alone", "user" if number % 2 else "assistant", content, uid=uid)
    store.append_message(
        "alone", "assistant", "calls", tool_calls=CALLS, reasoning="why\0", reasoning_details=[{"x": "\ud83d\ude00"}]
    )
    store.append_message(
        "alone", "tool", "listed", tool_name="terminal", tool_call_id="c1", token_count=3, platform_message_id="p1"
    )
    store.set_session_title("alone", "One alone")
    store.set_session_pinned("alone")
    for number in range(3):
        clock.advance(1)
        store.update_token_counts("alone", input_tokens=number, model="m", estimated_cost_usd=0.1, api_call_count=1)

    store.create_session("a-child-before-its-parent", "cli")
    store.create_session("z-parent", "telegram", user_id="7")
    store.append_message("z-parent", "user", "compress me")
    store.end_session("z-parent", "compression")
    clock.advance(1)
    store.create_session("b-child", "telegram", user_id="7", parent_session_id="z-parent")
    store.append_message("b-child", "user", "went on")
    store.create_session("c-branch", "telegram", user_id="7", parent_session_id="b-child", child_kind="branch")
    store.set_session_archived("c-branch")

    store.create_session("rewound", "discord", user_id="9")
    message_ids = [store.append_message("rewound", "user", f"turn {number}") for number in range(6)]
    store.rewind_to_message("rewound", message_ids[3])
    store.append_message("rewound", "user", "another way")
    store.request_handoff("rewound", "slack")

    store.import_session({"id": "waits", "source": "cli", "parent_session_id": "not here", "messages": []})
    engine_of(store).write(lambda tx: tx.run("UPDATE sessions SET imported_from = 'ada.jsonl' WHERE id = 'waits'"))
    store.create_session("empty", "cli")
    store.end_session("empty", "user_exit")
    store.set_meta("mine", "kept \0 whole")
    assert store.try_acquire_compression_lock("alone", "me")


def talk(store: SessionDBProvider, sessions: int, messages: int) -> None:
    """Create sessions that take turns, so that their messages are mixed."""
    for number in range(sessions):
        store.create_session(f"talk-{number:03}", "cli")
    for turn in range(messages):
        for number in range(sessions):
            store.append_message(f"talk-{number:03}", "user", f"turn {turn} of {number}")


def migrate(origin: SessionDBProvider, target: SessionDBProvider, *, resume: bool = False) -> Migration:
    """Copy everything, and finish."""
    migration = Migration(origin, target)
    migration.begin(resume=resume)
    assert migration.copy_all() == []
    migration.finish()
    return migration


def differences(origin: SessionDBProvider, target: SessionDBProvider) -> list[Difference]:
    """Return the differences that a comparison by hashes finds."""
    migration = Migration(origin, target)
    return list(verify(migration.origin, migration.destination))


def snapshot(store: SessionDBProvider, *, with_ids: bool = True) -> dict[str, Any]:
    """Return everything that a store holds, without ids that it assigned."""
    sessions = sorted(ids(store.search_sessions(limit=-1)))
    found = {each: store.export_session(each, include_inactive=True) for each in sessions}
    usage = {each: [{**event, "id": 0} for event in store.list_usage_events(each)] for each in sessions}
    rewinds = {each: [{**rewind, "id": 0} for rewind in store.list_rewinds(each)] for each in sessions}
    tools = {each: store.get_session_tools(each) for each in sessions}
    if not with_ids:
        for session in found.values():
            assert session is not None
            session["messages"] = [{**message, "id": 0} for message in session["messages"]]
        rewinds = {each: [{**rewind, "target_message_id": 0} for rewind in some] for each, some in rewinds.items()}
    return {
        "sessions": found,
        "usage": usage,
        "rewinds": rewinds,
        "tools": tools,
        "listed": ids(store.list_sessions_rich(limit=100, include_children=True, include_archived=True)),
        "links": read(store, lambda tx: tx.rows("SELECT session_id, parent_session_id FROM pending_links")),
        "mine": store.get_meta("mine"),
    }
