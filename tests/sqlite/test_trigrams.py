"""Parts of words, in any script, through the two indexes of a file."""

from __future__ import annotations

from pathlib import Path

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.query import analyze
from hermes.query.tree import Part
from hermes.state.sqlite.search import trigrams
from hermes.state.sqlite.search.expression import trigram_expression, word_expression
from hermes.state.sqlite.search.indexing import word_text
from hermes_state import SessionDB
from tests.support.conversations import say, start
from tests.support.plainsql import change, rows
from tests.support.searches import finds

ALPHABET = "ab é9ß-_/.\"'*(\n、記憶断裂言語한국어ไทยжж👍🏽ｗ"


@given(text=st.text(ALPHABET, max_size=40), start=st.integers(0, 40), length=st.integers(1, 12))
def test_every_part_of_a_text_matches_its_trigrams(text: str, start: int, length: int) -> None:
    part = analyze.fold_to_line(text)[start : start + length].strip()
    if not part:
        return
    with apsw.Connection(":memory:") as tables:
        tables.execute("CREATE VIRTUAL TABLE words USING fts5(content, tokenize='ascii')")
        tables.execute("CREATE VIRTUAL TABLE parts USING fts5(content, tokenize='trigram case_sensitive 1')")
        tables.execute("INSERT INTO words VALUES (?)", (word_text("user", "s", "cli", None, text),))
        tables.execute("INSERT INTO parts VALUES (?)", (trigrams.trigram_text(text),))
        for table, expression in (
            ("words", word_expression(Part(part)).text),
            ("parts", trigram_expression(Part(part))),
        ):
            if expression is not None:
                assert tables.execute(f"SELECT 1 FROM {table} WHERE {table} MATCH ?", (expression,)).fetchall()


@pytest.mark.parametrize(
    ("part", "asked"),
    [
        ("ab", []),
        ("abc", ["abc"]),
        ("abcd", ["abc", "bcd"]),
        ("ab cd", ["ab ", "b c", " cd"]),
        ("記憶断裂", []),
        ("記6憶", ["記6憶"]),
        ("断裂。記憶", ["断裂。", "裂。記", "。記憶"]),
        ("記憶断a", ["憶断a"]),
    ],
)
def test_no_trigrams_are_queried_within_scripts_without_spaces(part: str, asked: list[str]) -> None:
    assert trigrams.trigrams_to_query(part) == asked


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("Plain Text", "plain text"),
        ("記憶断裂", "記憶断裂"),
        ("記憶断裂記憶", "記憶記憶"),
        ("a記憶断裂言語b、ภาษาไทย", "a記憶言語b、ภาทย"),
    ],
)
def test_only_the_borders_of_scripts_without_spaces_are_cut_up(text: str, cut: str) -> None:
    assert trigrams.trigram_text(text) == cut


def test_only_a_few_trigrams_of_a_long_part_are_queried() -> None:
    assert len(trigrams.trigrams_to_query("".join(map(chr, range(97, 123))))) <= trigrams.MAX_ASKED


@pytest.mark.parametrize(
    "part",
    [
        "*憶断*",
        "*記憶断裂*",
        "*記*",
        "*用pyth*",
        "*thon語*",
        "*국어*",
        "*국*",
        "*ไทย*",
        "*憶 br*",
        "*oken me*",
        "*裂: 使*",
        "*用p*",
        "*言 한*",
    ],
)
def test_parts_in_any_script_are_found(tmp_path: Path, part: str) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as store:
        (found, _) = say(store, start(store, "s"), "記憶断裂: 使用Python語言 한국어 ภาษาไทย 憶 broken memory", "other")
    with SessionDB(path) as store:
        assert rows(path, "SELECT value FROM state_meta WHERE key = 'indexed_upto'") == [("2",)]
        assert finds(store, part) == [found]


def test_index_with_an_older_format_is_rebuilt(tmp_path: Path) -> None:
    path = tmp_path / "state.db"
    with SessionDB(path) as store:
        found = say(store, start(store, "s"), "kubernetes 記憶断裂")
    change(
        path,
        "DELETE FROM hermes_ledger WHERE name = '0007_stems'",
        "DELETE FROM messages_fts_trigram",
        "INSERT INTO messages_fts_trigram (rowid, content) VALUES (1, 'as it was filled before')",
    )
    with SessionDB(path, read_only=True) as store:
        assert finds(store, "*bernete*") == found
    with SessionDB(path) as store:
        assert finds(store, "*bernete*") == finds(store, "*憶断*") == found
    with SessionDB(path) as store:
        assert finds(store, "*bernete*") == found
    assert rows(path, "SELECT rowid FROM messages_fts_trigram WHERE messages_fts_trigram MATCH 'kub'") == [(1,)]
    assert rows(path, "SELECT rowid FROM messages_fts_trigram WHERE messages_fts_trigram MATCH 'was'") == []
