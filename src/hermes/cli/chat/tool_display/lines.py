"""The lines of an output as a terminal would show them."""

from __future__ import annotations


def output_lines(text: str) -> list[str]:
    """Return the lines of an output; of one that a program has drawn again and again, only its last state."""
    return [line.rstrip("\r").rpartition("\r")[2] for line in text.removesuffix("\n").split("\n")] if text else []


def last_lines(text: str, count: int) -> list[str]:
    """Return the last lines that are not empty."""
    lines = [line for line in output_lines(text) if line.strip()]
    return lines[len(lines) - min(count, len(lines)) :]
