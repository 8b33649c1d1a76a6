"""The examples of the documents run as written: programs, settings and data."""

from __future__ import annotations

import ast
import doctest
import json
import os
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import click
import pytest

from hermes.cli.app import hermes
from hermes.config import load_config
from hermes.state.recall.tool import session_search
from hermes_state import SessionDB
from tests.support.plainsql import change
from tests.support.servers import private_server, server_or_skip

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

SERVER = {"docs/guide/providers.md"}
"""Pages whose programs need a PostgreSQL server; HERMES_DSN is its address."""

DIALOGUES = ["docs/guide/models.md"]
"""Pages whose Python dialogues need no preparation."""

NGINX, ASKING = "20261115_192300_a1b2c3d4", "20261116_090000_0badcafe"
"""The two sessions in the examples of the page about recall."""

REFUSED = {"hermes sessions search deploy -docker"}
"""Commands that the documents show as errors."""

NOTING_OPENERS = """
import asyncio
import sys
from hermes_state import SQLiteSessionDBProvider

def opened(store, *args, open=SQLiteSessionDBProvider.__init__, **options):
    try:
        asyncio.get_running_loop()
        print("opened on the loop", file=sys.stderr)
    except RuntimeError:
        print("opened away from the loop", file=sys.stderr)
    open(store, *args, **options)

SQLiteSessionDBProvider.__init__ = opened
"""
"""Makes a program say where it opens a store."""


def blocks(kind: str) -> list[tuple[str, str]]:
    """Return every block of one kind, with its page."""
    found = []
    for page in PAGES:
        for block in re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL):
            found.append((str(page.relative_to(ROOT)), block))
    return found


def programs() -> dict[str, str]:
    """Return the programs of each page, in order."""
    found: dict[str, str] = {}
    for page, block in blocks("python"):
        if not block.startswith(">>>"):
            found[page] = found.get(page, "") + block
    return found


@pytest.mark.parametrize("page", [page for page in programs() if page not in SERVER])
def test_the_programs_of_a_page_run(page: str, tmp_path: Path) -> None:
    home = tmp_path / ".hermes"
    with SessionDB(home / "state.db") as db:
        db.create_session("before", "telegram")
        db.append_message("before", "assistant", "use docker")
    environ = {**os.environ, "HOME": str(tmp_path), "HERMES_HOME": str(home)}
    done = subprocess.run(
        [sys.executable, "-c", programs()[page]], cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr


def test_the_program_about_repairs_repairs(tmp_path: Path) -> None:
    home = tmp_path / ".hermes"
    with SessionDB(home / "state.db") as db:
        db.create_session("before", "telegram")
        db.append_message("before", "assistant", "use docker")
    change(home / "state.db", "UPDATE sessions SET message_count = 7")
    environ = {**os.environ, "HOME": str(tmp_path), "HERMES_HOME": str(home)}
    program = programs()["docs/guide/doctor.md"]
    done = subprocess.run([sys.executable, "-c", program], env=environ, capture_output=True, text=True, timeout=100)
    assert "damaged ('counts',)" in done.stdout, done.stderr
    assert "state.db.damaged-" in done.stdout
    with SessionDB(home / "state.db") as db:
        assert db.list_sessions_rich()[0]["message_count"] == 1


def test_the_program_for_an_event_loop_opens_its_store_on_another_thread(tmp_path: Path) -> None:
    program = programs()["docs/reference/async.md"]
    environ = {**os.environ, "HOME": str(tmp_path), "HERMES_HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", NOTING_OPENERS + program], env=environ, capture_output=True, text=True, timeout=100
    )
    assert done.returncode == 0, done.stderr
    assert done.stderr == "opened away from the loop\n"


@pytest.mark.parametrize("page", sorted(SERVER))
def test_the_programs_for_a_server_run(page: str, tmp_path: Path) -> None:
    with ExitStack() as stack:
        server = server_or_skip(lambda: stack.enter_context(private_server("postgresql")))
        environ = {**os.environ, "HOME": str(tmp_path), "HERMES_HOME": str(tmp_path), "HERMES_DSN": server.dsn}
        command = [sys.executable, "-c", programs()[page]]
        done = subprocess.run(command, cwd=tmp_path, env=environ, capture_output=True, text=True, timeout=100)
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr


@pytest.mark.parametrize(("page", "block"), blocks("yaml"))
def test_settings_of_an_example_are_accepted(page: str, block: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(block)
    assert load_config(tmp_path) is not None


@pytest.mark.parametrize(("page", "block"), blocks("json"))
def test_data_can_be_parsed(page: str, block: str) -> None:
    assert json.loads(block)


@pytest.mark.parametrize("page", DIALOGUES)
def test_a_dialogue_comes_out_as_shown(page: str) -> None:
    text = "".join(block for where, block in blocks("pycon") if where == page)
    failures: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    doctest.DocTestRunner(verbose=False).run(test, out=failures.append)
    assert failures == []


def test_the_dialogue_with_tools_comes_out_as_shown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page, wiki = "docs/guide/tools.md", tmp_path / "wiki"
    wiki.mkdir()
    (wiki / "README.md").write_text("# Wiki\n\nA wiki for the team.\n")
    (wiki / ".env").write_text("KEY=secret\n")
    monkeypatch.chdir(wiki)
    monkeypatch.setenv("HOME", str(tmp_path / "you"))
    monkeypatch.setenv("HERMES_HOME", str(tmp_path / "you" / ".hermes"))
    known: dict[str, object] = {}
    exec(programs()[page], known)
    (shown,) = (block for where, block in blocks("pycon") if where == page)
    shown = re.sub(r"pid \d+", "pid ...", shown.replace("/home/you/wiki", str(wiki)))
    # An empty line in a result would end it for doctest.
    shown = re.sub(r"\n\n(?!>>>)", "\n<BLANKLINE>\n", shown)
    failures: list[str] = []
    test = doctest.DocTestParser().get_doctest(shown, known, page, page, 0)
    doctest.DocTestRunner(verbose=False, optionflags=doctest.ELLIPSIS).run(test, out=failures.append)
    assert failures == []


@pytest.fixture
def utc() -> Iterator[None]:
    """Use the time zone of the documents."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()


@pytest.mark.usefixtures("utc")
def test_recall_examples_show_the_real_output(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    now = 1794770580.0
    with SessionDB(tmp_path / "state.db", clock=lambda: now) as db:
        db.create_session(NGINX, "cli", model="some-model")
        db.set_session_title(NGINX, "nginx in front of the app")
        refuses = "nginx refuses bodies above 1 MB. Set client_max_body_size 50m; in the server block and reload."
        messages = [("user", "The upload of large files fails with 413."), ("assistant", refuses)]
        for number, (role, text) in enumerate([*messages, ("user", "That works, thanks.")]):
            db.append_message(NGINX, role, text, timestamp=now + number)
        now = 1794820580.0
        db.create_session(ASKING, "cli")
        db.append_message(ASKING, "user", "What did we set in nginx for uploads?", timestamp=now)
    text = (ROOT / "docs/reference/recall.md").read_text()
    shown = re.findall(
        r"```pycon\n>>> print\((session_search\([^\n]*\))\)\n(?:```\n\n```json\n)?(.*?)```", text, re.DOTALL
    )
    found = [json.loads(eval(call, {"session_search": session_search})) for call, _ in shown]
    assert found == [json.loads(answer) for _, answer in shown]
    assert len(found) == 3


@pytest.mark.parametrize(("page", "block"), blocks("pycon"))
def test_a_dialogue_can_be_parsed(page: str, block: str) -> None:
    for example in doctest.DocTestParser().get_examples(block):
        assert ast.parse(example.source).body


def commands() -> list[str]:
    """Return every Hermes command that the documents show at a prompt."""
    shown = (line[2:] for _, block in blocks("console") for line in block.splitlines() if line.startswith("$ "))
    return sorted({line for line in shown if "hermes" in shlex.split(line, comments=True)} - REFUSED)


@pytest.mark.parametrize("line", commands())
def test_a_shown_command_exists(line: str) -> None:
    words = shlex.split(line, comments=True)
    words = words[words.index("hermes") + 1 :]
    ends = [at for at, word in enumerate(words) if word in ("|", "<", ">", "&&")]
    words = words[: min(ends, default=len(words))]
    if not words or words[0].startswith("-"):
        words = ["chat", *words]
    command: click.Command = hermes
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words[0])
        assert found is not None, f"there is no command {words[0]}"
        command, words = found, words[1:]
    command.make_parser(click.Context(command)).parse_args(words)
