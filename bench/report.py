"""Puts a measured table into the documentation, between two marks."""

from __future__ import annotations

from pathlib import Path

BEGIN, END = "<!-- bench:begin -->", "<!-- bench:end -->"


def write(page: Path, block: str) -> None:
    """Replace what stands between the marks of the page."""
    before, rest = page.read_text().split(BEGIN)
    _, after = rest.split(END)
    page.write_text(f"{before}{BEGIN}\n\n{block}\n\n{END}{after}")
