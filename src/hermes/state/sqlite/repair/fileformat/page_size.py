"""The page size of a file whose header is missing or wrong."""

from __future__ import annotations

import os
import struct
from collections.abc import Iterator

from hermes.state.sqlite.repair.fileformat.records import OVERFLOW_POINTER, size_on_page, varint

SIZES = tuple(1 << power for power in range(9, 17))
"""All possible page sizes."""
DEFAULT = 4_096
LEAF = 13
"""The first byte of a page with rows."""

_SAMPLE = max(SIZES)
_SAMPLES = 64


def guess_page_size(file: int, size: int) -> int:
    """The size at which most pages end where their last row ends; SQLite stores rows from the end of a page."""
    votes = {each: sum(_ends_with_a_row(page, each) for page in _sample_pages(file, size, each)) for each in SIZES}
    best = max(votes, key=lambda each: votes[each])
    return best if votes[best] else DEFAULT


def has_reserve(file: int, size: int, page_size: int, reserved: int) -> bool:
    """Whether the end of each page really has reserved bytes, as the header says."""
    pages = list(_sample_pages(file, size, page_size))
    with_it = sum(_ends_with_a_row(page, page_size - reserved) for page in pages)
    return with_it >= sum(_ends_with_a_row(page, page_size) for page in pages)


def _sample_pages(file: int, size: int, page_size: int) -> Iterator[bytes]:
    """Yield pages from all over a file, from the same places for every size."""
    step = max(_SAMPLE, size // _SAMPLES // _SAMPLE * _SAMPLE)
    for start in range(0, size, step):
        sample = os.pread(file, _SAMPLE, start)
        yield from (sample[at : at + page_size] for at in range(0, len(sample), page_size))


def _ends_with_a_row(page: bytes, usable: int) -> bool:
    """Whether this is a page with rows whose last stored row ends at the end of the page."""
    if len(page) < usable or page[0] != LEAF:
        return False
    (rows,) = struct.unpack_from(">H", page, 3)
    if not 0 < rows <= (usable - 8) // 2:
        return False
    last = max(struct.unpack_from(f">{rows}H", page, 8))
    if not 8 + 2 * rows <= last < usable:
        return False
    size, at = varint(page, last)
    _, at = varint(page, at)
    here = size_on_page(size, usable)
    return at + here + (OVERFLOW_POINTER if here < size else 0) == usable
