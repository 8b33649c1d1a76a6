"""Import of Claude Code sessions: messages, titles, sub-agents and token usage."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hermes.state.import_export.session_writer import ImportOutcome
from hermes.state.provider import SessionDBProvider
from tests.interop.files import (
    CLAUDE,
    Claude,
    Entry,
    claude_conversation,
    import_files,
    text,
    thinking,
    tool_use,
    write,
)
from tests.support.clock import NOW
from tests.support.conversations import column, contents, ids, session_of

ID = f"claude-code_{CLAUDE}"
MEANWHILE = 1_772_359_230.0
"""A time just after the conversation."""


@pytest.fixture
def talk(store: SessionDBProvider, tmp_path: Path) -> dict[str, Any]:
    """The session imported from a conversation with a tool call."""
    import_files(store, write(tmp_path / "talk.jsonl", claude_conversation()))
    return session_of(store, ID)


def test_session_fields_come_from_the_file(talk: dict[str, Any]) -> None:
    assert talk["source"] == "claude-code"
    assert talk["title"] == "Wiki does not start"
    assert talk["model"] == "claude-sonnet-4-5"
    assert talk["cwd"] == "/home/ada/wiki"
    assert talk["started_at"] == 1772359201.5
    assert talk["last_active"] == 1772359207.5
    assert talk["preview"] == "Why does the wiki not start? 京都"
    assert talk["owner"] is None


def test_messages_keep_their_order_and_roles(store: SessionDBProvider, talk: dict[str, Any]) -> None:
    messages = store.get_messages(ID)
    assert [(each["role"], each["content"]) for each in messages] == [
        ("system", "Caveat: made by the program"),
        ("user", "Why does the wiki not start? 京都"),
        ("assistant", "I look at the log."),
        ("assistant", None),
        ("tool", "port 80 is taken\n\n[image/png]"),
        ("assistant", "Port 80 is taken."),
    ]
    assert column(messages, "timestamp")[1] == 1772359202.5


def test_reasoning_is_attached_to_the_answer_after_it(store: SessionDBProvider, talk: dict[str, Any]) -> None:
    assert column(store.get_messages(ID), "reasoning") == [None, None, "The log will tell.", None, None, None]


def test_tool_result_refers_to_its_call(store: SessionDBProvider, talk: dict[str, Any]) -> None:
    *_, call, result, _ = store.get_messages(ID)
    function = {"name": "Bash", "arguments": '{"command": "tail log"}'}
    assert call["tool_calls"] == [{"id": "toolu_1", "type": "function", "function": function}]
    assert (result["tool_call_id"], result["tool_name"]) == ("toolu_1", "Bash")
    assert store.get_session_tools(ID) == {"Bash": 1}


def test_tokens_of_an_answer_on_several_lines_are_counted_once(store: SessionDBProvider, talk: dict[str, Any]) -> None:
    booked = store.list_usage_events(ID)
    assert [(each["at"], each["output_tokens"], each["cache_read_tokens"]) for each in booked] == [
        (1772359203.5, 40, 3000),
        (1772359207.5, 7, 3000),
    ]
    assert (talk["input_tokens"], talk["output_tokens"], talk["api_call_count"]) == (20, 47, 2)
    assert talk["cache_write_tokens"] == 400
    assert {each["billing_provider"] for each in booked} == {"anthropic"}


def test_imported_messages_are_found_by_search(store: SessionDBProvider, talk: dict[str, Any]) -> None:
    assert column(store.search_messages("京都", source_filter=["claude-code"]), "session_id") == [ID]


def test_importing_a_file_again_adds_nothing(store: SessionDBProvider, talk: dict[str, Any], tmp_path: Path) -> None:
    tally = import_files(store, tmp_path / "talk.jsonl")
    assert (tally.messages, dict(tally.sessions)) == (0, {ImportOutcome.SKIPPED: 1})
    assert session_of(store, ID) == talk


@pytest.mark.parametrize("cut", range(2, 9))
def test_importing_a_grown_file_adds_only_new_messages(store: SessionDBProvider, tmp_path: Path, cut: int) -> None:
    lines = claude_conversation()
    path = write(tmp_path / "talk.jsonl", lines[:cut])
    import_files(store, path, now=MEANWHILE)
    write(path, lines)
    import_files(store, path, now=MEANWHILE)
    grown = store.export_session(ID)
    assert grown is not None
    store.delete_session(ID)
    import_files(store, path, now=MEANWHILE)
    whole = store.export_session(ID)
    assert whole is not None
    assert contents(grown["messages"]) == contents(whole["messages"])
    assert column(grown["messages"], "reasoning") == column(whole["messages"], "reasoning")
    for name in ("title", "input_tokens", "output_tokens", "api_call_count", "last_active", "message_count"):
        assert grown[name] == whole[name], name


def test_usage_of_an_answer_is_stored_when_it_is_complete(store: SessionDBProvider, tmp_path: Path) -> None:
    claude = Claude()
    asked = claude.user("why?", timestamp="2025-06-15T15:06:00Z")
    begun = claude.assistant(text("Be"), output=1, timestamp="2025-06-15T15:06:30Z")
    over = claude.assistant(text("cause."), output=9, stop="end_turn", timestamp="2025-06-15T15:06:31Z")
    path = write(tmp_path / "talk.jsonl", [asked, begun])
    import_files(store, path, now=NOW)
    assert session_of(store, ID)["output_tokens"] == 0
    import_files(store, write(path, [asked, begun, over]))
    assert session_of(store, ID)["output_tokens"] == 9


def test_reasoning_without_an_answer_is_kept(store: SessionDBProvider, tmp_path: Path) -> None:
    claude = Claude()
    lines = [claude.assistant(thinking("Hm.")), claude.user("Stop!")]
    import_files(store, write(tmp_path / "talk.jsonl", lines))
    assert [(each["content"], each["reasoning"]) for each in store.get_messages(ID)] == [(None, "Hm."), ("Stop!", None)]


def test_thread_of_a_sub_agent_becomes_its_own_session(store: SessionDBProvider, tmp_path: Path) -> None:
    claude = Claude()
    lines = [claude.user("Find it"), claude.assistant(tool_use("toolu_1", "Task", prompt="search"), stop="tool_use")]
    first = claude.user("search", isSidechain=True, parentUuid=None)
    lines += [first, claude.assistant(text("found"), answer="msg_2", isSidechain=True, stop="end_turn")]
    lines.append(claude.result("toolu_1", "found"))
    agent = [Claude().user("look closer", isSidechain=True, agentId="a1b2c3")]
    write(tmp_path / "talk.jsonl", lines)
    write(tmp_path / "agents" / "agent-a1b2c3.jsonl", agent)
    import_files(store, tmp_path / "agents", tmp_path / "talk.jsonl")
    assert contents(store.get_messages(f"{ID}_{first['uuid']}")) == ["search", "found"]
    assert contents(store.get_messages(f"{ID}_a1b2c3")) == ["look closer"]
    assert len(store.get_messages(ID)) == 3
    assert ids(store.list_sessions_rich()) == [ID]
    for agent_id in (first["uuid"], "a1b2c3"):
        row = session_of(store, f"{ID}_{agent_id}")
        assert (row["parent_session_id"], row["child_kind"]) == (ID, "delegate")


def test_summary_of_another_session_is_no_title(store: SessionDBProvider, tmp_path: Path) -> None:
    elsewhere = {"type": "summary", "summary": "Something else", "leafUuid": "elsewhere"}
    import_files(store, write(tmp_path / "talk.jsonl", [elsewhere, Claude().user("hello")]))
    assert session_of(store, ID)["title"] is None


def test_title_by_the_user_takes_precedence(store: SessionDBProvider, tmp_path: Path) -> None:
    named = {"type": "custom-title", "customTitle": "My wiki", "sessionId": CLAUDE}
    guessed = {"type": "ai-title", "aiTitle": "A wiki", "sessionId": CLAUDE}
    import_files(store, write(tmp_path / "talk.jsonl", [named, *claude_conversation(), guessed]))
    assert session_of(store, ID)["title"] == "My wiki"


def test_taken_title_gets_a_number_and_long_title_is_cut(store: SessionDBProvider, tmp_path: Path) -> None:
    for number, name in enumerate(["Wiki", "Wiki", "W" * 150]):
        title = {"type": "custom-title", "customTitle": name, "sessionId": f"s{number}"}
        import_files(store, write(tmp_path / f"{number}.jsonl", [title, Claude(f"s{number}").user("hello")]))
    titles = [session_of(store, f"claude-code_s{number}")["title"] for number in range(3)]
    assert titles == ["Wiki", "Wiki (2)", "W" * 100]


def test_title_added_later_is_imported(store: SessionDBProvider, tmp_path: Path) -> None:
    lines = claude_conversation()
    path = write(tmp_path / "talk.jsonl", lines[:-1])
    import_files(store, path)
    import_files(store, write(path, lines))
    assert session_of(store, ID)["title"] == "Wiki does not start"


@pytest.mark.parametrize(
    ("typed", "role", "content"),
    [
        ("<command-name>/review</command-name>\n<command-args>this file</command-args>", "user", "/review this file"),
        ("<command-message>x</command-message><command-name>/clear</command-name>", "user", "/clear"),
        (
            "<local-command-stdout>done</local-command-stdout>",
            "system",
            "<local-command-stdout>done</local-command-stdout>",
        ),
    ],
)
def test_commands_are_imported_as_typed(
    store: SessionDBProvider, tmp_path: Path, typed: str, role: str, content: str
) -> None:
    import_files(store, write(tmp_path / "talk.jsonl", [Claude().user(typed)]))
    assert [(each["role"], each["content"]) for each in store.get_messages(ID)] == [(role, content)]


def test_unknown_lines_are_counted(store: SessionDBProvider, tmp_path: Path) -> None:
    odd: list[Entry] = [
        {"type": "hologram"},
        {"no": "type"},
        {"type": "user", "sessionId": 5, "message": {}},
        {"type": 7},
    ]
    tally = import_files(store, write(tmp_path / "talk.jsonl", [*claude_conversation(), *odd]))
    assert (tally.skipped_lines, tally.messages) == (4, 6)


def test_source_can_be_overridden(store: SessionDBProvider, tmp_path: Path) -> None:
    import_files(store, write(tmp_path / "talk.jsonl", claude_conversation()), source="work")
    assert session_of(store, ID)["source"] == "work"
