"""Every example of the reference page is true, before a message is indexed and after."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import ids, say, start
from tests.support.stores import Stores

PAGE = Path(__file__).parents[3] / "docs" / "reference" / "search.md"
PATIENCE_S = 10.0
FILLERS = 600


class Example(NamedTuple):
    """A row of the table."""

    text: str
    query: str
    found: str


EXAMPLES = [
    Example(*row)
    for row in re.findall(
        r"^\| `(.+?)` \| `(.+?)` \| (yes|no|inside) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE
    )
]


@pytest.fixture(scope="module", params=["unindexed", "indexed"])
def example_store(
    request: pytest.FixtureRequest, stores: Stores, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[SessionDBProvider, dict[str, int]]]:
    """Create a store with a session for each text of the table; no test changes it."""
    store = stores.open(tmp_path_factory.mktemp("examples"), "main", FakeClock(), read_only=False)
    found = {}
    for example in EXAMPLES:
        if example.text not in found:
            start(store, example.text)
            (found[example.text],) = say(store, example.text, example.text)
    if request.param == "indexed":
        start(store, "fillers")
        store.append_messages("fillers", [{"role": "user", "content": f"filler {n}"} for n in range(FILLERS)])
    yield store, found
    store.close()


def test_every_example_is_true(example_store: tuple[SessionDBProvider, dict[str, int]]) -> None:
    store, found = example_store
    wrong = []
    for example in EXAMPLES:
        results = store.search_messages(example.query, session_ids=[example.text], budget_s=PATIENCE_S)
        is_found = ids(results) == [found[example.text]]
        is_inside = any("no message here has the word" in repair for repair in results.repairs)
        expected = (example.found != "no", example.found == "inside", True, False)
        if (is_found, is_inside, results.complete, results.degraded) != expected:
            wrong.append((example, results))
    assert wrong == []


def test_matches_of_examples_are_marked(example_store: tuple[SessionDBProvider, dict[str, int]]) -> None:
    store, _ = example_store
    wrong = []
    for example in EXAMPLES:
        for hit in store.search_messages(example.query, session_ids=[example.text], budget_s=PATIENCE_S):
            is_negative = example.query.startswith("NOT ")
            plain = hit["snippet"].replace(">>>", "").replace("<<<", "")
            if (">>>" in hit["snippet"]) == is_negative or plain != example.text:
                wrong.append((example, hit["snippet"]))
    assert wrong == []


def test_the_table_of_examples_is_complete() -> None:
    rows = [
        line for line in PAGE.read_text(encoding="utf-8").splitlines() if re.search(r"\| (yes|no|inside) \|$", line)
    ]
    assert len(EXAMPLES) == len(rows) >= 40
