"""The b-trees of a database file, read page by page.

An unreadable page loses its own rows and nothing else. Nothing here raises, whatever the bytes are, and no page is
visited twice.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from typing import NamedTuple

from hermes.state.sqlite.repair.fileformat.pages import HEADER_SIZE, Pages
from hermes.state.sqlite.repair.fileformat.records import (
    OVERFLOW_POINTER,
    Value,
    decode,
    size_on_page,
    to_signed,
    varint,
)

INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF = 2, 5, 10, 13
KINDS = (INDEX_INTERIOR, TABLE_INTERIOR, INDEX_LEAF, TABLE_LEAF)
LOWEST, HIGHEST = -(1 << 63), (1 << 63) - 1

_UNTYPED_PAGES = 0x02000000
"""In a file with fewer pages than this, no overflow page of a record can begin like a page of a tree."""

_u16 = struct.Struct(">H").unpack_from
_u32 = struct.Struct(">I").unpack_from


class Span(NamedTuple):
    """A page with rows, and the range of their keys: `low` < key <= `high`."""

    number: int
    low: int
    high: int


class Cell(NamedTuple):
    """A row on a page."""

    key: int
    values: list[Value]
    is_truncated: bool
    """Whether it continues on pages that cannot be read."""


class Node(NamedTuple):
    """A page of a tree."""

    kind: int
    data: bytes
    pointers: list[int]
    """The offsets of its cells."""
    right: int
    """The last child of an interior page."""
    is_sound: bool


class Trees:
    """All trees of a file, and the damaged pages in them."""

    def __init__(self, pages: Pages) -> None:
        self.pages = pages
        self.damaged_pages: set[int] = set()
        """Pages with wrong content."""
        self._reached = bytearray(pages.count + 1)

    def has_reached(self, number: int) -> bool:
        """Whether one of the trees that were read leads to a page."""
        return bool(self._reached[number])

    def release_page(self, number: int) -> None:
        """Remove a page from the tree that leads to it, so that another one can use it."""
        self._reached[number] = 0

    def table(self, root: int, lost: list[Span], high: int = HIGHEST) -> Iterator[Span]:
        """Yield the pages with the rows of a table, in order; ranges with unreachable pages are added to `lost`."""
        waiting = [(Span(root, LOWEST, high), root)]
        while waiting:
            span, parent = waiting.pop()
            node = self._visit(span.number, parent, (TABLE_INTERIOR, TABLE_LEAF))
            if node is None:
                lost.append(span)
            elif node.kind == TABLE_INTERIOR and self._is_interior(node):
                waiting += reversed(self._children(node, span))
            else:
                if not node.is_sound or node.kind != TABLE_LEAF:
                    lost.append(span)
                yield span

    def index(self, root: int) -> Iterator[list[Value]]:
        """Yield the entries of an index, or the rows of a table without row ids; those of one page are in order."""
        waiting = [(root, root)]
        while waiting:
            number, parent = waiting.pop()
            node = self._visit(number, parent, (INDEX_INTERIOR, INDEX_LEAF))
            if node is None:
                continue
            skipped = 0
            if node.kind == INDEX_INTERIOR:
                waiting += [(child, number) for child in self._child_numbers(node)]
                skipped = OVERFLOW_POINTER
            for at in node.pointers:
                entry = self._record(node.data, number, at + skipped, of_index=True)
                if entry is not None and not entry.is_truncated:
                    yield entry.values
                else:
                    self.damaged_pages.add(number)

    def rows(self, number: int) -> list[Cell]:
        """The rows on a page, in the order of the page."""
        return self.rows_of(self.pages.page(number), number)

    def rows_of(self, data: bytes, number: int) -> list[Cell]:
        """The rows on a page with these bytes, in the order of the page."""
        node = node_of(data, number, self.pages.usable, TABLE_LEAF)
        cells = []
        for at in node.pointers:
            cell = self._record(data, number, at)
            if cell is None:
                self.damaged_pages.add(number)
            else:
                cells.append(cell)
        return cells

    def unreachable_pages(self) -> Iterator[int]:
        """The pages with rows that no tree leads to."""
        for number in range(1, self.pages.count + 1):
            if not self._reached[number] and self.pages.kind(number) == TABLE_LEAF:
                yield number

    def _visit(self, number: int, parent: int, kinds: tuple[int, ...]) -> Node | None:
        """Visit a page of a tree; if it cannot be one, mark the damaged page and return None."""
        if not 0 < number <= self.pages.count:
            # Either the pointer is wrong or the file was cut off.
            self._mark_damaged(number if 0 < number <= self.pages.expected else parent)
            return None
        if self._reached[number]:
            self._mark_damaged(parent)
            return None
        data = self.pages.page(number)
        kind = data[HEADER_SIZE if number == 1 else 0]
        if kind in KINDS and kind not in kinds:
            self._mark_damaged(parent)
            return None
        self._reached[number] = 1
        # If only the first byte is wrong, the rows can still be read.
        node = node_of(data, number, self.pages.usable, kind if kind in KINDS else kinds[-1])
        if not node.is_sound:
            self.damaged_pages.add(number)
        return node

    def _mark_damaged(self, number: int) -> None:
        if 0 < number <= self.pages.expected:
            self.damaged_pages.add(number)

    def _is_interior(self, node: Node) -> bool:
        """Whether a page is an interior one, and not a leaf whose first byte is wrong."""
        return any(
            0 < child <= self.pages.count and self.pages.kind(child) in (TABLE_INTERIOR, TABLE_LEAF)
            for child in self._child_numbers(node)
        )

    def _children(self, node: Node, span: Span) -> list[tuple[Span, int]]:
        children = []
        low = span.low
        for at in node.pointers:
            key = to_signed(varint(node.data, at + 4)[0])
            children.append((Span(_u32(node.data, at)[0], low, key), span.number))
            low = key
        children.append((Span(node.right, low, span.high), span.number))
        return children

    def _child_numbers(self, node: Node) -> list[int]:
        return [*(_u32(node.data, at)[0] for at in node.pointers), node.right]

    def _record(self, data: bytes, number: int, at: int, *, of_index: bool = False) -> Cell | None:
        """The record at an offset of a page; None if there is none."""
        size, at = varint(data, at)
        key = 0
        if not of_index:
            key, at = varint(data, at)
        usable = self.pages.usable
        if size > self.pages.count * usable:
            return None
        here = size_on_page(size, usable, of_index=of_index)
        end = at + here
        if end > usable:
            return None
        payload, is_truncated = data[at:end], False
        if here < size:
            if end + OVERFLOW_POINTER > usable:
                return None
            payload, is_truncated = self._read_overflow(payload, size, number, _u32(data, end)[0])
        values = decode(payload, size, self.pages.header.codec)
        return None if values is None else Cell(to_signed(key), values, is_truncated)

    def _read_overflow(self, payload: bytes, size: int, number: int, following: int) -> tuple[bytes, bool]:
        """Return a record with its overflow pages, and whether the chain of these pages is broken or too long."""
        parts, missing = [payload], size - len(payload)
        room = self.pages.usable - OVERFLOW_POINTER
        while missing > 0:
            data = self.pages.page(following) if 0 < following <= self.pages.count else b""
            is_of_tree = bool(data) and data[0] in KINDS and self.pages.count < _UNTYPED_PAGES
            if is_of_tree or not data.strip(b"\0"):
                break
            part = data[OVERFLOW_POINTER : OVERFLOW_POINTER + min(missing, room)]
            parts.append(part)
            missing -= len(part)
            number, (following,) = following, _u32(data)
        if missing > 0 or following:
            self.damaged_pages.add(number)
            return b"".join(parts), True
        return b"".join(parts), False


def node_of(data: bytes, number: int, usable: int, kind: int) -> Node:
    """Parse a page as one of a tree; cells outside of the page are left out."""
    start = HEADER_SIZE if number == 1 else 0
    is_interior = kind in (INDEX_INTERIOR, TABLE_INTERIOR)
    first = start + (12 if is_interior else 8)
    (count,) = _u16(data, start + 3)
    possible = min(count, (usable - first) // 2)
    end = first + 2 * possible
    stored = struct.unpack_from(f">{possible}H", data, first)
    # An interior cell begins with the number of a child.
    pointers = [at for at in stored if end <= at <= usable - (5 if is_interior else 2)]
    right = _u32(data, start + 8)[0] if is_interior else 0
    return Node(kind, data, pointers, right, data[start] == kind and len(pointers) == count)


def free_pages(pages: Pages) -> tuple[bytearray, bool]:
    """Return which pages are free, and whether the list of free pages is complete."""
    free = bytearray(pages.count + 1)
    following, found = pages.header.first_free, 0
    while 0 < following <= pages.count and not free[following]:
        numbers = struct.unpack_from(f">{pages.usable // 4}I", pages.page(following))
        listed = [each for each in numbers[2 : 2 + numbers[1]] if 0 < each <= pages.count]
        for each in (following, *listed):
            free[each] = 1
        found += 1 + len(listed)
        following = numbers[0]
    return free, pages.header.is_sound and found == pages.header.free_count
