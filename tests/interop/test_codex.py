"""Import of Codex CLI sessions: messages, tool calls, branches and token usage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.state.provider import SessionDBProvider
from tests.interop.files import CODEX, Entry, codex_conversation, codex_line, failure_of, import_files, write
from tests.support.conversations import column, contents, session_of

ID = f"codex_{CODEX}"


@pytest.fixture
def talk(store: SessionDBProvider, tmp_path: Path) -> dict[str, Any]:
    """The session imported from a conversation with a tool call."""
    import_files(store, write(tmp_path / "rollout.jsonl", codex_conversation()))
    return session_of(store, ID)


def items(*payloads: Entry) -> list[Entry]:
    """The lines of a file with just these items."""
    return [
        codex_conversation()[0],
        *(codex_line(number, "response_item", each) for number, each in enumerate(payloads, 1)),
    ]


def test_session_fields_come_from_the_file(talk: dict[str, Any]) -> None:
    assert talk["source"] == "codex"
    assert talk["model"] == "gpt-5-codex"
    assert talk["cwd"] == "/home/ada/wiki"
    assert talk["system_prompt"] == "Be brief."
    assert talk["started_at"] == 1772449200.0
    assert talk["preview"] == "What is in the wiki?"


def test_messages_keep_their_order_and_roles(store: SessionDBProvider, talk: dict[str, Any]) -> None:
    messages = store.get_messages(ID)
    assert [(each["role"], each["content"]) for each in messages] == [
        ("system", "<environment_context>\n  <cwd>/home/ada/wiki</cwd>"),
        ("user", "What is in the wiki?"),
        ("assistant", None),
        ("tool", "wiki.py\n"),
        ("assistant", "One file: wiki.py"),
    ]
    assert column(messages, "timestamp")[1] == 1772449203.0
    assert column(messages, "reasoning")[2] == "I list the files."


def test_tool_result_refers_to_its_call(store: SessionDBProvider, talk: dict[str, Any]) -> None:
    *_, call, result, _ = store.get_messages(ID)
    function = {"name": "shell", "arguments": '{"command":["ls"]}'}
    assert call["tool_calls"] == [{"id": "call_1", "type": "function", "function": function}]
    assert (result["tool_call_id"], result["tool_name"]) == ("call_1", "shell")


def test_tokens_are_counted_once_and_cached_tokens_separately(store: SessionDBProvider, talk: dict[str, Any]) -> None:
    (booked,) = store.list_usage_events(ID)
    assert (booked["input_tokens"], booked["cache_read_tokens"]) == (200, 1000)
    assert (booked["output_tokens"], booked["reasoning_tokens"], booked["api_call_count"]) == (50, 20, 1)
    assert (booked["model"], booked["billing_provider"]) == ("gpt-5-codex", "openai")
    assert talk["output_tokens"] == 50


@pytest.mark.parametrize("cut", range(2, 11))
def test_importing_a_grown_file_adds_only_new_messages(store: SessionDBProvider, tmp_path: Path, cut: int) -> None:
    lines = codex_conversation()
    path = write(tmp_path / "rollout.jsonl", lines[:cut])
    import_files(store, path)
    import_files(store, write(path, lines))
    messages = store.get_messages(ID)
    assert contents(messages)[1:] == ["What is in the wiki?", None, "wiki.py\n", "One file: wiki.py"]
    assert column(messages, "reasoning")[2] == "I list the files."
    assert session_of(store, ID)["output_tokens"] == 50
    assert import_files(store, path).messages == 0


def test_file_of_the_first_versions_is_imported(store: SessionDBProvider, tmp_path: Path) -> None:
    lines: list[Entry] = [
        {"id": CODEX, "timestamp": "2025-05-20T08:00:00.000Z", "instructions": None, "git": {}},
        {"record_type": "state"},
        {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hello"}]},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "hi"}]},
    ]
    tally = import_files(store, write(tmp_path / "rollout.jsonl", lines))
    assert contents(store.get_messages(ID)) == ["hello", "hi"]
    assert session_of(store, ID)["started_at"] == 1747728000.0
    assert tally.skipped_lines == 1


@pytest.mark.parametrize(
    ("item", "name", "arguments"),
    [
        (
            {"type": "custom_tool_call", "name": "apply_patch", "input": "*** Begin"},
            "apply_patch",
            '{"input": "*** Begin"}',
        ),
        ({"type": "local_shell_call", "action": {"command": ["ls"]}}, "shell", '{"command": ["ls"]}'),
    ],
)
def test_other_kinds_of_tool_calls_are_imported(
    store: SessionDBProvider, tmp_path: Path, item: Entry, name: str, arguments: str
) -> None:
    import_files(store, write(tmp_path / "rollout.jsonl", items({**item, "call_id": "c"})))
    (message,) = store.get_messages(ID)
    (call,) = message["tool_calls"] or []
    assert call["function"] == {"name": name, "arguments": arguments}


@pytest.mark.parametrize(
    ("output", "content"),
    [
        ("plain", "plain"),
        ('{"output":"inside","metadata":{}}', "inside"),
        ('{"other": 1}', '{"other": 1}'),
        ("{broken", "{broken"),
        ({"content": "in a dict", "success": True}, "in a dict"),
        ([{"type": "input_text", "text": "one"}, {"type": "input_image"}], "one\n\n[input_image]"),
        (None, ""),
        (5, ""),
    ],
)
def test_tool_output_is_unwrapped(store: SessionDBProvider, tmp_path: Path, output: object, content: str) -> None:
    answer = {"type": "function_call_output", "call_id": "c", "output": output}
    import_files(store, write(tmp_path / "rollout.jsonl", items(answer)))
    assert contents(store.get_messages(ID)) == [content]


def test_compaction_summary_gets_the_system_role(store: SessionDBProvider, tmp_path: Path) -> None:
    lines = [*codex_conversation(), codex_line(20, "compacted", {"message": "In short: one file."})]
    import_files(store, write(tmp_path / "rollout.jsonl", lines))
    last = store.get_messages(ID)[-1]
    assert (last["role"], last["content"]) == ("system", "In short: one file.")


def test_forked_session_is_a_branch(store: SessionDBProvider, tmp_path: Path) -> None:
    fork = codex_conversation()
    fork[0]["payload"] |= {"id": "fork", "forked_from_id": CODEX}
    import_files(
        store,
        write(tmp_path / "fork.jsonl", [*fork, codex_conversation()[0]]),
        write(tmp_path / "b.jsonl", codex_conversation()),
    )
    row = session_of(store, "codex_fork")
    assert (row["parent_session_id"], row["child_kind"]) == (ID, "branch")


def test_unknown_lines_are_counted(store: SessionDBProvider, tmp_path: Path) -> None:
    odd = [codex_line(21, "hologram", {}), codex_line(22, "response_item", {"type": "hologram"})]
    tally = import_files(store, write(tmp_path / "rollout.jsonl", [*codex_conversation(), *odd]))
    assert (tally.skipped_lines, tally.messages) == (2, 5)


def test_file_without_a_session_id_is_refused(store: SessionDBProvider, tmp_path: Path) -> None:
    path = write(tmp_path / "rollout.jsonl", codex_conversation()[1:])
    assert failure_of(import_files(store, path)) == f"{path}:1: the file has no session id"
    assert store.session_count() == 0
