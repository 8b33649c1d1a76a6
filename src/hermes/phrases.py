"""Format counts, sizes and lists for people."""

from __future__ import annotations

from collections.abc import Sequence


def plural(count: int, noun: str) -> str:
    """`1 session`, `2 sessions`."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def format_size(size_bytes: int) -> str:
    """`812 bytes`, `1.5 MB`, `66.0 GB`."""
    if size_bytes < 1024:
        return f"{size_bytes} bytes"
    size, units = size_bytes / 1024, ["KB", "MB", "GB", "TB"]
    while size >= 1024 and len(units) > 1:
        size /= 1024
        del units[0]
    return f"{size:.1f} {units[0]}"


def format_megabytes(size_bytes: int) -> str:
    """`1.5 MB`, for any size."""
    return f"{size_bytes / (1024 * 1024):.1f} MB"


def join_some(names: Sequence[str], most: int = 3) -> str:
    """`a, b, c and 4 more`."""
    rest = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + rest
