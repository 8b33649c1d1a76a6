"""The text of a lane in `sessions.json` is the JSON of its entry."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from hermes.gateway import SessionSource
from hermes.gateway.store.files.entry_text import format_row
from hermes.gateway.store.lane_entries import IMPORTED_COUNTERS, entry_from_row
from hermes.state.lanes.types import LaneRow
from tests.gateway.test_records import SOURCES

TEXTS = st.text(max_size=10)
TIMES = st.floats(0, 4e9)
COUNTS = st.integers(0, 10**12)
ROWS = st.fixed_dictionaries(
    {
        "session_key": st.text(min_size=1, max_size=10),
        "session_id": st.text(min_size=1, max_size=10),
        "created_at": TIMES,
        "updated_at": TIMES,
        "platform": st.sampled_from([None, "telegram", "lost_plugin"]),
        "chat_type": TEXTS,
        "display_name": st.none() | TEXTS,
        "origin": st.none() | SOURCES.map(SessionSource.to_dict),
        "resume_reason": st.none() | TEXTS,
        "auto_reset_reason": st.none() | TEXTS,
        "last_resume_marked_at": st.none() | TIMES,
        "extra": st.just({}) | st.builds(lambda count: {IMPORTED_COUNTERS: {"input_tokens": count}}, COUNTS),
        "estimated_cost_usd": st.none() | st.floats(0, 1e6),
        "cost_status": st.none() | TEXTS,
        "cursor": st.just(""),
        "owner": st.none(),
        "ended_at": st.none(),
        **dict.fromkeys(
            (
                "suspended",
                "resume_pending",
                "is_fresh_reset",
                "was_auto_reset",
                "reset_had_activity",
                "expiry_finalized",
            ),
            st.booleans(),
        ),
        **dict.fromkeys(
            (
                "last_prompt_tokens",
                "expiry_failures",
                "restart_count",
                "input_tokens",
                "output_tokens",
                "cache_read_tokens",
                "cache_write_tokens",
                "message_count",
            ),
            COUNTS,
        ),
    }
)


@given(ROWS)
def test_text_of_a_row_is_the_json_of_its_entry(row: Any) -> None:
    lane: LaneRow = row
    entry = entry_from_row(lane)
    read = json.loads(b"{" + format_row(lane) + b"}")
    assert read == {entry.session_key: json.loads(json.dumps(entry.to_dict()))}
    assert list(read[entry.session_key]) == list(entry.to_dict())
