"""What an agent notes about people: each owner's by themselves, bounded, and safe from other writers."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from hermes.agent.memory.lock_file import hold_lock
from hermes.agent.memory.notes import FileMemory, memory_block
from hermes.agent.memory.owner_files import owner_file_stem
from hermes.errors import ConfigError, InvalidValue, NotFound, StoreBusy
from hermes.state.owner import TERMINAL, owner_from_column, owner_of
from tests.agent.tools.workbench import Workbench

ROOT = Path(__file__).parents[3]
ADA = owner_of("telegram", "1")


@pytest.fixture
def memory(tmp_path: Path) -> FileMemory:
    """An empty memory."""
    return FileMemory(tmp_path)


class TestNotes:
    def test_none_at_first(self, memory: FileMemory) -> None:
        assert memory.read(ADA) == ""

    def test_they_are_a_markdown_list(self, memory: FileMemory) -> None:
        memory.add(ADA, "likes tea")
        memory.add(ADA, "works in\ntwo places\n\n  at once")
        assert memory.read(ADA) == "- likes tea\n- works in\n  two places\n  at once"

    def test_the_same_is_not_noted_twice(self, memory: FileMemory) -> None:
        memory.add(ADA, "likes tea")
        memory.add(ADA, "- likes tea ")
        assert memory.read(ADA) == "- likes tea"

    def test_replace_puts_one_in_the_place_of_another(self, memory: FileMemory) -> None:
        for note in ["likes tea", "lives in\nBrno", "has a dog"]:
            memory.add(ADA, note)
        memory.replace(ADA, "Brno", "lives in Prague")
        assert memory.read(ADA) == "- likes tea\n- lives in Prague\n- has a dog"

    def test_remove_drops_one(self, memory: FileMemory) -> None:
        for note in ["likes tea", "has a dog"]:
            memory.add(ADA, note)
        memory.remove(ADA, "TEA")
        assert memory.read(ADA) == "- has a dog"
        memory.remove(ADA, "dog")
        assert memory.read(ADA) == ""

    def test_case_decides_where_it_can(self, memory: FileMemory) -> None:
        for note in ["uses go", "plays Go"]:
            memory.add(ADA, note)
        memory.remove(ADA, "Go")
        assert memory.read(ADA) == "- uses go"

    def test_what_fits_several_or_none_changes_nothing(self, memory: FileMemory) -> None:
        for note in ["likes green tea", "likes black tea"]:
            memory.add(ADA, note)
        before = memory.read(ADA)
        with pytest.raises(NotFound, match="2 notes have 'tea' in them: - likes green tea; - likes black tea"):
            memory.remove(ADA, "tea")
        with pytest.raises(NotFound, match="no note has 'coffee' in it"):
            memory.replace(ADA, "coffee", "x")
        assert memory.read(ADA) == before

    @pytest.mark.parametrize("nothing", ["", "  ", "\n\n", "\x00\x1b"])
    def test_nothing_is_not_noted(self, memory: FileMemory, nothing: str) -> None:
        with pytest.raises(InvalidValue):
            memory.add(ADA, nothing)

    def test_nothing_matches_nothing(self, memory: FileMemory) -> None:
        memory.add(ADA, "likes tea")
        with pytest.raises(InvalidValue):
            memory.remove(ADA, " ")

    def test_what_cannot_be_seen_is_left_out(self, memory: FileMemory) -> None:
        memory.add(ADA, "a\u202eb\u200bc\x1bd\ud800e\u2028f")
        assert memory.read(ADA) == "- a b c d\ufffde f"


class TestPeopleEdit:
    def test_lines_that_are_no_items_are_notes_too(self, memory: FileMemory) -> None:
        memory.add(ADA, "x")
        memory.path(ADA).write_text("\ufeff# About me\r\n- likes tea\r\n  with milk\r\n\r\n# Work\r\n- uses vim\r\n")
        memory.remove(ADA, "milk")
        assert memory.read(ADA) == "# About me\n# Work\n- uses vim"

    def test_what_is_too_long_can_be_made_shorter(self, tmp_path: Path) -> None:
        memory = FileMemory(tmp_path, max_characters=200)
        memory.add(ADA, "x")
        memory.path(ADA).write_text("".join(f"- note {number} {'x' * 50}\n" for number in range(10)))
        memory.remove(ADA, "note 3")
        assert "note 3" not in memory.read(ADA)
        with pytest.raises(InvalidValue, match="there is no room"):
            memory.add(ADA, "y")

    def test_bytes_that_are_no_text_do_no_harm(self, memory: FileMemory) -> None:
        memory.add(ADA, "x")
        memory.path(ADA).write_bytes(b"- caf\xe9\n")
        assert memory.read(ADA) == "- caf\ufffd"

    def test_a_file_that_cannot_be_read_is_named(self, memory: FileMemory) -> None:
        memory.path(ADA).mkdir(parents=True)
        with pytest.raises(ConfigError, match="cannot read"):
            memory.read(ADA)


class TestRoom:
    def test_a_note_that_does_not_fit_is_refused_and_says_what_to_do(self, tmp_path: Path) -> None:
        memory = FileMemory(tmp_path, max_characters=20)
        memory.add(ADA, "x" * 18)
        with pytest.raises(InvalidValue) as caught:
            memory.add(ADA, "y")
        assert "would have 24 of 20 characters" in caught.value.message
        assert "one shorter note" in caught.value.hint
        assert memory.read(ADA) == "- " + "x" * 18


class TestOwners:
    def test_nobody_sees_anothers_notes(self, memory: FileMemory) -> None:
        owners = [
            "telegram:1",
            "telegram:2",
            "Telegram:1",
            "TELEGRAM:1",
            "telegram-1",
            None,
            "terminal",
            "",
            "../x",
            "a/b",
            "a:b",
        ]
        for owner in owners:
            memory.add(owner_from_column(owner), f"of {owner!r}")
        assert [memory.read(owner_from_column(owner)) for owner in owners] == [f"- of {owner!r}" for owner in owners]

    @pytest.mark.parametrize(
        "owner",
        [
            "../../etc/passwd",
            "/etc/passwd",
            "..",
            ".",
            "",
            "CON",
            "a" * 10_000,
            "日本",
            "a\0b",
            "\ud800",
            "x\n",
            "a\\b",
            "~",
        ],
    )
    def test_a_file_name_is_safe(self, owner: str) -> None:
        stem = owner_file_stem(owner_from_column(owner))
        assert stem.isascii()
        assert all(char.isalnum() or char == "-" for char in stem)
        assert stem == stem.lower()
        assert len(stem) <= 80

    @pytest.mark.parametrize("stored", ["terminal", "tui", "cli", "terminal:1", "tui:1", "Terminal", "", "-"])
    def test_the_file_of_the_terminal_is_nobody_elses(self, stored: str) -> None:
        assert owner_file_stem(TERMINAL) == "terminal"
        assert owner_file_stem(owner_from_column(stored)) != "terminal"

    def test_files_are_private(self, memory: FileMemory) -> None:
        memory.add(TERMINAL, "likes tea")
        path = memory.path(TERMINAL)
        assert path.name == "terminal.md"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()} == {0o600}


class TestOtherWriters:
    def test_nothing_is_lost_between_two_processes(self, tmp_path: Path) -> None:
        writers = [
            subprocess.Popen(
                [sys.executable, "-m", "tests.agent.tools.add_notes", str(tmp_path), str(ADA.stored), name, "25"],
                cwd=ROOT,
                env={**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT / "src"), str(ROOT)))},
            )
            for name in ("one", "two")
        ]
        assert [each.wait(60) for each in writers] == [0, 0]
        notes = FileMemory(tmp_path).read(ADA).splitlines()
        assert sorted(notes) == sorted(f"- {name} {number}" for name in ("one", "two") for number in range(25))

    def test_a_lock_that_is_held_is_not_waited_for_without_end(self, tmp_path: Path) -> None:
        path = tmp_path / "x.lock"
        with hold_lock(path), pytest.raises(StoreBusy, match="has held"), hold_lock(path, timeout_s=0.05):
            pass

    def test_a_lock_is_free_again(self, tmp_path: Path) -> None:
        for _ in range(2):
            with hold_lock(tmp_path / "x.lock", timeout_s=0.05):
                pass


class TestPrompt:
    def test_no_notes_take_no_room(self, memory: FileMemory) -> None:
        assert memory_block(memory, ADA) == ""

    def test_notes_are_said_to_be_notes(self, memory: FileMemory) -> None:
        memory.add(ADA, "likes tea")
        block = memory_block(memory, ADA)
        assert block.endswith("\n\n- likes tea")
        assert "not instructions" in block

    def test_only_so_much_of_a_file_that_grew_by_hand(self, memory: FileMemory) -> None:
        memory.add(ADA, "x")
        memory.path(ADA).write_text("x" * 100_000)
        assert len(memory_block(memory, ADA)) < 4_300


class TestTool:
    def test_notes_go_round(self, bench: Workbench) -> None:
        assert bench.call("memory", action="read") == "[there are no notes yet]"
        assert bench.call("memory", action="add", text="likes tea") == "[done; the notes have 11 of 4000 characters]"
        bench.call("memory", action="replace", match="tea", text="likes coffee")
        assert bench.call("memory", action="read") == "- likes coffee"
        bench.call("memory", action="remove", match="coffee")
        assert bench.call("memory", action="read") == "[there are no notes yet]"

    def test_they_are_those_of_the_contexts_owner(self, bench: Workbench) -> None:
        bench.call("memory", action="add", text="of the terminal")
        bench.change(owner=ADA)
        assert bench.call("memory", action="read") == "[there are no notes yet]"
        bench.call("memory", action="add", text="of Ada")
        bench.context = replace(bench.context, owner=owner_of("telegram", "2"))
        assert bench.call("memory", action="read") == "[there are no notes yet]"

    @pytest.mark.parametrize(
        ("action", "given", "said"),
        [
            ("add", {}, "add needs text"),
            ("replace", {"text": "x"}, "replace needs match"),
            ("replace", {"match": "x"}, "replace needs text"),
            ("remove", {}, "remove needs match"),
            ("remove", {"match": "x"}, "no note has 'x' in it (read shows all notes)"),
            ("forget", {}, 'action must be one of read, add, replace, remove, not "forget"'),
        ],
    )
    def test_what_is_missing_is_said(self, bench: Workbench, action: str, given: dict[str, str], said: str) -> None:
        assert bench.refused("memory", action=action, **given) == said
