"""What the documents show runs as it is written: programs, settings and data."""

from __future__ import annotations

import ast
import doctest
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path

import click
import pytest

from hermes.cli.app import hermes
from hermes.config import load_config
from hermes_state import SessionDB
from tests.support.plainsql import change

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", *(ROOT / "docs").rglob("*.md")])

SERVER = {"docs/guide/providers.md"}
"""Pages whose programs need a server of the reader's own; those are only parsed."""

DIALOGUES = ["docs/guide/models.md"]
"""Pages whose dialogues with Python come out the same everywhere; the others speak of processes and days."""

REFUSED = {"hermes sessions search deploy -docker"}
"""Commands that are shown because they are refused."""


def blocks(kind: str) -> list[tuple[str, str]]:
    """Every block of one kind, with the page it is on."""
    found = []
    for page in PAGES:
        for block in re.findall(rf"^```{kind}\n(.*?)^```", page.read_text(), flags=re.MULTILINE | re.DOTALL):
            found.append((str(page.relative_to(ROOT)), block))
    return found


def programs() -> dict[str, str]:
    """The programs of each page, in their order."""
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


@pytest.mark.parametrize("page", sorted(SERVER))
def test_programs_for_a_server_can_be_parsed(page: str) -> None:
    assert ast.parse(programs()[page]).body


@pytest.mark.parametrize(("page", "block"), blocks("yaml"))
def test_settings_are_accepted(page: str, block: str, tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(block)
    assert load_config(tmp_path) is not None


@pytest.mark.parametrize(("page", "block"), blocks("json"))
def test_data_can_be_parsed(page: str, block: str) -> None:
    assert json.loads(block)


@pytest.mark.parametrize("page", DIALOGUES)
def test_a_dialogue_comes_out_as_shown(page: str) -> None:
    text = "".join(block for where, block in blocks("pycon") if where == page)
    told: list[str] = []
    test = doctest.DocTestParser().get_doctest(text, {}, page, page, 0)
    doctest.DocTestRunner(verbose=False).run(test, out=told.append)
    assert told == []


@pytest.mark.parametrize(("page", "block"), blocks("pycon"))
def test_a_dialogue_can_be_parsed(page: str, block: str) -> None:
    for example in doctest.DocTestParser().get_examples(block):
        assert ast.parse(example.source).body


def commands() -> list[str]:
    """Every command of Hermes that the documents show at a prompt."""
    shown = (line[2:] for _, block in blocks("console") for line in block.splitlines() if line.startswith("$ "))
    return sorted({line for line in shown if "hermes" in shlex.split(line, comments=True)} - REFUSED)


@pytest.mark.parametrize("line", commands())
def test_a_shown_command_is_one_that_there_is(line: str) -> None:
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
