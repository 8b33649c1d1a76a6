"""Adversarial long texts: they are read, stored, redacted and classified quickly."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http.errors import read_error_response
from hermes.agent.models.http.sse import EventDecoder
from hermes.agent.models.model import ToolCall
from hermes.agent.safety.commands import risk_of
from hermes.agent.safety.redaction import redact
from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import Registry, tool
from hermes.agent.tools.results import ToolResult
from hermes.errors import InvalidValue
from hermes.secrets import redact_value
from hermes.state.messages.drafts import MAX_CHARACTERS
from hermes_state import SessionDB
from tests.agent.tools.workbench import Workbench
from tests.support.quickness import is_quick


@pytest.fixture
def bench(tmp_path: Path, home: Path, store: SessionDB) -> Iterator[Workbench]:
    """A session of the terminal in an empty directory."""
    work = tmp_path / "work"
    work.mkdir()
    bench = Workbench(home, work, store)
    yield bench
    bench.context.processes.close(kill=True)


class TestToolError:
    @pytest.mark.parametrize("size", [4_000, 10_000_000])
    def test_tool_error_with_many_tokens_is_redacted_quickly(self, size: int, bench: Workbench) -> None:
        assert is_quick(lambda: _fail("token-" * (size // 6), bench.context))

    def test_tool_error_is_redacted_before_it_is_cut(self, bench: Workbench) -> None:
        context = replace(bench.context, environ={"MY_API_KEY": "s3cr3t-value-of-mine"})
        result = _fail("x" * 2_390 + "s3cr3t-value-of-mine" + "y" * 100_000, context)
        assert "s3cr3t" not in result.text
        assert "omitted" in result.text

    @pytest.mark.parametrize("unit", ["://", "eyJ-", "sk-", "api_key", "Bearer ", "a-"])
    def test_repeated_secret_prefix_is_redacted_quickly(self, unit: str) -> None:
        assert is_quick(lambda: redact(unit * (100_000 // len(unit)), {}))


@pytest.mark.parametrize(
    "unit", ["<memory-context>", "< memory-context", "<" + " " * 99, "[system note: memory", "emory<"]
)
def test_conversation_with_200_kb_of_unclosed_fences_is_loaded_quickly(unit: str, store: SessionDB) -> None:
    store.create_session("s", "cli")
    store.append_message("s", "user", "memory" + unit * (200_000 // len(unit)))
    assert is_quick(lambda: store.get_messages_as_conversation("s"))


@pytest.mark.parametrize("unit", ["sk-", "eyJ-", "xai-", "--", "hf_a-", "://", "Bearer ", "password"])
def test_export_redacts_200_kb_of_prefixes_quickly(unit: str) -> None:
    assert is_quick(lambda: redact_value({"content": unit * (200_000 // len(unit))}))


@pytest.mark.parametrize("unit", ["|", "| ", "|a/", "git ", "git push ", "git reset push ", "find ", ": (", "> "])
def test_command_of_100_kb_is_classified_quickly(unit: str) -> None:
    assert is_quick(lambda: risk_of(unit * (100_000 // len(unit)), lambda _: False))


@pytest.mark.parametrize("unit", ["<title", "<title>", "sk-", "AIza", "model "])
def test_refusal_of_64_kb_is_read_quickly(unit: str) -> None:
    body = ("<" + unit * (64_000 // len(unit))).encode()
    assert is_quick(
        lambda: read_error_response(500, {"content-type": "text/html"}, body, ModelChoice("custom", "m"), 0.0)
    )


def test_large_event_in_pieces_of_one_byte_is_decoded_quickly() -> None:
    def decode() -> None:
        decoder = EventDecoder()
        for each in b"data: " + b"x" * 200_000 + b"\n\n":
            decoder.feed(bytes((each,)))

    assert is_quick(decode)


class TestMessageLength:
    def test_longest_message_is_stored_whole(self, store: SessionDB) -> None:
        store.create_session("s", "cli")
        store.append_message("s", "user", "x" * (MAX_CHARACTERS - 100))
        assert store.get_messages("s")[0]["content"] == "x" * (MAX_CHARACTERS - 100)

    @pytest.mark.parametrize("field", ["content", "reasoning", "tool_calls"])
    def test_longer_message_is_refused_and_not_cut(self, field: str, store: SessionDB) -> None:
        store.create_session("s", "cli")
        text = "x" * (MAX_CHARACTERS + 1)
        given = [{"id": text}] if field == "tool_calls" else text
        with pytest.raises(InvalidValue, match="longer than 16777216 characters"):
            store.append_messages("s", [{"role": "assistant", field: given}])
        assert store.get_messages("s") == []


def _fail(text: str, context: ToolContext) -> ToolResult:
    """Return the result of a tool that fails with this text."""

    @tool(toolset="files")
    def breaks(context: ToolContext) -> str:
        """Break."""
        raise RuntimeError(text)

    return Registry([breaks]).run(ToolCall("1", "breaks", "{}"), context)
