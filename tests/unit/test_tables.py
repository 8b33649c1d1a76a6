"""Tables that fit the terminal."""

from __future__ import annotations

import pytest

from hermes.cli.display.table import Column, format_table
from hermes.cli.display.terminal import display_width

ID = "20261101_101010_aaaaaaaa"


def table(width: int) -> list[str]:
    columns = [
        Column("Title", ["a long title of a conversation"], is_elastic=True),
        Column("Preview", ["and how it begins"], is_elastic=True, dropped=1),
        Column("Last Active", ["yesterday"], dropped=2),
        Column("ID", [ID]),
    ]
    return format_table(columns, width)


@pytest.mark.parametrize(
    ("width", "header"),
    [
        (100, ["Title", "Preview", "Last", "Active", "ID"]),
        (57, ["Title", "Preview", "Last", "Active", "ID"]),
        (56, ["Title", "Last", "Active", "ID"]),
        (46, ["Title", "ID"]),
        (34, ["Title", "ID"]),
    ],
)
def test_columns_that_do_not_fit_are_left_out_in_their_order(width: int, header: list[str]) -> None:
    lines = table(width)
    assert lines[0].split() == header
    assert lines[2].endswith(ID)
    assert all(display_width(line) <= width for line in lines)


def test_column_that_is_never_left_out_runs_over_the_edge() -> None:
    assert table(20)[0].split() == ["Title", "ID"]
