"""The tools `edit_file` and `write_file`: what they change, what they keep, and what they tell the model."""

from __future__ import annotations

import os
import stat
from pathlib import Path

import pytest

from hermes.agent.safety.approval import Approvals, Decision
from hermes.agent.safety.permits import Permits
from tests.agent.tools.workbench import Workbench

NOBODY = 65_534
CODE = "def add(one, other):\n    return one + other\n\n\ndef sub(one, other):\n    return one - other\n"


def put(path: Path, content: str | bytes) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class TestReplacing:
    def test_part_is_replaced_and_the_rest_stays(self, bench: Workbench) -> None:
        file = put(bench.work / "sums.py", CODE)
        text = bench.call("edit_file", path="sums.py", old="one - other", new="other - one")
        assert file.read_text() == CODE.replace("one - other", "other - one")
        assert text.startswith("[changed sums.py: 1 line added, 1 removed; change ")

    @pytest.mark.parametrize("old", ["return one", "(one, other)", " "])
    def test_part_that_occurs_twice_is_refused_with_its_lines(self, bench: Workbench, old: str) -> None:
        file = put(bench.work / "sums.py", CODE)
        reason = bench.refused("edit_file", path="sums.py", old=old, new="x")
        assert "times, in lines 1" in reason or "times, in lines 2, 6" in reason
        assert "replace_all" in reason
        assert file.read_text() == CODE

    def test_overlapping_occurrences_are_ambiguous(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "aaa\n")
        assert bench.refused("edit_file", path="a.txt", old="aa", new="b").startswith(
            "old occurs 2 times, in lines 1, 1;"
        )

    def test_every_occurrence_is_replaced_on_request(self, bench: Workbench) -> None:
        file = put(bench.work / "sums.py", CODE)
        bench.call("edit_file", path="sums.py", old="other", new=r"second\1", replace_all=True)
        assert file.read_text() == CODE.replace("other", r"second\1")

    @pytest.mark.parametrize(
        ("old", "reason"),
        [
            ("2\t    return one + other", "it begins with the line numbers that read_file adds; leave them out"),
            ("def add(one,  other):\n  return one + other", "lines 1-2 differ only in blanks; copy them exactly"),
            ("return one - other\n", ""),
            ("def sub(one, other):\n    return 0", "its first line is line 5, but what follows there is different"),
            ("mul", "old does not occur in the file, which has 7 lines; read it again"),
            ("", "old is empty"),
        ],
    )
    def test_missing_part_is_explained(self, bench: Workbench, old: str, reason: str) -> None:
        file = put(bench.work / "sums.py", CODE)
        if not reason:
            bench.call("edit_file", path="sums.py", old=old, new="return other - one\n")
            return
        assert reason in bench.refused("edit_file", path="sums.py", old=old, new="x")
        assert file.read_text() == CODE
        assert bench.person.asked == []

    def test_change_to_the_same_text_is_refused(self, bench: Workbench) -> None:
        put(bench.work / "sums.py", CODE)
        assert "the same" in bench.refused("edit_file", path="sums.py", old="one", new="one")
        assert "exactly this content already" in bench.refused("write_file", path="sums.py", content=CODE)

    def test_missing_file_is_named(self, bench: Workbench) -> None:
        assert "there is no file a.py" in bench.refused("edit_file", path="a.py", old="a", new="b")


class TestWriting:
    def test_new_file_gets_its_directories_and_the_mode_of_the_umask(self, bench: Workbench) -> None:
        before = os.umask(0o027)
        try:
            text = bench.call("write_file", path="src/deep/a.py", content="one\ntwo\n")
        finally:
            os.umask(before)
        file = bench.work / "src" / "deep" / "a.py"
        assert file.read_text() == "one\ntwo\n"
        assert stat.S_IMODE(file.stat().st_mode) == 0o640
        assert text.startswith("[made src/deep/a.py: 2 lines added; change ")
        assert "(with the new directories " in bench.person.asked[0].detail

    def test_whole_content_is_replaced(self, bench: Workbench) -> None:
        file = put(bench.work / "a.txt", "one\ntwo\nthree\n")
        bench.call("write_file", path="a.txt", content="one\n2\nthree\n")
        assert file.read_text() == "one\n2\nthree\n"
        assert bench.person.asked[0].diff is not None
        assert bench.person.asked[0].diff.text == " one\n-two\n+2\n three"

    def test_no_draft_stays_beside_the_file(self, bench: Workbench) -> None:
        bench.call("write_file", path="a.txt", content="one\n")
        bench.call("edit_file", path="a.txt", old="one", new="two")
        assert os.listdir(bench.work) == ["a.txt"]


class TestKept:
    @pytest.mark.parametrize("mode", [0o600, 0o644, 0o755, 0o440])
    def test_mode_is_kept(self, bench: Workbench, mode: int) -> None:
        file = put(bench.work / "run.sh", "echo one\n")
        file.chmod(mode)
        bench.call("edit_file", path="run.sh", old="one", new="two")
        assert stat.S_IMODE(file.stat().st_mode) == mode

    def test_set_user_id_is_not_kept(self, bench: Workbench) -> None:
        file = put(bench.work / "run.sh", "echo one\n")
        file.chmod(0o4755)
        bench.call("edit_file", path="run.sh", old="one", new="two")
        assert stat.S_IMODE(file.stat().st_mode) == 0o755

    def test_owner_is_kept(self, bench: Workbench) -> None:
        file = put(bench.work / "a.txt", "one\n")
        if os.geteuid() == 0:  # only root can give a file away
            os.chown(file, NOBODY, NOBODY)
        owner = (file.stat().st_uid, file.stat().st_gid)
        bench.call("edit_file", path="a.txt", old="one", new="two")
        assert (file.stat().st_uid, file.stat().st_gid) == owner

    @pytest.mark.parametrize(
        ("before", "after"),
        [
            (b"one\r\ntwo\r\nthree\r\n", b"one\r\n2\r\nII\r\nthree\r\n"),
            (b"\xef\xbb\xbfone\ntwo\nthree", b"\xef\xbb\xbfone\n2\nII\nthree"),
            (b"one\ntwo\r\nthree\n", b"one\n2\nII\r\nthree\n"),
            (b"one\r\ntwo\nthree", b"one\r\n2\nII\nthree"),
        ],
    )
    def test_line_breaks_and_byte_order_mark_are_kept(self, bench: Workbench, before: bytes, after: bytes) -> None:
        file = put(bench.work / "a.txt", before)
        bench.call("edit_file", path="a.txt", old="two", new="2\nII")
        assert file.read_bytes() == after

    def test_old_with_several_lines_is_found_whatever_ends_them(self, bench: Workbench) -> None:
        file = put(bench.work / "a.txt", b"one\r\ntwo\nthree\r\nfour\n")
        bench.call("edit_file", path="a.txt", old="one\ntwo\nthree", new="1\n2")
        assert file.read_bytes() == b"1\r\n2\r\nfour\n"

    def test_replaced_file_keeps_its_line_breaks(self, bench: Workbench) -> None:
        file = put(bench.work / "a.txt", b"one\r\ntwo\r\n")
        bench.call("write_file", path="a.txt", content="1\n2\n")
        assert file.read_bytes() == b"1\r\n2\r\n"
        assert "its lines end with CR LF" in bench.person.asked[0].detail


class TestContent:
    @pytest.mark.parametrize(
        ("data", "reason"),
        [
            (b"\x89PNG\0one", "not a text file: 8 bytes of binary data"),
            ("größe one\n".encode("latin-1"), "not a UTF-8 text: line 1 has other bytes"),
            (b"one\n" * 300_000, "at most 1000000 can be changed"),
        ],
    )
    def test_file_that_is_no_text_is_refused(self, bench: Workbench, data: bytes, reason: str) -> None:
        file = put(bench.work / "a.bin", data)
        for arguments in ({"old": "one", "new": "two"}, {"content": "two"}):
            tool = "edit_file" if "old" in arguments else "write_file"
            assert reason in bench.refused(tool, path="a.bin", **arguments)
        assert file.read_bytes() == data

    @pytest.mark.parametrize(
        ("content", "reason"),
        [("a\0b", "zero byte"), ("\ud800", "half of a surrogate pair"), ("x" * 1_000_001, "the limit is 1000000")],
    )
    def test_content_that_is_no_text_is_refused(self, bench: Workbench, content: str, reason: str) -> None:
        assert reason in bench.refused("write_file", path="a.txt", content=content)
        assert os.listdir(bench.work) == []


class TestPermission:
    def test_question_has_the_whole_change(self, bench: Workbench) -> None:
        put(bench.work / "sums.py", CODE)
        bench.call("edit_file", path="sums.py", old="one - other", new="other - one  ")
        (request,) = bench.person.asked
        assert request.summary == "change sums.py"
        assert request.detail == (
            f"{bench.work}/sums.py\n1 line added, 1 removed\n\n@@ line 3\n \n \n def sub(one, other):\n"
            "-    return one - other\n+    return other - one··"
        )
        assert request.diff is not None
        assert request.about == f"{bench.work}/sums.py\n1 line added, 1 removed\n\n"

    def test_denied_change_is_not_made(self, bench: Workbench) -> None:
        bench.person.decision = Decision.DENY
        file = put(bench.work / "sums.py", CODE)
        assert "has not allowed this" in bench.refused("edit_file", path="sums.py", old="sub", new="minus")
        assert "has not allowed this" in bench.refused("write_file", path="new/a.py", content="x\n")
        assert file.read_text() == CODE
        assert os.listdir(bench.work) == ["sums.py"]

    @pytest.mark.parametrize("decision", [Decision.SESSION, Decision.ALWAYS])
    def test_permission_holds_for_this_file_in_this_session_only(self, bench: Workbench, decision: Decision) -> None:
        bench.person.decision = decision
        put(bench.work / "sums.py", CODE)
        bench.call("edit_file", path="sums.py", old="sub", new="minus")
        bench.call("write_file", path="sums.py", content="x\n")
        assert len(bench.person.asked) == 1
        bench.call("write_file", path="other.py", content="x\n")
        assert len(bench.person.asked) == 2
        bench.change(approvals=Approvals("ask", Permits(bench.context.home)))
        bench.call("write_file", path="sums.py", content="y\n")
        assert len(bench.person.asked) == 3

    @pytest.mark.parametrize("name", ["run.sh", "Makefile", ".github/workflows/ci.yml", "AGENTS.md", "src/conftest.py"])
    def test_file_that_programs_run_is_a_high_risk(self, bench: Workbench, name: str) -> None:
        put(bench.work / name, "one\n").chmod(0o755 if name == "run.sh" else 0o644)
        bench.call("edit_file", path=name, old="one", new="two")
        assert bench.person.asked[0].risk == "high"

    def test_nothing_is_written_where_no_user_can_be_asked(self, bench: Workbench) -> None:
        bench.change(approve=None)
        assert "who cannot be asked" in bench.refused("write_file", path="a.txt", content="x\n")
        assert os.listdir(bench.work) == []

    def test_home_directory_allows_one_change_at_a_time(self, bench: Workbench) -> None:
        home = bench.context.home.parent
        from hermes.agent.tools.context import WorkingDirectory

        bench.change(working_directory=WorkingDirectory(home))
        bench.person.decision = Decision.SESSION
        bench.call("write_file", path="notes.txt", content="one\n")
        bench.call("write_file", path="notes.txt", content="two\n")
        assert len(bench.person.asked) == 2
        for name in (".bashrc", ".config/autostart/a.desktop", ".hermes/config.yaml"):
            assert "cannot be changed" in bench.refused("write_file", path=name, content="x\n")


def test_result_has_the_change_as_data(bench: Workbench) -> None:
    result = bench.run("write_file", '{"path": "a.txt", "content": "one\\n"}')
    assert result.diff is not None
    assert [(each.kind, each.text, each.number) for each in result.diff.lines] == [("added", "one", 1)]
