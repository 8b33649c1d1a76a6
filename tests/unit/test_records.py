"""Records of SQLite's file format, compared with what SQLite itself stores."""

from __future__ import annotations

import struct

import apsw
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.state.sqlite.repair.fileformat.records import LOST_TEXT, Value, decode, size_on_page, to_signed, varint

UTF8 = "utf-8"
VALUES: list[Value] = [
    None,
    0,
    1,
    -1,
    127,
    -128,
    32_767,
    -8_388_608,
    2**31,
    -(2**47),
    2**63 - 1,
    -(2**63),
    1.5,
    -1e300,
    "",
    "é",
    "記憶" * 100,
    b"",
    b"\0\xff",
    bytes(300),
]


def stored(*values: Value) -> bytes:
    """Return a record as SQLite writes it: the last bytes of a file with one page and one row."""
    connection = apsw.Connection(":memory:")
    names = [f"c{number}" for number in range(len(values))]
    connection.execute("PRAGMA page_size = 65536").fetchall()
    connection.execute(f"CREATE TABLE t ({', '.join(names)})").fetchall()
    connection.execute(f"INSERT INTO t VALUES ({', '.join('?' * len(values))})", values).fetchall()
    page = connection.serialize("main")[65_536:]
    (at,) = struct.unpack_from(">H", page, 8)
    size, at = varint(page, at)
    _, at = varint(page, at)
    return page[at : at + size]


@pytest.mark.parametrize("value", VALUES, ids=lambda value: repr(value)[:20])
def test_every_kind_of_value_is_read(value: Value) -> None:
    payload = stored(value)
    assert decode(payload, len(payload), UTF8) == [value]


def test_a_row_of_many_values_is_read() -> None:
    payload = stored(*VALUES)
    assert decode(payload, len(payload), UTF8) == VALUES


@given(
    st.lists(st.none() | st.integers(-(2**63), 2**63 - 1) | st.text(max_size=40) | st.binary(max_size=40), min_size=1)
)
def test_any_row_is_read_as_it_was_stored(values: list[Value]) -> None:
    text = [value.replace("\0", "") if isinstance(value, str) else value for value in values[:20]]
    payload = stored(*text)
    assert decode(payload, len(payload), UTF8) == text


@pytest.mark.parametrize("value", [0, 127, 128, 2**14, 2**32, 2**56 - 1, 2**56, 2**64 - 1])
def test_numbers_of_variable_length_are_read(value: int) -> None:
    length = 9 if value >= 2**56 else max(1, -(-value.bit_length() // 7))
    if length == 9:
        encoded = bytes(value >> 8 + 7 * (7 - at) & 0x7F | 0x80 for at in range(8)) + bytes([value & 0xFF])
    else:
        encoded = bytes(
            value >> 7 * (length - 1 - at) & 0x7F | (0x80 if at < length - 1 else 0) for at in range(length)
        )
    assert varint(b"\xaa" + encoded + b"\xaa", 1) == (value, 1 + length)


def test_a_truncated_number_ends_after_the_data() -> None:
    assert varint(b"\xff\xff", 0)[1] > 2
    assert varint(b"", 0)[1] > 0
    assert varint(b"\x01", 5)[1] > 1


def test_keys_can_be_negative() -> None:
    assert [to_signed(2**64 - 5), to_signed(2**63), to_signed(5)] == [-5, -(2**63), 5]


def test_text_that_is_not_unicode_is_kept_with_marks() -> None:
    payload = stored("abc").replace(b"b", b"\xff")
    assert decode(payload, len(payload), UTF8) == [f"a{LOST_TEXT}c"]


class TestTruncatedRecord:
    def test_the_start_of_a_truncated_record_is_read_and_marked(self) -> None:
        payload = stored(7, "a long text", "the rest", 1.5)
        whole = len(payload)
        assert decode(payload[: whole - 8 - 8 - 4], whole, UTF8) == [7, f"a long {LOST_TEXT}", None, None]

    def test_half_of_a_number_is_none(self) -> None:
        payload = stored("x", 2**40)
        assert decode(payload[:-2], len(payload), UTF8) == ["x", None]

    def test_half_of_a_blob_is_none(self) -> None:
        payload = stored(bytes(range(30)))
        assert decode(payload[:-2], len(payload), UTF8) == [None]


class TestBytesThatAreNoRecord:
    @pytest.mark.parametrize(
        "payload",
        [
            b"",
            b"\0",
            b"\x05\x01",
            b"\x02\x0a",  # a kind that is not in use
            b"\x02\x01",  # a value is missing
            b"\x02\x01\x05\x05",  # there is one too many
            b"\x03\x8f",
        ],
    )
    def test_bytes_that_are_no_record_give_none(self, payload: bytes) -> None:
        assert decode(payload, len(payload), UTF8) is None

    @given(st.binary(max_size=200), st.integers(0, 10_000))
    def test_random_bytes_never_raise(self, payload: bytes, size: int) -> None:
        values = decode(payload, size, UTF8)
        assert values is None or len(values) <= len(payload)
        _, end = varint(payload, size % 250)
        assert 1 <= end <= len(payload) + 1


def test_a_page_holds_whole_records_up_to_its_limit() -> None:
    assert [size_on_page(size, 4_096) for size in (4_061, 4_062)] == [4_061, 489]
    assert [size_on_page(size, 4_096, of_index=True) for size in (1_002, 1_003)] == [1_002, 489]
