"""The correct keys of a damaged page, and the likely values of the others."""

from __future__ import annotations

import pytest

from hermes.state.sqlite.repair.fileformat.btrees import HIGHEST, LOWEST
from hermes.state.sqlite.repair.fileformat.rowids import are_in_order, correct_rowids


@pytest.mark.parametrize(
    ("keys", "low", "high", "is_so"),
    [
        ([], 5, 6, True),
        ([6, 7, 9], 5, 9, True),
        ([5, 6], 5, 9, False),
        ([6, 10], 5, 9, False),
        ([6, 8, 7], 5, 9, False),
        ([6, 6], 5, 9, False),
    ],
)
def test_keys_of_a_page_ascend_between_those_of_its_neighbours(
    keys: list[int], low: int, high: int, is_so: bool
) -> None:
    assert are_in_order(keys, low, high) is is_so


@pytest.mark.parametrize(
    ("keys", "low", "high", "expected"),
    [
        pytest.param([11, 12, 13], 10, 20, [11, 12, 13], id="all are right"),
        pytest.param([11, 5_000, 13], 10, 20, [11, 12, 13], id="one is far away"),
        pytest.param([11, 3, 13], 10, 20, [11, 12, 13], id="one is before the others"),
        pytest.param([11, 16, 13, 14], 10, 20, [11, 12, 13, 14], id="one is between others"),
        pytest.param([7_000, 12, 13], 10, 20, [11, 12, 13], id="the first is wrong"),
        pytest.param([11, 12, 9_000], 10, 20, [11, 12, 13], id="the last is wrong"),
        pytest.param([9_000, 12, 13], LOWEST, HIGHEST, [11, 12, 13], id="the first of the first page is wrong"),
        pytest.param([11, 900, 12], 10, 12, [11, 900, 12], id="where there is no room, nothing is changed"),
        pytest.param([11, 12, 13, 14], 10, 12, [11, 12, 13, 14], id="it is the neighbours that are wrong"),
        pytest.param([51, 52], 10, 20, [51, 52], id="it is another page"),
        pytest.param([], 10, 20, [], id="there are none"),
    ],
)
def test_keys_are_corrected(keys: list[int], low: int, high: int, expected: list[int]) -> None:
    assert correct_rowids(keys, low, high) == expected
