"""The transcripts in the documents are what the program writes."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pytest

from tests.support.servers import server_or_skip
from tests.support.transcript_home import ROOT
from tests.support.transcript_states import STATES
from tools.transcript_pages import (
    Block,
    Result,
    Scene,
    blocks_of,
    normalised,
    not_run,
    pages,
    scenes_of,
    shorten,
    write,
)
from tools.transcripts import run_scene

MAX_NOT_RUN = 3
"""A transcript that is not run can become wrong: there should be few."""

SCENES = [scene for page in pages() for scene in scenes_of(page)]


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: f"{scene.place}-{scene.blocks[0].state}")
def test_a_transcript_is_what_the_program_writes(scene: Scene) -> None:
    results = server_or_skip(lambda: run_scene(scene))
    differences = "\n".join(result.difference() for result in results if not result.is_same)
    assert not differences, f"{differences}\n\n`python -m tools.transcripts --write` puts fresh output into the pages."


def test_few_transcripts_are_not_run(capsys: pytest.CaptureFixture[str]) -> None:
    with capsys.disabled():
        for block in not_run():
            sys.stdout.write(f"\n{block.place}: not run: {block.reason}\n")
    assert all(block.reason for block in not_run())
    assert len(not_run()) <= MAX_NOT_RUN


@pytest.mark.parametrize("page", pages(), ids=lambda page: page.name)
def test_every_command_at_a_prompt_is_in_a_console_block(page: Path) -> None:
    others = re.sub(r"^ *```console\n.*?^ *```$", "", page.read_text(), flags=re.MULTILINE | re.DOTALL)
    assert re.findall(r"^ *\$ \w.*", others, flags=re.MULTILINE) == []


def test_every_state_is_used() -> None:
    used = {scene.blocks[0].state for scene in SCENES}
    assert set(STATES) - used == set()


def block(text: str, page: Path = ROOT / "README.md", indent: str = "") -> Block:
    return Block(page, 1, indent, "empty", text)


class TestTool:
    def test_commands_are_split_from_their_output(self) -> None:
        first, second = block("$ hermes --version\nHermes\n$ hermes\n> hi\nhello\n>\n").commands()
        assert (first.line, first.shown, first.inputs) == ("hermes --version", ("Hermes",), [])
        assert (second.inputs, second.is_left_open) == (["hi"], True)

    def test_the_reply_to_a_question_is_typed(self) -> None:
        (command,) = block("$ hermes sessions restore x.db\nRestore it? [y/N]: y\n").commands()
        assert command.inputs == ["y"]

    def test_text_that_differs_between_runs_is_ignored(self) -> None:
        before = ["20261116_064504_462f380e  0.3 MB", "answers in 5.5 ms"]
        assert normalised(before) == normalised(["20270101_000000_00000000    12.3 MB", "answers in 10 ms"])
        assert normalised(["3 sessions"]) != normalised(["4 sessions"])

    def test_omitted_lines_stay_omitted(self) -> None:
        assert shorten(["a", "b", "c", "d"], ["a", "...", "x"]) == ["a", "...", "d"]
        assert shorten(["a", "d"], ["a", "...", "d"]) == ["a", "d"]

    def test_a_difference_is_shown_and_written(self, tmp_path: Path) -> None:
        page = tmp_path / "page.md"
        block = "<!-- transcript: empty -->\n```console\n$ hermes --version\n```\n"
        page.write_text(f"{block}text\n{block}")
        first, second = (Result(each, ["$ hermes --version", "new"]) for each in blocks_of(page))
        assert "+new" in first.difference()
        write(page, [first, second])
        expected = block.replace("version\n", "version\nnew\n")
        assert page.read_text() == f"{expected}text\n{expected}"
