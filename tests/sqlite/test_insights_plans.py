"""Insights read only the rows of their period, however many there are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.usage.insights import read_insights
from hermes.state.usage.period import last_days
from hermes_state import SessionDB
from tests.sqlite.statements import Statement, recorded
from tests.support.clock import NOW, FakeClock


@pytest.fixture(scope="module", params=[None, "cli"])
def statements(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Statement]]:
    """The statements of insights into all sessions, or into those of one source."""
    path: Path = tmp_path_factory.mktemp("insights") / "state.db"
    with recorded() as record, SessionDB(path, clock=FakeClock()) as db:
        for number in range(50):
            db.create_session(f"s{number}", "cli")
            db.append_messages(f"s{number}", [{"role": "user", "content": "hello"}] * 4)
            db.update_token_counts(f"s{number}", input_tokens=1)
        with record.listening() as run:
            read_insights(db, last_days(7, NOW), source=request.param)
        yield [each for each in run if each.sql.lstrip().startswith(("SELECT", "WITH"))]


def test_no_table_is_read_completely(statements: list[Statement]) -> None:
    steps = [step for each in statements for step in each.plan()]
    assert not [step for step in steps if step.startswith("SCAN") and step.split()[1] in ("s", "c", "p", "m", "u", "t")]
    assert not [step for step in steps if "AUTOMATIC" in step]


@pytest.mark.parametrize(
    ("table", "index"),
    [("s", "active_tick>?"), ("m", "session_id=?"), ("u", "session_id=?"), ("t", "session_id=?")],
)
def test_every_table_is_reached_by_its_index(statements: list[Statement], table: str, index: str) -> None:
    steps = [step for each in statements for step in each.plan() if step.startswith(f"SEARCH {table} ")]
    others = [step for step in steps if index not in step]
    assert len(others) < len(steps)
    # Single sessions by their ids, and usage events by their time.
    assert all("id=?)" in step or "at>? AND at<?" in step for step in others), others


def test_usage_events_are_found_by_their_time(statements: list[Statement]) -> None:
    (booked,) = [each for each in statements if "FROM usage_events u CROSS JOIN" in each.sql]
    assert "idx_usage_events_at" in booked.plan()[0]
