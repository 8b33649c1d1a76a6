"""The context of a hit: its neighbours in the conversation, as text."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.support.conversations import contents, say, start
from tests.support.searches import PATIENCE_S


class TestContext:
    def test_context_is_the_neighbours_and_the_hit_itself(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "first", "before")
        say(store, "s", "docker", role="assistant")
        say(store, "s", "after", "last")
        (hit,) = store.search_messages("docker")
        assert hit["context"] == [
            {"role": "user", "content": "before"},
            {"role": "assistant", "content": "docker"},
            {"role": "user", "content": "after"},
        ]

    def test_context_at_the_ends_of_a_session_is_shorter(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "docker first", "middle", "docker last")
        last, first = store.search_messages("docker", sort="newest")
        assert contents(first["context"]) == ["docker first", "middle"]
        assert contents(last["context"]) == ["middle", "docker last"]

    def test_context_of_a_single_message_is_that_message(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "docker")
        (hit,) = store.search_messages("docker")
        assert contents(hit["context"]) == ["docker"]

    def test_context_never_comes_from_another_session(self, store: SessionDBProvider) -> None:
        start(store, "a", "b", "c")
        for turn in range(5):
            for session_id in ("a", "b", "c"):
                say(store, session_id, f"{session_id} {turn} docker" if turn == 2 else f"{session_id} {turn}")
        hits = store.search_messages("docker")
        assert {hit["session_id"]: contents(hit["context"]) for hit in hits} == {
            each: [f"{each} 1", f"{each} 2 docker", f"{each} 3"] for each in ("a", "b", "c")
        }

    def test_context_follows_the_order_of_the_conversation_and_not_the_clock(self, store: SessionDBProvider) -> None:
        start(store, "s")
        for text, moment in (("before", 300.0), ("docker", 200.0), ("after", 100.0)):
            store.append_message("s", "user", text, timestamp=moment)
        (hit,) = store.search_messages("docker")
        assert contents(hit["context"]) == ["before", "docker", "after"]

    def test_context_has_every_role_for_any_searched_role(self, store: SessionDBProvider) -> None:
        start(store, "s")
        say(store, "s", "before", role="system")
        say(store, "s", "docker")
        say(store, "s", "after", role="tool")
        (hit,) = store.search_messages("docker", role_filter=["user"])
        assert [each["role"] for each in hit["context"]] == ["system", "user", "tool"]

    def test_context_is_cut_at_200_characters(self, store: SessionDBProvider) -> None:
        say(store, start(store, "s"), "x" * 1_000, "docker" + "é" * 1_000, "世" * 1_000)
        (hit,) = store.search_messages("docker*")
        assert contents(hit["context"]) == ["x" * 200, "docker" + "é" * 194, "世" * 200]

    @pytest.mark.parametrize(
        ("content", "shown"),
        [
            ([{"type": "text", "text": "one"}, {"type": "text", "text": "two"}], "one two"),
            ([{"type": "text", "text": "x" * 300}], "x" * 200),
            ([{"type": "image_url", "image_url": {"url": "data:image/png;base64,xx"}}], "[multimodal content]"),
            ([], "[multimodal content]"),
            ({"text": "one"}, "one"),
            (None, ""),
            ("", ""),
            ("\n\ttext", "\n\ttext"),
            ("nul\0nul", "nul\0nul"),
            ("\x01json:[1]", "\x01json:[1]"),
        ],
    )
    def test_context_shows_any_content_as_text(self, store: SessionDBProvider, content: Any, shown: str) -> None:
        say(store, start(store, "s"), "docker", content)
        (hit,) = store.search_messages("docker")
        assert contents(hit["context"]) == ["docker", shown]

    def test_context_has_no_undone_messages(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker", "gone")
        store.rewind_to_message("s", found[1])
        say(store, "s", "instead")
        (hit,) = store.search_messages("docker")
        assert contents(hit["context"]) == ["docker", "instead"]

    def test_context_has_undone_messages_on_request(self, store: SessionDBProvider) -> None:
        found = say(store, start(store, "s"), "docker", "gone")
        store.rewind_to_message("s", found[1])
        (hit,) = store.search_messages("docker", include_inactive=True)
        assert contents(hit["context"]) == ["docker", "gone"]

    def test_context_of_many_hits_is_right_for_each(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.append_messages("s", [{"role": "user", "content": f"docker {number}"} for number in range(900)])
        hits = store.search_messages("docker", sort="oldest", limit=900, budget_s=PATIENCE_S)
        assert [contents(hit["context"]) for hit in hits[1:-1]] == [
            [f"docker {number - 1}", f"docker {number}", f"docker {number + 1}"] for number in range(1, 899)
        ]
