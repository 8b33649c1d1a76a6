"""`hermes sessions export --format md` and `html`."""

from __future__ import annotations

import re
import subprocess
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from hermes.cli.transcripts.html import Html
from hermes.cli.transcripts.markdown import Markdown
from hermes.interop.exporter import Form
from hermes.state.import_export.session_reader import SessionExport
from hermes_state import SessionDB
from tests.cli.conftest import TIMEOUT_S, Hermes
from tests.support.modelserver import ModelServer, Say

GOLDEN = Path(__file__).with_name("golden")
MARCH = 1_772_359_200.0

CALL = {"id": "c1", "type": "function", "function": {"name": "terminal", "arguments": '{"command": "tail -3 log"}'}}
HOSTILE = "</pre></details><script>alert(1)</script>\n```\n# assistant\n<!-- \x1b[31m \u202e & \"'"
VOID = {"meta", "!doctype"}


@pytest.fixture
def talk(hermes: Hermes) -> Hermes:
    """A conversation with tools, thinking, images, several languages and undone messages, and an older one."""
    with SessionDB(hermes.database, clock=lambda: MARCH) as db:
        db.create_session("20260301_090000_0c0ffee0", "telegram", started_at=MARCH - 3600, user_id="7")
        db.append_message("20260301_090000_0c0ffee0", "user", "How long for green tea?", timestamp=MARCH - 3600)
        db.create_session("20260301_100000_a1b2c3d4", "cli", model="claude-sonnet-4-5", started_at=MARCH)
        session = "20260301_100000_a1b2c3d4"
        db.set_session_title(session, "Why the *wiki* does <not> start")
        for role, content, more in (
            ("system", "Be brief.", {}),
            ("user", [{"type": "text", "text": "Why?\n\n京都 🎉 שלום"}, {"type": "image_url", "image_url": {}}], {}),
            ("assistant", "I look at the log.", {"reasoning": "The log\nwill tell.", "tool_calls": [CALL]}),
            ("tool", "```\nport 80\tis taken\n```", {"tool_name": "terminal", "tool_call_id": "c1"}),
            ("assistant", "Port 80 is taken:\n\n```sh\nss -ltn\n```\n\n# Next\n\nStop `nginx`.", {}),
            ("user", "never mind", {}),
        ):
            db.append_message(session, role, content, timestamp=MARCH + 60, **more)
        db.rewind_to_message(session, db.get_messages(session)[-1]["id"])
        db.end_session(session, "user_exit")
    return hermes


@pytest.mark.parametrize("form", ["md", "html"])
def test_document_equals_the_golden_file(talk: Hermes, tmp_path: Path, form: str) -> None:
    target = tmp_path / f"talk.{form}"
    done = talk("sessions", "export", str(target), "--format", form, TZ="UTC")
    assert (done.returncode, done.stderr) == (0, "")
    assert target.read_text() == (GOLDEN / f"talk.{form}").read_text()


@pytest.mark.parametrize("form", ["md", "html", "jsonl"])
@pytest.mark.parametrize("wants_all", [False, True])
def test_document_has_undone_messages_only_on_request(talk: Hermes, tmp_path: Path, form: str, wants_all: bool) -> None:
    target = tmp_path / f"talk.{form}"
    talk("sessions", "export", str(target), "--redact", *(["--all"] if wants_all else []))
    assert ("never mind" in target.read_text()) is wants_all


@pytest.mark.parametrize("form", ["md", "html"])
@pytest.mark.parametrize("wants_all", [False, True])
def test_document_has_a_retried_answer_only_on_request(
    hermes: Hermes, tmp_path: Path, form: str, wants_all: bool
) -> None:
    with ModelServer(Say("the first answer"), Say("the second answer")) as server:
        hermes.home.mkdir()
        (hermes.home / "config.yaml").write_text(server.config + "agent: {auto_title: false}\n")
        process = hermes.start("--lines", stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        process.communicate(b"why?\n/retry\n", timeout=TIMEOUT_S)
    target = tmp_path / f"talk.{form}"
    hermes("sessions", "export", str(target), *(["--all"] if wants_all else []))
    assert "the second answer" in target.read_text()
    assert ("the first answer" in target.read_text()) is wants_all


def test_json_lines_have_undone_messages(talk: Hermes, tmp_path: Path) -> None:
    talk("sessions", "export", str(tmp_path / "talk.jsonl"))
    assert "never mind" in (tmp_path / "talk.jsonl").read_text()


def message(role: str = "user", content: Any = None, **more: Any) -> dict[str, Any]:
    columns = ("reasoning", "reasoning_content", "tool_calls", "tool_name")
    return {"role": role, "content": content, "active": 1, "timestamp": MARCH, **dict.fromkeys(columns), **more}


def document(form: Form, *messages: dict[str, Any], **more: Any) -> str:
    """A document with one session."""
    columns = (
        "title",
        "preview",
        "model",
        "ended_at",
        "end_reason",
        "parent_session_id",
        "child_kind",
        "imported_from",
        "message_count",
    )
    row = {"id": "s", "source": "cli", "started_at": MARCH, "last_active": MARCH, **dict.fromkeys(columns), **more}
    session = SessionExport(row, [], [], iter([list(messages)]))
    return b"".join([*form.begin(), *form.session(session), *form.end()]).decode()


def forms(row: dict[str, Any] | None = None) -> list[Form]:
    listed = {"id": "s", "source": "cli", "last_active": MARCH, "message_count": 1, "title": None, "preview": None}
    return [Markdown(), Html(lambda: iter([listed | (row or {})]), 1)]


@pytest.mark.parametrize("form", forms({"title": HOSTILE, "id": HOSTILE}), ids=["md", "html"])
def test_message_text_cannot_break_out_of_the_document(form: Form) -> None:
    call = {"function": {"name": HOSTILE, "arguments": HOSTILE}}
    content = [
        message("user", HOSTILE),
        message(HOSTILE, HOSTILE),
        message("assistant", HOSTILE, reasoning=HOSTILE, tool_calls=[call]),
        message("tool", HOSTILE, tool_name=HOSTILE),
    ]
    text = document(form, *content, title=HOSTILE, id=HOSTILE, model=HOSTILE, imported_from=HOSTILE)
    assert "\x1b" not in text
    assert "\u202e" not in text
    if isinstance(form, Html):
        assert "<script" not in text
        assert "<!--" not in text
        assert Balance.of(text) == []
    else:
        outside = re.sub(r"^(`{3,})\n.*?^\1$", "", text, flags=re.DOTALL | re.MULTILINE)
        unquoted = [line for line in outside.splitlines() if not line.startswith(">")]
        assert not any(re.search(r"(?<!\\)<(?!/?(?:details|summary)>)", line) for line in unquoted)
        # Each speaker has a heading, and no message text creates one.
        assert sum(line.startswith("#") for line in unquoted) == 4


class Balance(HTMLParser):
    """Checks that every element is closed in the right place."""

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.wrong: list[str] = []

    @classmethod
    def of(cls, text: str) -> list[str]:
        page = cls()
        page.feed(text)
        page.close()
        return page.wrong + page.open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.wrong += [name for name, _ in attrs if name.startswith("on")]
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.wrong.append(tag)


@pytest.mark.parametrize("form", forms(), ids=["md", "html"])
@pytest.mark.parametrize(
    ("content", "shown"),
    [
        (message("user", None), ""),
        (message("user", {"text": "in a dict"}), "in a dict"),
        (message("user", [5, "six", {"type": "image_url"}]), "[image]"),
        (message("assistant", "x", tool_calls={"name": "alone", "arguments": {"a": 1}}), "alone"),
        (message("assistant", "x", tool_calls=["odd"]), "odd"),
        (message("assistant", "x", tool_calls=[{"function": "odd"}]), "odd"),
        (message("tool", "result"), "← tool"),
        (message("user", "x", timestamp="never"), "?"),
        (message("user", "x", active=0), "(undone)"),
        (message("assistant", "x", reasoning_content="hm"), "thinking"),
    ],
)
def test_unusual_messages_are_shown(form: Form, content: dict[str, Any], shown: str) -> None:
    assert shown in document(form, content)


def test_page_is_self_contained(talk: Hermes, tmp_path: Path) -> None:
    page = (GOLDEN / "talk.html").read_text()
    assert "default-src 'none'" in page
    assert not re.search(r"(?:src|href)=(?!\"#)", page)
    assert "prefers-color-scheme: dark" in page
    assert Balance.of(page) == []


def test_redacted_page_lists_no_secrets(talk: Hermes, tmp_path: Path) -> None:
    with SessionDB(talk.database) as db:
        db.set_session_title("20260301_090000_0c0ffee0", "password: hunter2")
    talk("sessions", "export", str(tmp_path / "x.html"), "--format", "html", "--redact")
    assert (tmp_path / "x.html").read_text().count("password: [redacted]") == 2
