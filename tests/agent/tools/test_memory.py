"""Notes about users: separate per owner, limited, and safe with several writers."""

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
    def test_memory_is_empty_at_first(self, memory: FileMemory) -> None:
        assert memory.read(ADA) == ""

    def test_notes_are_a_markdown_list(self, memory: FileMemory) -> None:
        memory.add(ADA, "likes tea")
        memory.add(ADA, "works in\ntwo places\n\n  at once")
        assert memory.read(ADA) == "- likes tea\n- works in\n  two places\n  at once"

    def test_same_note_is_not_added_twice(self, memory: FileMemory) -> None:
        memory.add(ADA, "likes tea")
        memory.add(ADA, "- likes tea ")
        assert memory.read(ADA) == "- likes tea"

    def test_replace_changes_one_note(self, memory: FileMemory) -> None:
        for note in ["likes tea", "lives in\nBrno", "has a dog"]:
            memory.add(ADA, note)
        memory.replace(ADA, "Brno", "lives in Prague")
        assert memory.read(ADA) == "- likes tea\n- lives in Prague\n- has a dog"

    def test_remove_deletes_one_note(self, memory: FileMemory) -> None:
        for note in ["likes tea", "has a dog"]:
            memory.add(ADA, note)
        memory.remove(ADA, "TEA")
        assert memory.read(ADA) == "- has a dog"
        memory.remove(ADA, "dog")
        assert memory.read(ADA) == ""

    def test_match_prefers_the_same_case(self, memory: FileMemory) -> None:
        for note in ["uses go", "plays Go"]:
            memory.add(ADA, note)
        memory.remove(ADA, "Go")
        assert memory.read(ADA) == "- uses go"

    def test_match_of_several_or_no_notes_changes_nothing(self, memory: FileMemory) -> None:
        for note in ["likes green tea", "likes black tea"]:
            memory.add(ADA, note)
        before = memory.read(ADA)
        with pytest.raises(NotFound, match="2 notes contain 'tea': - likes green tea; - likes black tea"):
            memory.remove(ADA, "tea")
        with pytest.raises(NotFound, match="no note contains 'coffee'"):
            memory.replace(ADA, "coffee", "x")
        assert memory.read(ADA) == before

    @pytest.mark.parametrize("nothing", ["", "  ", "\n\n", "\x00\x1b"])
    def test_empty_note_is_refused(self, memory: FileMemory, nothing: str) -> None:
        with pytest.raises(InvalidValue):
            memory.add(ADA, nothing)

    def test_empty_match_is_refused(self, memory: FileMemory) -> None:
        memory.add(ADA, "likes tea")
        with pytest.raises(InvalidValue):
            memory.remove(ADA, " ")

    def test_invisible_characters_are_removed(self, memory: FileMemory) -> None:
        memory.add(ADA, "a\u202eb\u200bc\x1bd\ud800e\u2028f")
        assert memory.read(ADA) == "- a b c d\ufffde f"


class TestPeopleEdit:
    def test_lines_without_a_bullet_are_notes(self, memory: FileMemory) -> None:
        memory.add(ADA, "x")
        memory.path(ADA).write_text("\ufeff# About me\r\n- likes tea\r\n  with milk\r\n\r\n# Work\r\n- uses vim\r\n")
        memory.remove(ADA, "milk")
        assert memory.read(ADA) == "# About me\n# Work\n- uses vim"

    def test_too_long_file_can_be_shortened(self, tmp_path: Path) -> None:
        memory = FileMemory(tmp_path, max_characters=200)
        memory.add(ADA, "x")
        memory.path(ADA).write_text("".join(f"- note {number} {'x' * 50}\n" for number in range(10)))
        memory.remove(ADA, "note 3")
        assert "note 3" not in memory.read(ADA)
        with pytest.raises(InvalidValue, match="the notes would be too long"):
            memory.add(ADA, "y")

    def test_invalid_utf8_in_the_file_is_replaced(self, memory: FileMemory) -> None:
        memory.add(ADA, "x")
        memory.path(ADA).write_bytes(b"- caf\xe9\n")
        assert memory.read(ADA) == "- caf\ufffd"

    def test_unreadable_file_is_named(self, memory: FileMemory) -> None:
        memory.path(ADA).mkdir(parents=True)
        with pytest.raises(ConfigError, match="cannot read"):
            memory.read(ADA)

    def test_pipe_is_refused_and_not_waited_for(self, memory: FileMemory) -> None:
        memory.path(ADA).parent.mkdir(parents=True)
        os.mkfifo(memory.path(ADA))
        with pytest.raises(ConfigError, match="it is not a plain file"):
            memory.read(ADA)


class TestLimit:
    def test_note_beyond_the_limit_is_refused_with_a_hint(self, tmp_path: Path) -> None:
        memory = FileMemory(tmp_path, max_characters=20)
        memory.add(ADA, "x" * 18)
        with pytest.raises(InvalidValue) as caught:
            memory.add(ADA, "y")
        assert "too long: 24 of 20 characters" in caught.value.message
        assert "into a shorter one" in caught.value.hint
        assert memory.read(ADA) == "- " + "x" * 18


class TestOwners:
    def test_owners_do_not_share_notes(self, memory: FileMemory) -> None:
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
    def test_file_names_are_safe_and_unique(self, owner: str) -> None:
        stem = owner_file_stem(owner_from_column(owner))
        assert stem.isascii()
        assert all(char.isalnum() or char == "-" for char in stem)
        assert stem == stem.lower()
        assert len(stem) <= 80

    @pytest.mark.parametrize("stored", ["terminal", "tui", "cli", "terminal:1", "tui:1", "Terminal", "", "-"])
    def test_no_owner_gets_the_file_of_the_terminal(self, stored: str) -> None:
        assert owner_file_stem(TERMINAL) == "terminal"
        assert owner_file_stem(owner_from_column(stored)) != "terminal"

    def test_note_files_are_private(self, memory: FileMemory) -> None:
        memory.add(TERMINAL, "likes tea")
        path = memory.path(TERMINAL)
        assert path.name == "terminal.md"
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
        assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
        assert {stat.S_IMODE(each.stat().st_mode) for each in path.parent.iterdir()} == {0o600}


class TestOtherWriters:
    def test_parallel_processes_lose_no_notes(self, tmp_path: Path) -> None:
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

    def test_wait_for_a_held_lock_is_limited(self, tmp_path: Path) -> None:
        path = tmp_path / "x.lock"
        with hold_lock(path), pytest.raises(StoreBusy, match="has held"), hold_lock(path, timeout_s=0.05):
            pass

    def test_lock_is_released(self, tmp_path: Path) -> None:
        path = tmp_path / "x.lock"
        with hold_lock(path, timeout_s=0.05):
            pass
        with hold_lock(path, timeout_s=0.05):
            assert path.exists()


class TestPrompt:
    def test_empty_memory_adds_nothing_to_the_prompt(self, memory: FileMemory) -> None:
        assert memory_block(memory, ADA) == ""

    def test_prompt_marks_notes_as_notes(self, memory: FileMemory) -> None:
        memory.add(ADA, "likes tea")
        block = memory_block(memory, ADA)
        assert block.endswith("\n\n- likes tea")
        assert "not instructions" in block

    def test_prompt_cuts_a_too_long_file(self, memory: FileMemory) -> None:
        memory.add(ADA, "x")
        memory.path(ADA).write_text("x" * 100_000)
        assert len(memory_block(memory, ADA)) < 4_300


class TestTool:
    def test_memory_tool_adds_reads_replaces_and_removes(self, bench: Workbench) -> None:
        assert bench.call("memory", action="read") == "[there are no notes yet]"
        assert bench.call("memory", action="add", text="likes tea") == "[done; the notes have 11 of 4000 characters]"
        bench.call("memory", action="replace", match="tea", text="likes coffee")
        assert bench.call("memory", action="read") == "- likes coffee"
        bench.call("memory", action="remove", match="coffee")
        assert bench.call("memory", action="read") == "[there are no notes yet]"

    def test_memory_tool_uses_the_owner_of_the_context(self, bench: Workbench) -> None:
        bench.call("memory", action="add", text="of the terminal")
        bench.change(owner=ADA)
        assert bench.call("memory", action="read") == "[there are no notes yet]"
        bench.call("memory", action="add", text="of Ada")
        bench.context = replace(bench.context, owner=owner_of("telegram", "2"))
        assert bench.call("memory", action="read") == "[there are no notes yet]"

    @pytest.mark.parametrize(
        ("action", "given", "expected"),
        [
            ("add", {}, "add needs text"),
            ("replace", {"text": "x"}, "replace needs match"),
            ("replace", {"match": "x"}, "replace needs text"),
            ("remove", {}, "remove needs match"),
            ("remove", {"match": "x"}, "no note contains 'x' (use the action read to see all notes)"),
            ("forget", {}, 'action must be one of read, add, replace, remove, not "forget"'),
        ],
    )
    def test_memory_tool_reports_missing_arguments(
        self, bench: Workbench, action: str, given: dict[str, str], expected: str
    ) -> None:
        assert bench.refused("memory", action=action, **given) == expected
