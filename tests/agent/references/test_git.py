"""What `@diff`, `@staged` and `@git:` attach."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from hermes.agent.references.git.patches import without_protected
from hermes.agent.references.git.process import Git, find_git
from hermes.agent.references.texts import NotAttached
from hermes.agent.safety.approval import Decision
from hermes.errors import InvalidValue
from tests.agent.references.conftest import block_of, read, remark_on
from tests.agent.tools.test_repositories import Repository
from tests.agent.tools.workbench import Workbench


def test_changes_are_attached(bench: Workbench, repo: Repository) -> None:
    repo.change()
    assert block_of(bench, "@diff").endswith("@@ -1 +1,2 @@\n one\n+two\n")
    repo.git("add", ".")
    assert block_of(bench, "@staged").endswith("@@ -1 +1,2 @@\n one\n+two\n")
    assert block_of(bench, "@diff") == "(no output)\n"
    assert "changes that are not staged: none" in read(bench, "@diff").text


def test_commits_are_attached(bench: Workbench, repo: Repository) -> None:
    for number in range(12):
        (bench.work / "a.txt").write_text(f"{number}\n")
        repo.git("commit", "-qam", f"change {number}")
    for text, count in {"@git:": 1, "@git:1": 1, "@git:3": 3, "@git:003": 3, "@git:10": 10}.items():
        assert block_of(bench, text).count("\ncommit ") + 1 == count
    attached = read(bench, "@git:99")
    assert attached.text.count("Author: ") == 10
    assert attached.remarks == ["@git:99 has the last 10 commits, which is the most"]


@pytest.mark.parametrize("value", ["0", "000", "abc", "-1", "1.5", "HEAD", "--output=x", "9999999999"])
def test_impossible_number_of_commits_is_said_plainly(bench: Workbench, repo: Repository, value: str) -> None:
    assert remark_on(bench, f"@git:{value}") == "the number of commits is from 1 to 10, such as @git:3"
    assert sorted(each.name for each in bench.work.iterdir()) == [".git", "a.txt"]


@pytest.mark.parametrize("reference", ["@diff", "@staged", "@git:1"])
def test_directory_without_a_repository_is_said_plainly(bench: Workbench, reference: str) -> None:
    assert remark_on(bench, reference) == "this directory is not in a git repository"


def test_repository_without_a_commit_has_changes_but_no_commits(bench: Workbench, repo: Repository) -> None:
    for each in sorted((bench.work / ".git").rglob("*"), reverse=True):
        each.rmdir() if each.is_dir() else each.unlink()
    repo.git("init", "-q", "-b", "main")
    repo.git("add", ".")
    assert "+one" in block_of(bench, "@staged")
    assert block_of(bench, "@diff") == "(no output)\n"
    assert remark_on(bench, "@git:1") == "the repository has no commit yet"


def test_packed_and_detached_repositories_are_read(bench: Workbench, repo: Repository) -> None:
    repo.git("gc", "-q")
    repo.git("pack-refs", "--all")
    assert "first" in block_of(bench, "@git:1")
    repo.git("checkout", "-q", "--detach")
    assert "first" in block_of(bench, "@git:1")


def test_repository_with_long_hashes_is_read(bench: Workbench, tmp_path: Path) -> None:
    repo = Repository(bench.work, tmp_path)
    repo.git("init", "-q", "--object-format=sha256", "-b", "main")
    (bench.work / "a.txt").write_text("one\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "first")
    assert "first" in block_of(bench, "@git:1")


def test_shallow_clone_is_read(bench: Workbench, repo: Repository) -> None:
    repo.change()
    repo.git("commit", "-qam", "second")
    clone = bench.work / "clone"
    repo.git("clone", "-q", "--depth=1", f"file://{bench.work}", str(clone))
    (bench.work / ".git").rename(bench.work / "old")
    (clone / ".git").rename(bench.work / ".git")
    assert "second" in block_of(bench, "@git:5")


def test_split_index_is_read(bench: Workbench, repo: Repository) -> None:
    repo.git("update-index", "--split-index")
    repo.change()
    repo.git("add", ".")
    assert "+two" in block_of(bench, "@staged")


def test_only_changes_in_the_session_directory_are_attached(bench: Workbench, repo: Repository) -> None:
    inner = bench.work / "inner"
    inner.mkdir()
    (inner / "b.txt").write_text("b\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "inner")
    repo.change()
    (inner / "b.txt").write_text("changed\n")
    bench.context.directory.root = bench.context.directory.cwd = inner
    assert "a.txt" not in block_of(bench, "@diff")
    assert "+changed" in block_of(bench, "@diff")
    assert "a.txt" not in block_of(bench, "@git:5")


def test_worktree_is_read(bench: Workbench, repo: Repository) -> None:
    tree = bench.work.parent / "tree"
    repo.git("worktree", "add", "-q", str(tree))
    (tree / "a.txt").write_text("in the tree\n")
    bench.context.directory.root = bench.context.directory.cwd = tree
    assert "+in the tree" in block_of(bench, "@diff")


def test_submodule_itself_is_read(bench: Workbench, repo: Repository) -> None:
    repo.git("-c", "protocol.file.allow=always", "submodule", "add", "-q", f"file://{bench.work}", "sub")
    (bench.work / "sub" / "a.txt").write_text("in the submodule\n")
    assert "in the submodule" not in block_of(bench, "@diff")
    bench.context.directory.root = bench.context.directory.cwd = bench.work / "sub"
    assert "+in the submodule" in block_of(bench, "@diff")


@pytest.mark.parametrize(
    "name", [".env", "keys/id_rsa", "a b.pem", 'q"uote.key', "ümlaut.pem", "tab\t.pem", "x b/y.key"]
)
def test_changes_of_protected_files_are_not_shown(bench: Workbench, repo: Repository, name: str) -> None:
    place = bench.work / name
    place.parent.mkdir(parents=True, exist_ok=True)
    place.write_text("TOP SECRET 1\n")
    repo.git("add", "-f", ".")
    assert "TOP SECRET" not in read(bench, "@staged").text
    repo.git("commit", "-qm", "with a secret")
    place.write_text("TOP SECRET 2\n")
    repo.change()
    attached = read(bench, "@diff @git:2")
    assert attached.count == 2
    assert "TOP SECRET" not in attached.text
    assert "are not shown: files with such names contain secrets or databases]" in attached.text
    assert "+two" in attached.text


def test_conflict_with_a_secret_is_not_shown(bench: Workbench, repo: Repository) -> None:
    (bench.work / ".env").write_text("base\n")
    repo.git("add", "-f", ".")
    repo.git("commit", "-qm", "base")
    repo.git("checkout", "-qb", "other")
    (bench.work / ".env").write_text("TOP SECRET theirs\n")
    repo.git("commit", "-qam", "theirs")
    repo.git("checkout", "-q", "main")
    (bench.work / ".env").write_text("TOP SECRET ours\n")
    repo.git("commit", "-qam", "ours")
    repo.git("merge", "other")
    assert "TOP SECRET" in repo.git("diff")
    attached = read(bench, "@diff")
    assert "TOP SECRET" not in attached.text
    assert "the changes of .env are not shown" in attached.text


@pytest.mark.parametrize(
    ("header", "name"),
    [
        ("diff --git a/x b/x", "x"),
        ("diff --git a/x y b/x y", "x y"),
        ("diff --git a/a b/b b/a b/b", "a b/b"),
        (r'diff --git "a/\303\274" "b/\303\274"', "ü"),
        (r'diff --git "a/t\tb\"" "b/t\tb\""', 't\tb"'),
        ("diff --cc x y", "x y"),
        ("diff --combined x", "x"),
        ("diff --git a/x b/y", None),
        ("diff --git x x", None),
        ("diff --git nonsense", None),
    ],
)
def test_name_in_a_header_is_read_or_hides_its_changes(header: str, name: str | None) -> None:
    seen: list[str] = []

    def reason_of(path: str) -> str | None:
        seen.append(path)
        return "it is secret"

    shown = without_protected(f"{header}\n+SECRET", reason_of)
    assert "SECRET" not in shown
    assert seen == ([] if name is None else [name])


def test_message_of_a_commit_cannot_look_like_a_header(bench: Workbench, repo: Repository) -> None:
    (bench.work / ".env").write_text("TOP SECRET\n")
    repo.git("add", "-f", ".")
    message = "x\n\ndiff --git a/.env b/.env\ncommit " + "0" * 40 + "\ndiff --git a/a.txt b/a.txt"
    repo.git("commit", "-q", "--cleanup=verbatim", "-m", message)
    assert "TOP SECRET" not in read(bench, "@git:1").text


def test_content_cannot_look_like_a_header(bench: Workbench, repo: Repository) -> None:
    (bench.work / ".env").write_text(f"diff --git a/a.txt b/a.txt\ncommit {'0' * 40}\nTOP SECRET\n")
    repo.git("add", "-f", ".")
    assert "TOP SECRET" not in read(bench, "@staged").text


def test_binary_change_is_noted(bench: Workbench, repo: Repository) -> None:
    (bench.work / "b.bin").write_bytes(b"\0\1\2")
    repo.git("add", ".")
    assert "Binary files /dev/null and b/b.bin differ" in block_of(bench, "@staged")


def test_large_file_is_noted_as_binary(bench: Workbench, repo: Repository) -> None:
    with (bench.work / "a.txt").open("w") as file:
        file.write("text\n" * 10_000)
        file.truncate(1 << 25)
    assert "Binary files a/a.txt and b/a.txt differ" in block_of(bench, "@diff")


def test_long_changes_are_refused(bench: Workbench, repo: Repository) -> None:
    (bench.work / "a.txt").write_text("many words\n" * 1_000_000)
    with pytest.raises(InvalidValue, match="more than 50 %"):
        read(bench, "@diff")


def test_repository_is_not_changed(bench: Workbench, repo: Repository) -> None:
    repo.touch()
    before = {each: each.stat().st_mtime_ns for each in (bench.work / ".git").rglob("*")}
    assert read(bench, "@diff @staged @git:2 @folder:.").count == 4
    assert {each: each.stat().st_mtime_ns for each in (bench.work / ".git").rglob("*")} == before


def test_wide_directory_needs_permission(bench: Workbench, repo: Repository) -> None:
    bench.change(environ={**bench.context.environ, "HOME": str(bench.work)})
    bench.person.decision = Decision.DENY
    assert remark_on(bench, "@diff") == "reading the changes in this directory was not allowed"
    assert [each.summary for each in bench.person.asked] == [f"read the git changes in {bench.work}"]


def test_git_that_does_not_end_is_stopped(bench: Workbench, tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nsleep 1000 & echo $! > pid; wait\n")
    program.chmod(0o755)
    git = Git(str(program), {"PATH": os.environ["PATH"]}, bench.cancellation, timeout_s=0.5)
    with pytest.raises(NotAttached, match=r"git took longer than 0\.5 s"):
        git.run(["diff"], cwd=tmp_path, variables={}, limit_bytes=100)
    with pytest.raises(ProcessLookupError):
        _wait_for_end(int((tmp_path / "pid").read_text()))


def test_git_is_stopped_with_the_turn(bench: Workbench, tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nsleep 1000\n")
    program.chmod(0o755)
    git = Git(str(program), {"PATH": os.environ["PATH"]}, bench.cancellation)
    threading.Timer(0.2, bench.cancellation.cancel).start()
    with pytest.raises(NotAttached, match="you stopped this turn"):
        git.run(["diff"], cwd=tmp_path, variables={}, limit_bytes=100)


def test_endless_output_is_cut(bench: Workbench, tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nexec yes\n")
    program.chmod(0o755)
    git = Git(str(program), {"PATH": os.environ["PATH"]}, bench.cancellation)
    output = git.run(["diff"], cwd=tmp_path, variables={}, limit_bytes=1_000)
    assert (len(output.data), output.is_cut) == (1_000, True)


def test_error_of_git_is_one_plain_line(bench: Workbench, tmp_path: Path) -> None:
    program = tmp_path / "git"
    program.write_text("#!/bin/sh\nprintf 'fatal: it is \\033[31mbroken\\nusage: git ...\\n' >&2\nexit 128\n")
    program.chmod(0o755)
    git = Git(str(program), {"PATH": os.environ["PATH"]}, bench.cancellation)
    with pytest.raises(NotAttached) as error:
        git.run(["diff"], cwd=tmp_path, variables={}, limit_bytes=100)
    assert str(error.value) == r"git failed: it is \x1b[31mbroken"


def test_git_of_the_project_is_not_run(bench: Workbench) -> None:
    program = bench.work / "git"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o755)
    bench.change(environ={**bench.context.environ, "PATH": f"{bench.work}:{os.environ['PATH']}"})
    assert not find_git(bench.context).program.startswith(str(bench.work))
    bench.change(environ={**bench.context.environ, "PATH": str(bench.work)})
    assert remark_on(bench, "@diff") == "this directory is not in a git repository"
    with pytest.raises(NotAttached, match="git is not installed"):
        find_git(bench.context)


def _wait_for_end(process_id: int) -> None:
    """Raise `ProcessLookupError` when a process is gone; a zombie waits for its parent."""
    for _ in range(200):
        os.kill(process_id, 0)
        if Path(f"/proc/{process_id}/stat").read_text().rpartition(") ")[2].startswith("Z"):
            raise ProcessLookupError
        threading.Event().wait(0.05)
