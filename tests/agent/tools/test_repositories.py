"""Repositories whose settings name programs: git runs those, so git always needs approval."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.agent.tools.workbench import Workbench

SIGNED = (
    "tree {tree}\nauthor A <a@example.org> 1700000000 +0000\ncommitter A <a@example.org> 1700000000 +0000\n"
    "gpgsig -----BEGIN PGP SIGNATURE-----\n \n bm8=\n -----END PGP SIGNATURE-----\n\nsigned\n"
)


@dataclass(frozen=True)
class Repository:
    """A repository made by git itself, and a program that leaves a mark when it runs."""

    place: Path
    outside: Path

    @property
    def mark(self) -> Path:
        return self.outside / "mark"

    @property
    def program(self) -> str:
        return str(self.outside / "program")

    def git(self, *args: str, cwd: Path | None = None, text: str | None = None) -> str:
        variables = {"GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_NOSYSTEM": "1", "PATH": os.environ["PATH"]}
        names = {f"GIT_{who}_{what}": "a@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")}
        done = subprocess.run(
            ["git", *args],
            cwd=cwd or self.place,
            env=variables | names | {"HOME": str(self.outside)},
            input=text,
            capture_output=True,
            text=True,
            timeout=60,
        )
        return done.stdout.strip()

    def begin(self, place: Path | None = None) -> None:
        """Make a repository with one commit."""
        place = place or self.place
        place.mkdir(exist_ok=True)
        self.git("init", "-q", "-b", "main", cwd=place)
        (place / "a.txt").write_text("one\n")
        self.git("add", ".", cwd=place)
        self.git("commit", "-qm", "first", cwd=place)

    def change(self) -> None:
        """Change the length of a file, so that git has to read it."""
        (self.place / "a.txt").write_text("one\ntwo\n")

    def touch(self) -> None:
        """Change only the time of a file, so that git has to read it."""
        os.utime(self.place / "a.txt", (1_600_000_000, 1_600_000_000))


def fsmonitor(repo: Repository) -> None:
    repo.git("config", "core.fsmonitor", repo.program)


def external_diff(repo: Repository) -> None:
    repo.git("config", "diff.external", repo.program)
    repo.change()


def external_diff_of_a_kind(repo: Repository) -> None:
    (repo.place / ".gitattributes").write_text("*.txt diff=x\n")
    repo.git("config", "diff.x.command", repo.program)
    repo.change()


def textconv(repo: Repository) -> None:
    (repo.place / ".gitattributes").write_text("*.txt diff=x\n")
    repo.git("config", "diff.x.textconv", repo.program)
    repo.change()


def clean_filter(repo: Repository) -> None:
    (repo.place / ".gitattributes").write_text("*.txt filter=x\n")
    repo.git("config", "filter.x.clean", repo.program)
    repo.touch()


def process_filter(repo: Repository) -> None:
    (repo.place / ".gitattributes").write_text("*.txt filter=x\n")
    repo.git("config", "filter.x.process", repo.program)
    repo.touch()


def signature(repo: Repository) -> None:
    tree = repo.git("rev-parse", "HEAD^{tree}")
    commit = repo.git("hash-object", "-t", "commit", "-w", "--stdin", text=SIGNED.format(tree=tree))
    repo.git("update-ref", "refs/heads/main", commit)
    repo.git("config", "log.showSignature", "true")
    repo.git("config", "gpg.program", repo.program)


def hook(repo: Repository) -> None:
    (repo.place / ".hooks").mkdir()
    (repo.place / ".hooks" / "post-index-change").symlink_to(repo.program)
    repo.git("config", "core.hooksPath", ".hooks")
    repo.touch()


def worktree_setting(repo: Repository) -> None:
    repo.git("config", "extensions.worktreeConfig", "true")
    repo.git("config", "--worktree", "core.fsmonitor", repo.program)


def included_file(repo: Repository) -> None:
    (repo.place / "settings").write_text(f"[core]\n\tfsmonitor = {repo.program}\n")
    repo.git("config", "include.path", "../settings")


def submodule(repo: Repository) -> None:
    inner = repo.place / "inner"
    repo.begin(inner)
    repo.git("add", "inner")
    repo.git("commit", "-qm", "inner")
    repo.git("config", "core.fsmonitor", repo.program, cwd=inner)


def promisor_remote(repo: Repository) -> None:
    blob = repo.git("rev-parse", "HEAD:a.txt")
    (repo.place / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": str(repo.outside),
        "remote.origin.uploadpack": repo.program,
    }.items():
        repo.git("config", name, value)


def embedded_bare_repository(repo: Repository) -> None:
    """Commit a directory that git takes for a repository."""
    inner = repo.place / "docs"
    repo.git("init", "-q", "--bare", str(inner))
    repo.git("config", "core.bare", "false", cwd=inner)
    repo.git("config", "core.worktree", ".", cwd=inner)
    repo.git("config", "core.fsmonitor", repo.program, cwd=inner)
    (inner / "objects" / "kept").write_text("")
    (inner / "refs" / "kept").write_text("")
    repo.git("add", "docs")
    repo.git("commit", "-qm", "docs")


HOSTILE: list[tuple[Callable[[Repository], None], str, str]] = [
    (fsmonitor, "git status", "."),
    (fsmonitor, "git diff", "."),
    (external_diff, "git diff", "."),
    (external_diff_of_a_kind, "git diff", "."),
    (textconv, "git diff", "."),
    (textconv, "git show HEAD", "."),
    (textconv, "git log -p", "."),
    (clean_filter, "git status", "."),
    (clean_filter, "git diff", "."),
    (process_filter, "git status --short", "."),
    (signature, "git log", "."),
    (signature, "git --no-pager log --oneline -n5", "."),
    (signature, "git show", "."),
    (hook, "git status", "."),
    (worktree_setting, "git status", "."),
    (included_file, "git status", "."),
    (submodule, "git status", "."),
    (submodule, "git diff", "."),
    (promisor_remote, "git show HEAD", "."),
    (promisor_remote, "git log -p", "."),
    (embedded_bare_repository, "git status", "docs"),
]


@pytest.fixture
def repo(bench: Workbench, tmp_path: Path) -> Repository:
    """A repository in the directory of the session."""
    repo = Repository(bench.work, tmp_path / "outside")
    repo.outside.mkdir()
    program = Path(repo.program)
    program.write_text(f"#!/bin/sh\n: > {repo.mark}\n")
    program.chmod(0o755)
    repo.begin()
    return repo


@pytest.mark.parametrize(
    ("prepare", "command", "cwd"), HOSTILE, ids=[f"{each[0].__name__}: {each[1]}" for each in HOSTILE]
)
def test_git_needs_approval_where_it_would_run_a_program(
    bench: Workbench, repo: Repository, prepare: Callable[[Repository], None], command: str, cwd: str
) -> None:
    prepare(repo)
    repo.mark.unlink(missing_ok=True)
    bench.change(approve=None)
    bench.refused("terminal", command=command, cwd=cwd)
    assert not repo.mark.exists()
    repo.git(*command.split()[1:], cwd=repo.place / cwd)
    assert repo.mark.exists(), "git itself has not run the program, so nothing was shown"


def test_clone_contains_the_embedded_repository(bench: Workbench, repo: Repository, tmp_path: Path) -> None:
    embedded_bare_repository(repo)
    clone = bench.work / "clone"
    repo.git("clone", "-q", str(repo.place), str(clone))
    repo.mark.unlink(missing_ok=True)
    bench.change(approve=None)
    bench.refused("terminal", command="git status", cwd="clone/docs")
    assert not repo.mark.exists()
    repo.git("status", cwd=clone / "docs")
    assert repo.mark.exists()


def test_git_needs_approval_in_an_ordinary_repository(bench: Workbench, repo: Repository) -> None:
    assert "nothing to commit" in bench.call("terminal", command="git status")
    assert [request.summary for request in bench.person.asked] == ["run git status"]
