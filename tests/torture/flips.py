"""Flips bits in pages of a database file."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.support.pagemap import page_size
from tests.support.plainsql import rows

MOST_BITS = 16


def index_pages(path: Path) -> list[int]:
    """The pages of indexes, of tables and of words, whose content can be rebuilt from other pages."""
    listed = rows(
        path,
        """SELECT pageno FROM dbstat WHERE name LIKE 'messages_fts%'
           OR name IN (SELECT name FROM sqlite_schema WHERE type = 'index')""",
    )
    return [int(number) for (number,) in listed]


def flip_bits(path: Path, page: int, random: Random) -> None:
    """Flip some bits of a page of a closed file."""
    size, content = page_size(path), bytearray(path.read_bytes())
    for _ in range(random.randint(1, MOST_BITS)):
        content[(page - 1) * size + random.randrange(size)] ^= 1 << random.randrange(8)
    path.write_bytes(content)
