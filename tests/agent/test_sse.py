"""Server-sent events: the result does not depend on how the bytes are split."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.models.http import sse
from hermes.agent.models.http.sse import EventDecoder, ServerEvent
from hermes.errors import ModelGarbled

LINES = st.lists(
    st.one_of(
        st.sampled_from(["", "data: x", "data:x", "data", "data: ", ": comment", "event: error", "id: 7", "data: a:b"]),
        st.text(alphabet=st.characters(exclude_characters="\r\n"), max_size=12).map("data: ".__add__),
        st.text(alphabet=st.characters(exclude_characters="\r\n"), max_size=12),
    ),
    max_size=12,
)


def decode_all(*chunks: bytes) -> list[ServerEvent]:
    decoder = EventDecoder()
    return [event for chunk in chunks for event in decoder.feed(chunk)] + decoder.finish()


def naive(text: str) -> list[ServerEvent]:
    """Return the events of a whole text by the rules of the standard, slowly."""
    events: list[ServerEvent] = []
    data: list[str] = []
    name = ""
    for line in [*text.replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        field, _, value = line.partition(":")
        value = value[1:] if value.startswith(" ") else value
        if line == "" and data:
            events.append(ServerEvent("\n".join(data), name))
        if line == "":
            data, name = [], ""
        if field == "data" and line:
            data.append(value)
        if field == "event":
            name = value
    return events


class TestChunking:
    @given(LINES, st.sampled_from(["\n", "\r\n", "\r"]), st.data())
    def test_any_chunking_gives_the_same_events(self, lines: list[str], newline: str, data: st.DataObject) -> None:
        text = newline.join(lines)
        stream = text.encode("utf-8", "replace")
        cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
        chunks = [stream[start:end] for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
        whole = stream.decode("utf-8-sig")
        assert decode_all(*chunks) == naive(whole)

    @given(LINES, st.sampled_from(["\n", "\r\n", "\r"]))
    def test_byte_by_byte_gives_the_same_events(self, lines: list[str], newline: str) -> None:
        stream = newline.join(lines).encode("utf-8", "replace")
        assert decode_all(*(bytes([each]) for each in stream)) == decode_all(stream)

    def test_character_may_be_split(self) -> None:
        stream = "data: 京都🍁\n\n".encode()
        assert decode_all(stream[:8], stream[8:14], stream[14:]) == [ServerEvent("京都🍁")]

    def test_event_is_returned_as_soon_as_it_is_complete(self) -> None:
        decoder = EventDecoder()
        assert decoder.feed(b"data: a\n") == []
        assert decoder.feed(b"\n") == [ServerEvent("a")]
        assert decoder.feed(b"data: b\r\n\r\n") == [ServerEvent("b")]


class TestFields:
    @pytest.mark.parametrize(
        ("stream", "events"),
        [
            (b"data: a\n\ndata: b\n\n", ["a", "b"]),
            (b"data:a\n\n", ["a"]),
            (b"data:  a\n\n", [" a"]),
            (b"data: a\ndata: b\n\n", ["a\nb"]),
            (b"data\n\n", [""]),
            (b": OPENROUTER PROCESSING\n\n", []),
            (b": ping\ndata: a\n: pong\n\n", ["a"]),
            (b"id: 1\nretry: 5\ndata: a\n\n", ["a"]),
            (b"\xef\xbb\xbfdata: a\n\n", ["a"]),
            (b"\n\n\n", []),
            (b"event: ping\n\n", []),
            (b"data: a", ["a"]),
            (b"data: a\n", ["a"]),
            (b"data: a\xffb\n\n", ["a\ufffdb"]),
            (b"data: a\x0bb\x85c\n\n".replace(b"\x85", "\u2028".encode()), ["a\x0bb\u2028c"]),
            (b"{}", []),
            (b"", []),
        ],
    )
    def test_stream_gives_its_events(self, stream: bytes, events: list[str]) -> None:
        assert [event.data for event in decode_all(stream)] == events

    def test_event_name_applies_to_one_event_only(self) -> None:
        assert decode_all(b"event: error\ndata: a\n\ndata: b\n\n") == [ServerEvent("a", "error"), ServerEvent("b")]


class TestLimits:
    @pytest.mark.parametrize("piece", [b"x" * 100, b"data: xxxxxxxxxxxxxxx\n", b"data:\n"])
    def test_endless_event_is_an_error(self, piece: bytes, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(sse, "MAX_EVENT_BYTES", 1_000)
        decoder = EventDecoder()
        with pytest.raises(ModelGarbled, match="more than 1000 bytes"):
            list(map(decoder.feed, [piece] * 1_000))
