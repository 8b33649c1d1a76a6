"""The findings of a checkup on narrow and wide terminals."""

from __future__ import annotations

import pytest

from hermes.cli.display.findings import format_findings
from hermes.cli.display.terminal import display_width
from hermes.state.maintenance.findings import Finding, Status

FOUND = [
    Finding("schema", "file", Status.OK, "schema 11, ours", "", {}),
    Finding("orphan-messages", "content", Status.NOTE, "some words that have to be broken", "and a remedy for it", {}),
]


@pytest.mark.parametrize("width", [30, 40, 60, 120])
def test_every_line_fits(width: int) -> None:
    lines = format_findings(FOUND, width)
    assert all(display_width(line) <= width for line in lines)
    shown = " ".join(" ".join(lines).split())
    assert "orphan-messages some words that have to be broken and a remedy for it" in shown


def test_narrow_terminal_has_the_text_below_the_name() -> None:
    assert format_findings(FOUND[:1], 40)[1:] == ["  ✓ schema  schema 11, ours"]
    assert format_findings(FOUND, 40)[1:3] == ["  ✓ schema", "      schema 11, ours"]
