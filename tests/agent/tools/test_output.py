"""The output of a command, in limited memory."""

from __future__ import annotations

import re

from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.tools.shell.output import HEAD_BYTES, TAIL_BYTES, Output

PIECES = st.lists(st.binary(max_size=50), max_size=30)


@given(PIECES)
def test_output_taken_in_parts_is_complete(pieces: list[bytes]) -> None:
    output, taken = Output(), ""
    for piece in pieces:
        output.add(piece)
        taken += output.take(is_last=False)
    taken += output.take(is_last=True)
    assert taken == b"".join(pieces).decode("utf-8", "replace")


@given(st.text(min_size=1), st.integers(1, 7))
def test_taking_output_splits_no_character(text: str, size: int) -> None:
    data = text.encode("utf-8", "replace")
    output, taken = Output(), ""
    for start in range(0, len(data), size):
        output.add(data[start : start + size])
        taken += output.take(is_last=False)
    assert taken + output.take(is_last=True) == data.decode()


@given(st.integers(0, 4), st.integers(0, 300_000))
def test_long_output_keeps_both_ends_and_counts_the_rest(width: int, extra: int) -> None:
    data = "xé日😀"[:width].encode() * ((HEAD_BYTES + TAIL_BYTES + extra) // 4) or b"x"
    output = Output()
    output.add(data)
    text = output.take(is_last=True)
    left_out = re.search(r"\n\[\.\.\. (\d+) bytes of output omitted \.\.\.\]\n", text)
    if len(data) <= HEAD_BYTES + TAIL_BYTES:
        assert text == data.decode()
        return
    assert left_out is not None
    assert int(left_out[1]) == len(data) - HEAD_BYTES - TAIL_BYTES
    assert "\ufffd" not in text
    assert data.startswith(text[: left_out.start()].encode())
    assert data.endswith(text[left_out.end() :].encode())


def test_output_after_a_gap_is_complete() -> None:
    output = Output()
    output.add(b"x" * 200_000)
    output.take(is_last=False)
    output.add(b"hello")
    assert output.take(is_last=False) == "hello"
    assert output.take(is_last=True) == ""
