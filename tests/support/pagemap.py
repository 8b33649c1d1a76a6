"""Which rows are on which pages of a database file, according to SQLite."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from typing import NamedTuple

from tests.support.plainsql import rows


class PageMap(NamedTuple):
    """The pages of a table."""

    kinds: dict[int, str]
    """leaf, internal or overflow, by the number of the page."""
    keys: dict[int, set[int]]
    """The keys of the rows with a part on a page, by the number of the page."""

    def pages(self, kind: str) -> list[int]:
        """The pages of a kind, in the order of their numbers."""
        return sorted(number for number, each in self.kinds.items() if each == kind)

    def safe(self, *damaged: int) -> set[int]:
        """The keys of the rows without a part on these pages."""
        lost = set().union(*(self.keys.get(number, set()) for number in damaged))
        return set().union(*self.keys.values()) - lost


def page_map(path: Path, table: str) -> PageMap:
    """Where the rows of a table are, derived from the order of its pages and the number of rows on each."""
    keys = iter([key for (key,) in rows(path, f"SELECT rowid FROM {table} ORDER BY rowid")])
    of_leaf: dict[str, list[int]] = {}
    found = PageMap({}, defaultdict(set))
    for number, kind, place, cells in rows(
        path, "SELECT pageno, pagetype, path, ncell FROM dbstat WHERE name = ? ORDER BY path", table
    ):
        found.kinds[number] = kind
        if kind == "leaf":
            of_leaf[place] = [next(keys) for _ in range(cells)]
            found.keys[number].update(of_leaf[place])
        elif kind == "overflow":
            leaf, _, rest = place.rpartition("/")
            found.keys[number].add(of_leaf[f"{leaf}/"][int(rest.partition("+")[0], 16)])
    return found


def page_size(path: Path) -> int:
    """How large the pages of a file are."""
    return int(rows(path, "PRAGMA page_size")[0][0])


def overwrite(path: Path, number: int, data: bytes, *, at: int = 0, size: int = 4_096) -> None:
    """Write bytes to a page of a closed file."""
    with path.open("r+b") as file:
        file.seek((number - 1) * size + at)
        file.write(data)
