"""Session files in the formats of other programs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hermes.interop.detection import find
from hermes.interop.importer import Importer, ImportOptions, Tally
from hermes.state.provider import SessionDBProvider

Entry = dict[str, Any]

CLAUDE = "3f2504e0-4f89-11d3-9a0c-0305e82c3301"
CODEX = "0199a213-81c0-7800-8aa1-bbab2a035a53"
IMPORT_TIME = 1_800_000_000.0
"""The time of the import: later than every message in the files."""


def write(path: Path, entries: Iterable[Entry | str]) -> Path:
    """Write a file with one entry per line; strings are written unchanged."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(f"{line}\n" for line in (e if isinstance(e, str) else json.dumps(e) for e in entries)))
    return path


def import_files(store: SessionDBProvider | None, *paths: Path, now: float = IMPORT_TIME, **options: Any) -> Tally:
    """Import files and return the result."""
    importer = Importer(store, ImportOptions(**options), now)
    importer.import_files(list(find(paths)))
    return importer.tally


def failure_of(tally: Tally) -> str:
    """Return the error message of the only file that failed."""
    (error,) = tally.failures.values()
    return error.message


class Claude:
    """Builds lines as Claude Code writes them: each names the line before as its parent."""

    def __init__(self, session_id: str = CLAUDE) -> None:
        self.session_id = session_id
        self._number = 0
        self._parent: str | None = None

    def line(self, kind: str, message: Entry, **more: Any) -> Entry:
        """Return a line of the conversation, one second after the line before."""
        self._number += 1
        uuid = f"{self._number:08d}-0000-4000-8000-000000000000"
        entry = {
            "parentUuid": self._parent,
            "isSidechain": False,
            "userType": "external",
            "cwd": "/home/ada/wiki",
            "sessionId": self.session_id,
            "version": "2.0.14",
            "gitBranch": "main",
            "type": kind,
            "message": message,
            "uuid": uuid,
            "timestamp": f"2026-03-01T10:00:{self._number:02d}.500Z",
        }
        self._parent = uuid
        return entry | more

    def user(self, content: Any, **more: Any) -> Entry:
        """Return a line of the user, a tool or the program."""
        return self.line("user", {"role": "user", "content": content}, **more)

    def result(self, call_id: str, content: Any) -> Entry:
        """Return the line of a tool result."""
        return self.user([{"type": "tool_result", "tool_use_id": call_id, "content": content}])

    def assistant(
        self, *parts: Entry, answer: str = "msg_1", stop: str | None = None, output: int = 5, **more: Any
    ) -> Entry:
        """Return the line of a part of an answer."""
        usage = {
            "input_tokens": 10,
            "cache_creation_input_tokens": 200,
            "cache_read_input_tokens": 3000,
            "output_tokens": output,
            "service_tier": "standard",
        }
        message = {
            "id": answer,
            "type": "message",
            "role": "assistant",
            "model": "claude-sonnet-4-5",
            "content": list(parts),
            "stop_reason": stop,
            "usage": usage,
        }
        return self.line("assistant", message, requestId="req_1", **more)


def text(words: str) -> Entry:
    """A text part."""
    return {"type": "text", "text": words}


def thinking(words: str) -> Entry:
    """A reasoning part."""
    return {"type": "thinking", "thinking": words, "signature": "c2ln"}


def tool_use(call_id: str, name: str, **arguments: Any) -> Entry:
    """A tool call part."""
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def claude_conversation() -> list[Entry]:
    """A Claude Code conversation with a tool call."""
    claude = Claude()
    return [
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}, "isSnapshotUpdate": False},
        claude.user("Caveat: made by the program", isMeta=True),
        claude.user("Why does the wiki not start? 京都"),
        claude.assistant(thinking("The log will tell.")),
        claude.assistant(text("I look at the log.")),
        claude.assistant(tool_use("toolu_1", "Bash", command="tail log"), stop="tool_use", output=40),
        claude.result("toolu_1", [text("port 80 is taken"), {"type": "image", "source": {"media_type": "image/png"}}]),
        claude.assistant(text("Port 80 is taken."), answer="msg_2", stop="end_turn", output=7),
        {"type": "summary", "summary": "Wiki does not start", "leafUuid": "00000006-0000-4000-8000-000000000000"},
    ]


def codex_line(number: int, kind: str, payload: Entry) -> Entry:
    """Return a line as the Codex CLI writes it."""
    return {"timestamp": f"2026-03-02T11:00:{number:02d}.000Z", "type": kind, "payload": payload}


def codex_conversation() -> list[Entry]:
    """A Codex CLI conversation with a tool call."""
    usage = {
        "input_tokens": 1200,
        "cached_input_tokens": 1000,
        "output_tokens": 50,
        "reasoning_output_tokens": 20,
        "total_tokens": 1250,
    }
    counted = {"type": "token_count", "info": {"total_token_usage": usage, "last_token_usage": usage}}
    call = {"type": "function_call", "name": "shell", "arguments": '{"command":["ls"]}', "call_id": "call_1"}
    output = '{"output":"wiki.py\\n","metadata":{"exit_code":0,"duration_seconds":0.1}}'
    lines: list[tuple[str, Entry]] = [
        (
            "session_meta",
            {
                "id": CODEX,
                "timestamp": "2026-03-02T11:00:00.000Z",
                "cwd": "/home/ada/wiki",
                "originator": "codex_cli_rs",
                "cli_version": "0.46.0",
                "instructions": "Be brief.",
                "model_provider": "openai",
            },
        ),
        ("response_item", _message("user", "input_text", "<environment_context>\n  <cwd>/home/ada/wiki</cwd>")),
        ("turn_context", {"cwd": "/home/ada/wiki", "model": "gpt-5-codex", "effort": "high"}),
        ("response_item", _message("user", "input_text", "What is in the wiki?")),
        ("event_msg", {"type": "user_message", "message": "What is in the wiki?"}),
        ("response_item", {"type": "reasoning", "summary": [text("I list the files.")], "encrypted_content": "gAAA"}),
        ("response_item", call),
        ("event_msg", counted),
        ("event_msg", counted),
        ("response_item", {"type": "function_call_output", "call_id": "call_1", "output": output}),
        ("response_item", _message("assistant", "output_text", "One file: wiki.py")),
    ]
    return [codex_line(number, kind, payload) for number, (kind, payload) in enumerate(lines)]


def _message(role: str, kind: str, words: str) -> Entry:
    return {"type": "message", "role": role, "content": [{"type": kind, "text": words}]}
