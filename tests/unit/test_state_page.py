"""The page about the store agrees with the rows and ids that the store returns."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path

import pytest

from hermes.state.usage.counters import COSTS, COUNTERS
from hermes_state import SessionDB, new_session_id

PAGE = (Path(__file__).parents[2] / "docs" / "reference" / "state.md").read_text()
STRUCTURED = {"details": ["a", 1]}


def paragraph(name: str) -> str:
    """Return a paragraph by the words in bold at its beginning, as one line."""
    found = re.search(rf"^\*\*{name}\.\*\* (.*?)\n\n", PAGE, re.MULTILINE | re.DOTALL)
    assert found, f"docs/reference/state.md has no paragraph {name}"
    return " ".join(found[1].split())


def names_in(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)


@pytest.fixture
def rows(tmp_path: Path) -> dict[str, Mapping[str, object]]:
    """Return a row of each kind, by its word on the page."""
    with SessionDB(tmp_path / "state.db") as db:
        db.create_session("s", "cli", model_config={"temperature": 0})
        db.append_message(
            "s",
            "assistant",
            [{"type": "text", "text": "hi"}],
            tool_calls=[{"id": "c", "function": {"name": "terminal", "arguments": "{}"}}],
            reasoning_details=STRUCTURED,
            codex_reasoning_items=STRUCTURED,
            codex_message_items=STRUCTURED,
        )
        db.update_token_counts("s", input_tokens=1)
        session = db.get_session("s")
        assert session is not None
        return {"session": session, "message": db.get_messages("s")[0], "booking": db.list_usage_events("s")[0]}


@pytest.mark.parametrize("kind", ["session", "message", "booking"])
def test_page_lists_every_column_of_a_row(rows: dict[str, Mapping[str, object]], kind: str) -> None:
    listed = re.search(rf"\bA {kind} has (.*?)\. ", paragraph("Columns"))
    assert listed
    names = names_in(listed[1])
    if kind == "booking":
        assert "the counters of tokens and the two costs" in listed[1]
        names = list(dict.fromkeys([*names, *COUNTERS, *COSTS]))
    assert len(names) == len(set(names))
    assert set(names) == rows[kind].keys()


def test_page_says_which_columns_are_json_text(rows: dict[str, Mapping[str, object]]) -> None:
    told = re.search(r"([^;.]*) are values; (.*?) are JSON text\.", paragraph("Columns"))
    assert told
    everything = {**rows["session"], **rows["message"]}
    values, texts = names_in(told[1])[-2:], names_in(told[2])
    assert values == ["content", "tool_calls"]
    assert all(isinstance(everything[name], list) for name in values)
    parsed = {name: json.loads(str(everything[name])) for name in texts}
    assert parsed == {"model_config": {"temperature": 0}} | dict.fromkeys(texts[1:], STRUCTURED)


def test_page_shows_an_id_as_it_is_made() -> None:
    shown = re.search(r"`new_session_id\(\)` returns one such as `(\w+)`", paragraph("Ids"))
    assert shown
    assert re.sub("[0-9a-f]", "0", shown[1]) == re.sub("[0-9a-f]", "0", new_session_id())
