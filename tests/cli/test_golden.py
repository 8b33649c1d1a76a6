"""The output of commands, compared with the files in `golden/`; its README explains how to renew them."""

from __future__ import annotations

import io
import os
import re
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hermes.cli.app import run
from hermes.cli.chat.recap import build_recap, draw_panel
from hermes.config import DisplayConfig
from hermes.state.sessions.lineage.kinds import ChildKind
from hermes_state import SessionDB
from tests.support.clock import FakeClock

GOLDEN = Path(__file__).parent / "golden"
NOW = 1_763_208_000.0  # Saturday, 2025-11-15 12:00 UTC
HOUR, DAY = 3_600.0, 86_400.0
WIDTHS = (40, 80, 120)

AUTH, TRIP, STAND_UP = "20251115_091523_a1b2c3d4", "20251114_143022_e5f60718", "20251112_101500_f9a8b7c6"
HEBREW, HINDI, LETTER = "20251110_081200_0c0ffee0", "20251108_170000_77aa88bb", "20251028_170000_11223344"
BRANCH, TIP, HELPER = "20251115_100000_0000b001", "20251115_110000_0000c002", "20251115_101000_0000d003"

SESSIONS = {
    AUTH: ("cli", "refactoring auth", "Help me refactor the auth module please, step by step", 2 * HOUR),
    TRIP: ("telegram", "京都旅行の計画 🎉", "来月の京都旅行の計画を立てるのを手伝ってください。三日間です。", DAY),
    STAND_UP: ("discord", "team stand-up 👨‍👩‍👧 🇩🇪 ❤️", "Summarise what everybody said in the stand-up 👍🏽", 3 * DAY),
    HEBREW: ("whatsapp", "שלום עולם", "مرحبا، هل يمكنك مساعدتي في كتابة رسالة؟", 5 * DAY),
    HINDI: ("cli", "नमस्ते e\u0301te\u0301 A\u030a", "Übersetze: naïve café, e\u0301te\u0301, ก็", 6 * DAY),
    LETTER: ("slack", None, "Draft a letter to the landlord \x1b[31mabout\x07 the heating", 18 * DAY),
}
COMMANDS = {
    "list": ("sessions", "list"),
    "list-untitled": ("sessions", "list", "--source", "slack"),
    "show": ("sessions", "show", AUTH),
    "show-wide": ("sessions", "show", TRIP),
    "search": ("sessions", "search", "auth", "OR", "京都", "OR", "été"),
    "lineage": ("sessions", "lineage", TIP),
    "tree": ("sessions", "tree", "--all"),
    "stats": ("sessions", "stats", "--verbose"),
    "insights": ("insights", "--days", "30"),
}


class Stream(io.StringIO):
    """An output stream that may pretend to be a terminal."""

    encoding = "utf-8"

    def __init__(self, *, is_terminal: bool) -> None:
        super().__init__()
        self._is_terminal = is_terminal

    def isatty(self) -> bool:
        return self._is_terminal


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Conversations in many scripts, including a family."""
    directory = tmp_path_factory.mktemp("golden")
    clock = FakeClock(NOW)
    with SessionDB(directory / "state.db", clock=clock) as db:
        for session_id, (source, title, words, age) in SESSIONS.items():
            moment = NOW - age
            db.create_session(session_id, source, model="gpt-5", started_at=moment - 60)
            db.append_messages(session_id, list(conversation(words, moment)))
            db.update_token_counts(session_id, input_tokens=1_200, output_tokens=340, model="gpt-5")
            if title:
                db.set_session_title(session_id, title)
        db.end_session(AUTH, "compression")
        for session_id, kind, source in (
            (BRANCH, ChildKind.BRANCH, "cli"),
            (TIP, ChildKind.COMPRESSION, "cli"),
            (HELPER, ChildKind.DELEGATE, "subagent"),
        ):
            parent = BRANCH if session_id == HELPER else AUTH
            db.create_session(session_id, source, parent_session_id=parent, child_kind=kind, started_at=NOW - HOUR)
        db.append_message(TIP, "user", "京都 and the auth module go on here", timestamp=NOW - 600)
        db.set_session_title(TIP, "refactoring auth #2")
        db.set_session_pinned(TRIP, True)
    return directory


def conversation(words: str, moment: float) -> Iterator[dict[str, object]]:
    yield {"role": "user", "content": words, "timestamp": moment - 40}
    calls = [{"id": "1", "function": {"name": "terminal", "arguments": '{"command": "ls -la src/auth"}'}}]
    yield {"role": "assistant", "content": "Let me look.", "tool_calls": calls, "timestamp": moment - 30}
    yield {
        "role": "tool",
        "content": "total 8\n-rw-r--r-- auth.py",
        "tool_name": "terminal",
        "tool_call_id": "1",
        "timestamp": moment - 20,
    }
    answer = f"Done 京都 👍🏽:\n1. été\n2. {words}\n3. שלום\n4. the rest"
    yield {"role": "assistant", "content": answer, "timestamp": moment - 10}


@pytest.fixture
def frozen(home: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home at noon of that Saturday in UTC."""
    monkeypatch.setenv("HERMES_HOME", str(home))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setenv("TERM", "xterm-256color")
    for name in ("NO_COLOR", "COLORTERM", "LINES"):
        monkeypatch.delenv(name, raising=False)
    time.tzset()
    monkeypatch.setattr(time, "time", lambda: NOW)
    yield home
    monkeypatch.undo()
    time.tzset()


def capture(monkeypatch: pytest.MonkeyPatch, home: Path, work: Callable[[], object], *, colour: bool) -> str:
    """Return the output of some work; lines on stderr start with `2>`."""
    out, talk = Stream(is_terminal=colour), Stream(is_terminal=colour)
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(sys, "stderr", talk)
    work()
    monkeypatch.undo()
    lines = out.getvalue().splitlines() + [f"2> {line}" for line in talk.getvalue().splitlines()]
    text = "\n".join(lines).replace(str(home), "HOME").replace("\x1b", "␛")
    # The size of the file is not what is looked at here.
    return re.sub(r"\d+\.\d MB", "N MB", text)


def compare(name: str, sections: dict[str, str]) -> None:
    text = "".join(f"=== {title}\n{section}\n" for title, section in sections.items())
    file = GOLDEN / f"{name}.txt"
    if os.environ.get("RENEW_GOLDEN"):
        file.write_text(text, encoding="utf-8")
    assert text == file.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", COMMANDS)
def test_command_output_equals_the_golden_file(frozen: Path, name: str) -> None:
    sections = {}
    for colour in (False, True):
        for width in WIDTHS:
            with pytest.MonkeyPatch.context() as patch:
                patch.setenv("COLUMNS", str(width))
                shown = capture(pytest.MonkeyPatch(), frozen, lambda: run(COMMANDS[name]), colour=colour)
            sections[f"{width} columns{', a terminal' if colour else ', a pipe'}"] = shown
    compare(name, sections)


def test_no_color_output_equals_piped_output(frozen: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("COLUMNS", "80")
    for name, args in COMMANDS.items():
        if name.startswith("show"):
            continue  # on a terminal it draws the Markdown of answers
        plain, coloured = (
            capture(pytest.MonkeyPatch(), frozen, lambda args=args: run(args), colour=colour)  # type: ignore[misc]
            for colour in (False, True)
        )
        assert plain == coloured


def test_recap_equals_the_golden_file(frozen: Path) -> None:
    with SessionDB(frozen / "state.db", read_only=True) as db:
        history = [row for each in (AUTH, TRIP, HEBREW) for row in db.get_messages_as_conversation(each)]
    recap = build_recap(history, DisplayConfig(resume_exchanges=2))
    sections = {}
    for colour in (False, True):
        for width in WIDTHS:

            def show(width: int = width) -> None:
                sys.stdout.write("\n".join(draw_panel(recap, width)))

            shown = capture(pytest.MonkeyPatch(), frozen, show, colour=colour)
            sections[f"{width} columns{', a terminal' if colour else ', a pipe'}"] = shown
    compare("recap", sections)
