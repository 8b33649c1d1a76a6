"""Bits of a file that are not what they were."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.support.pagemap import page_size
from tests.support.plainsql import rows

MOST_BITS = 16


def index_pages(path: Path) -> list[int]:
    """The pages that hold nothing but what can be had from other pages: indexes of tables, and of words."""
    listed = rows(
        path,
        """SELECT pageno FROM dbstat WHERE name LIKE 'messages_fts%'
           OR name IN (SELECT name FROM sqlite_schema WHERE type = 'index')""",
    )
    return [int(number) for (number,) in listed]


def flip_bits(path: Path, page: int, random: Random) -> None:
    """Change some bits of a page, in a file that nobody has open."""
    size, content = page_size(path), bytearray(path.read_bytes())
    for _ in range(random.randint(1, MOST_BITS)):
        content[(page - 1) * size + random.randrange(size)] ^= 1 << random.randrange(8)
    path.write_bytes(content)
