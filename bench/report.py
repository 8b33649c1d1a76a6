"""Puts a measured part into the documentation, between two marks."""

from __future__ import annotations

from pathlib import Path

TABLE, SEARCH, POSTGRES, RECALL = "bench", "bench-search", "bench-postgresql", "bench-recall"
GATEWAY = "bench-gateway"


def write(page: Path, block: str, part: str = TABLE) -> None:
    """Replace the text between the marks of a part; a page without that part gets it at its end."""
    begin, end = f"<!-- {part}:begin -->", f"<!-- {part}:end -->"
    text = page.read_text()
    before, rest = text.split(begin) if begin in text else (f"{text.rstrip()}\n\n", f"{end}\n")
    _, after = rest.split(end)
    page.write_text(f"{before}{begin}\n\n{block}\n\n{end}{after}")
