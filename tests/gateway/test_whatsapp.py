"""One spelling for each WhatsApp id."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.gateway import canonical_whatsapp_identifier, expand_whatsapp_aliases


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    made = tmp_path / "whatsapp" / "session"
    made.mkdir(parents=True)
    return made


@pytest.mark.parametrize(
    ("given_id", "canonical"),
    [
        ("15551234567@s.whatsapp.net", "15551234567"),
        ("15551234567:47@s.whatsapp.net", "15551234567"),
        ("+15551234567", "15551234567"),
        ("  15551234567  ", "15551234567"),
        ("+1 (555) 123-4567", "15551234567"),
        ("15551234567@c.us", "15551234567"),
        ("999999999999999@lid", "999999999999999"),
        ("１２３", "123"),
        ("12345-67890@g.us", "12345-67890"),
        ("status@broadcast", "status"),
        ("a_b", "a_b"),
        ("a b@x", "a b"),
        ("", ""),
        (None, ""),
        ("@lid", ""),
    ],
)
def test_canonical_id_without_mapping_files(given_id: str | None, canonical: str) -> None:
    assert canonical_whatsapp_identifier(given_id) == canonical


@given(st.text() | st.none())
def test_every_text_has_a_stable_canonical_id(text: str | None) -> None:
    once = canonical_whatsapp_identifier(text)
    assert canonical_whatsapp_identifier(text) == once
    assert "@" not in once


def test_aliases_are_found_from_both_sides(folder: Path) -> None:
    (folder / "lid-mapping-5551.json").write_text('"777777"')
    (folder / "lid-mapping-777777_reverse.json").write_text('"5551"')
    assert expand_whatsapp_aliases("5551@s.whatsapp.net") == {"5551", "777777"}
    assert expand_whatsapp_aliases("777777@lid") == {"5551", "777777"}
    assert canonical_whatsapp_identifier("777777@lid") == "5551"


def test_equally_short_aliases_are_ordered_by_alphabet(folder: Path) -> None:
    (folder / "lid-mapping-222.json").write_text('"111"')
    assert canonical_whatsapp_identifier("222") == "111"


@pytest.mark.parametrize("content", ["", "{", "[1]", "null", "true", '"' + "1" * 9000 + '"', "[" * 5000])
def test_unreadable_mapping_file_is_ignored(folder: Path, content: str) -> None:
    (folder / "lid-mapping-222.json").write_text(content)
    assert canonical_whatsapp_identifier("222") == "222"


def test_mapping_that_appears_or_changes_is_noticed(folder: Path) -> None:
    assert canonical_whatsapp_identifier("888888") == "888888"
    (folder / "lid-mapping-888888.json").write_text('"4444"')
    assert canonical_whatsapp_identifier("888888") == "4444"
    (folder / "lid-mapping-888888.json").unlink()
    assert canonical_whatsapp_identifier("888888") == "888888"


def test_circle_of_mappings_ends(folder: Path) -> None:
    (folder / "lid-mapping-31.json").write_text('"32"')
    (folder / "lid-mapping-32.json").write_text('"31"')
    assert canonical_whatsapp_identifier("32") == "31"


def test_id_with_a_path_never_leaves_the_folder(folder: Path) -> None:
    (folder.parent / "lid-mapping-1.json").write_text('"2"')
    assert canonical_whatsapp_identifier("../lid-mapping-1") == "../lid-mapping-1"
