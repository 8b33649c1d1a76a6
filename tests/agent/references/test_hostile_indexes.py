"""Indexes that git did not write: git opens every file that an index names, wherever it is."""

from __future__ import annotations

import struct
from hashlib import sha1
from pathlib import Path

import pytest

from hermes.agent.references.git.repository import has_odd_name
from hermes.agent.references.listing import list_project
from tests.agent.references.conftest import block_of, read, remark_on
from tests.agent.tools.test_repositories import Repository
from tests.agent.tools.workbench import Workbench

OURS, THEIRS = 0x2000, 0x3000
"""The flags of the two sides of a conflict."""
_FILE = 0o100644
_TIMES_AND_PLACE, _SIZE = (1, 0, 1, 0, 0, 0), (0, 0, 3)


def write_index(repo: Repository, *names: str, conflict: str = "") -> None:
    """Write an index with these names, and with a conflict about a file."""
    ours, theirs = (repo.git("hash-object", "-w", "--stdin", text=text) for text in ("one\n", "other\n"))
    entries = [(name, 0, ours) for name in names]
    entries += [(conflict, OURS, ours), (conflict, THEIRS, theirs)] if conflict else []
    index = b"DIRC" + struct.pack(">II", 2, len(entries))
    for name, flags, blob in sorted(entries):
        path = name.encode()
        entry = struct.pack(">10I", *_TIMES_AND_PLACE, _FILE, *_SIZE) + bytes.fromhex(blob)
        entry += struct.pack(">H", flags | len(path)) + path
        index += entry + b"\0" * (8 - len(entry) % 8)
    (repo.place / ".git" / "index").write_bytes(index + sha1(index, usedforsecurity=False).digest())


@pytest.fixture
def private(bench: Workbench, repo: Repository) -> Path:
    """A file outside of the session's directory, which needs permission."""
    place = bench.work.parent / "plans" / "plan.txt"
    place.parent.mkdir()
    place.write_text("TOP SECRET\n")
    return place


def test_git_itself_shows_the_files_that_an_index_names(repo: Repository, private: Path) -> None:
    write_index(repo, "a.txt", str(private), "../plans/plan.txt")
    assert repo.git("diff").count("+TOP SECRET") == 2, "the other tests show nothing"


@pytest.mark.parametrize("source", ["cli", "telegram"])
@pytest.mark.parametrize("name", ["{}/plan.txt", "../plans/plan.txt", "a/../../plans/plan.txt", "./../plans/plan.txt"])
def test_name_outside_of_the_work_tree_is_refused(
    bench: Workbench, repo: Repository, private: Path, name: str, source: str
) -> None:
    bench.change(source=source)
    write_index(repo, "a.txt", name.format(private.parent))
    assert remark_on(bench, "@diff") == "its git repository has an index with names that lead out of it"
    assert remark_on(bench, "@staged") == "its git repository has an index with names that lead out of it"
    assert bench.person.asked == []


def test_file_of_the_hermes_home_is_not_shown(bench: Workbench, repo: Repository) -> None:
    settings = bench.context.home / "config.yaml"
    settings.write_text("key: TOP SECRET\n")
    write_index(repo, "a.txt", str(settings))
    assert "TOP SECRET" not in read(bench, "@diff @staged @git:1 @folder:.").text


def test_folder_and_completion_leave_out_names_outside(bench: Workbench, repo: Repository, private: Path) -> None:
    write_index(repo, "a.txt", str(private), "../plans/plan.txt", ".git/config")
    assert block_of(bench, "@folder:.") == "a.txt  4 bytes\n"
    assert list_project(bench.context).paths == ("a.txt",)


def test_conflict_behind_a_link_shows_no_other_file(bench: Workbench, repo: Repository, private: Path) -> None:
    (bench.work / "dir").symlink_to(private.parent)
    write_index(repo, "a.txt", conflict="dir/plan.txt")
    assert "TOP SECRET" in repo.git("diff"), "git itself does not follow the link, so the test shows nothing"
    assert "the changes of dir/plan.txt are not shown: its directory is a link to another place" in block_of(
        bench, "@diff"
    )
    assert "TOP SECRET" not in read(bench, "@diff").text
    assert block_of(bench, "@folder:.") == "a.txt  4 bytes\ndir  (link)\n"


def test_conflict_in_the_project_is_shown(bench: Workbench, repo: Repository) -> None:
    write_index(repo, conflict="a.txt")
    assert "diff --cc a.txt" in block_of(bench, "@diff")


def test_link_in_place_of_a_part_of_an_index_is_said_plainly(bench: Workbench, repo: Repository) -> None:
    (bench.work / ".git" / "sharedindex.1").symlink_to("/etc/passwd")
    assert remark_on(bench, "@diff").startswith("the index of its git repository cannot be read: ")
    assert block_of(bench, "@folder:.") == "a.txt  4 bytes\n"


@pytest.mark.parametrize("index", [b"", b"DIRC", b"DIRC" + b"\xff" * 100])
def test_damaged_index_is_said_plainly(bench: Workbench, repo: Repository, index: bytes) -> None:
    (bench.work / ".git" / "index").write_bytes(index)
    remark = remark_on(bench, "@diff")
    assert remark.startswith("git failed: ")
    assert "/" not in remark.replace(".git/index", "")


@pytest.mark.parametrize(
    ("names", "is_odd"),
    [
        (b"", False),
        (b"a\0b/c\0", False),
        (b".gitignore\0.github/x\0..a\0a../b\0a/.gitmodules\0...\0", False),
        (b"a\0/etc/passwd\0", True),
        (b"a\0../b\0", True),
        (b"a/../b\0", True),
        (b"a/..\0", True),
        (b"./a\0", True),
        (b"a//b\0", True),
        (b"a/\0", True),
        (b".git/config\0", True),
        (b"a/.GIT/hooks/x\0", True),
        (b"a/.git\0", True),
    ],
)
def test_odd_names_are_found(names: bytes, is_odd: bool) -> None:
    assert has_odd_name(names) is is_odd
