"""Repositories whose settings name programs, and repositories that lead to the files of another project."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.agent.references.git.process import TIMEOUT_S
from tests.agent.references.conftest import block_of, read, remark_on
from tests.agent.tools.test_repositories import HOSTILE, Repository
from tests.agent.tools.workbench import Workbench

ALL = "@diff @staged @git:3 @folder:. @file:a.txt"

PREPARED = {prepare.__name__: prepare for prepare, _, cwd in HOSTILE if cwd == "."}


def pager(repo: Repository) -> None:
    repo.git("config", "core.pager", repo.program)
    repo.git("config", "pager.diff", repo.program)
    repo.git("config", "pager.log", repo.program)


def aliased_command(repo: Repository) -> None:
    repo.git("config", "alias.diff", f"!{repo.program}")
    repo.git("config", "alias.log", f"!{repo.program}")


def conditional_include(repo: Repository) -> None:
    (repo.place / "settings").write_text(f"[core]\n\tfsmonitor = {repo.program}\n")
    repo.git("config", f"includeIf.gitdir:{repo.place}/.path", str(repo.place / "settings"))


def external_transport(repo: Repository) -> None:
    blob = repo.git("rev-parse", "HEAD:a.txt")
    (repo.place / ".git" / "objects" / blob[:2] / blob[2:]).unlink()
    for name, value in {
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "remote.origin.promisor": "true",
        "remote.origin.url": f"ext::{repo.program}",
        "protocol.ext.allow": "always",
    }.items():
        repo.git("config", name, value)


def ssh_transport(repo: Repository) -> None:
    external_transport(repo)
    repo.git("config", "remote.origin.url", "ssh://example.org/x")
    repo.git("config", "core.sshCommand", repo.program)


def smudge_filter(repo: Repository) -> None:
    (repo.place / ".gitattributes").write_text("*.txt filter=x\n")
    for name in ("clean", "smudge", "process"):
        repo.git("config", f"filter.x.{name}", repo.program)
    repo.change()


def attributes_of_the_repository(repo: Repository) -> None:
    (repo.place / ".git" / "info" / "attributes").write_text("*.txt diff=x filter=x\n")
    repo.git("config", "diff.x.textconv", repo.program)
    repo.git("config", "filter.x.clean", repo.program)
    repo.change()


def ordinary_hooks(repo: Repository) -> None:
    hooks = repo.place / ".git" / "hooks"
    hooks.mkdir(exist_ok=True)
    for name in ("post-index-change", "fsmonitor-watchman", "reference-transaction"):
        (hooks / name).unlink(missing_ok=True)
        (hooks / name).symlink_to(repo.program)
    repo.touch()


def differ_and_editor(repo: Repository) -> None:
    for name in ("core.editor", "diff.tool", "difftool.x.cmd", "interactive.diffFilter", "core.askPass", "gpg.program"):
        repo.git("config", name, repo.program)
    repo.change()


def submodule_with_settings(repo: Repository) -> None:
    PREPARED["submodule"](repo)
    (repo.place / ".gitmodules").write_text('[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n')
    repo.git("config", "submodule.inner.ignore", "none")
    repo.git("config", "diff.submodule", "diff")
    repo.git("config", "diff.ignoreSubmodules", "none")
    (repo.place / "inner" / "a.txt").write_text("changed\n")


OWN = (
    pager,
    aliased_command,
    conditional_include,
    external_transport,
    ssh_transport,
    smudge_filter,
    attributes_of_the_repository,
    ordinary_hooks,
    differ_and_editor,
    submodule_with_settings,
)
SETTINGS: dict[str, Callable[[Repository], None]] = {**PREPARED, **{each.__name__: each for each in OWN}}


@pytest.mark.parametrize("prepare", SETTINGS.values(), ids=SETTINGS)
def test_setting_of_a_repository_runs_nothing(
    bench: Workbench, repo: Repository, prepare: Callable[[Repository], None]
) -> None:
    prepare(repo)
    repo.mark.unlink(missing_ok=True)
    attached = read(bench, ALL)
    assert not repo.mark.exists()
    assert attached.count >= 3
    assert bench.person.asked == []


@pytest.mark.parametrize(
    ("prepare", "command"),
    [
        (conditional_include, "status"),
        (external_transport, "log -p"),
        (ssh_transport, "log -p"),
        (smudge_filter, "diff"),
        (attributes_of_the_repository, "diff"),
        (ordinary_hooks, "status"),
        (submodule_with_settings, "diff"),
    ],
)
def test_setting_runs_a_program_if_git_is_run_plainly(
    repo: Repository, prepare: Callable[[Repository], None], command: str
) -> None:
    prepare(repo)
    repo.mark.unlink(missing_ok=True)
    repo.git(*command.split())
    assert repo.mark.exists(), "git itself has not run the program, so the other test shows nothing"


def test_setting_of_the_user_and_of_the_environment_runs_nothing(
    bench: Workbench, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    (bench.work.parent / ".gitconfig").write_text(f"[core]\n\tfsmonitor = {repo.program}\n")
    for name in ("GIT_EXTERNAL_DIFF", "GIT_PAGER", "GIT_SSH_COMMAND", "PAGER", "GIT_ASKPASS"):
        monkeypatch.setenv(name, repo.program)
    monkeypatch.setenv("GIT_CONFIG_COUNT", "1")
    monkeypatch.setenv("GIT_CONFIG_KEY_0", "core.fsmonitor")
    monkeypatch.setenv("GIT_CONFIG_VALUE_0", repo.program)
    bench.change(environ={**os.environ, "HOME": str(bench.work.parent)})
    repo.change()
    assert read(bench, ALL).count == 5
    assert not repo.mark.exists()


def test_embedded_repository_is_ignored(bench: Workbench, repo: Repository) -> None:
    prepare = next(each for each, _, cwd in HOSTILE if cwd == "docs")
    prepare(repo)
    repo.mark.unlink(missing_ok=True)
    read(bench, ALL)
    bench.context.directory.root = bench.context.directory.cwd = bench.work / "docs"
    read(bench, ALL)
    assert not repo.mark.exists()


@pytest.fixture
def victim(tmp_path: Path) -> Repository:
    """Another repository, with a secret in its commits, its index and its files."""
    victim = Repository(tmp_path / "victim", tmp_path / "outside")
    victim.place.mkdir()
    victim.git("init", "-q", "-b", "main")
    (victim.place / "plan.txt").write_text("TOP SECRET\n")
    victim.git("add", ".")
    victim.git("commit", "-qm", "TOP SECRET")
    return victim


def git_file(work: Path, victim: Path) -> None:
    (work / ".git").write_text(f"gitdir: {victim}/.git\n")


def git_file_of_a_worktree(work: Path, victim: Path) -> None:
    Repository(victim, victim.parent).git("worktree", "add", "-q", str(victim.parent / "tree"))
    (work / ".git").write_text(f"gitdir: {victim}/.git/worktrees/tree\n")


def linked_git(work: Path, victim: Path) -> None:
    (work / ".git").symlink_to(victim / ".git")


def common_directory(work: Path, victim: Path) -> None:
    _empty(work)
    (work / ".git" / "commondir").write_text(f"{victim}/.git\n")


def alternates(work: Path, victim: Path) -> None:
    _empty(work)
    (work / ".git" / "objects" / "info" / "alternates").write_text(f"{victim}/.git/objects\n")
    (work / ".git" / "HEAD").write_text(Repository(victim, victim.parent).git("rev-parse", "HEAD"))


def linked_objects(work: Path, victim: Path) -> None:
    _empty(work)
    (work / ".git" / "objects").rename(work / ".git" / "old")
    (work / ".git" / "objects").symlink_to(victim / ".git" / "objects")
    (work / ".git" / "HEAD").write_text(Repository(victim, victim.parent).git("rev-parse", "HEAD"))


def linked_object_files(work: Path, victim: Path) -> None:
    _empty(work)
    for each in (victim / ".git" / "objects").glob("??/*"):
        place = work / ".git" / "objects" / each.parent.name / each.name
        place.parent.mkdir(exist_ok=True)
        place.symlink_to(each)
    (work / ".git" / "HEAD").write_text(Repository(victim, victim.parent).git("rev-parse", "HEAD"))


def linked_object_directories(work: Path, victim: Path) -> None:
    _empty(work)
    for each in (victim / ".git" / "objects").glob("??"):
        (work / ".git" / "objects" / each.name).symlink_to(each)
    (work / ".git" / "HEAD").write_text(Repository(victim, victim.parent).git("rev-parse", "HEAD"))


def linked_index(work: Path, victim: Path) -> None:
    _empty(work)
    (work / ".git" / "index").symlink_to(victim / ".git" / "index")


def linked_head(work: Path, victim: Path) -> None:
    _empty(work)
    (work / ".git" / "HEAD").unlink()
    (work / ".git" / "HEAD").symlink_to(victim / ".git" / "HEAD")


def _empty(work: Path) -> None:
    Repository(work, work.parent).git("init", "-q", "-b", "main")


LEADING_ELSEWHERE = (
    git_file,
    git_file_of_a_worktree,
    linked_git,
    common_directory,
    alternates,
    linked_objects,
    linked_object_files,
    linked_object_directories,
    linked_index,
    linked_head,
)


@pytest.mark.parametrize("prepare", LEADING_ELSEWHERE, ids=lambda each: each.__name__)
@pytest.mark.parametrize("source", ["cli", "telegram"])
def test_repository_that_leads_elsewhere_is_refused(
    bench: Workbench, victim: Repository, prepare: Callable[[Path, Path], None], source: str
) -> None:
    bench.change(source=source)
    prepare(bench.work, victim.place)
    attached = read(bench, "@diff @staged @git:3")
    assert attached.count == 0
    assert "TOP SECRET" not in attached.text
    assert "TOP SECRET" not in str(attached.remarks)
    assert "plan.txt" not in read(bench, "@folder:.").text


def test_work_tree_setting_shows_no_other_directory(bench: Workbench, repo: Repository, victim: Repository) -> None:
    repo.git("config", "core.worktree", str(victim.place))
    assert "plan.txt" not in read(bench, "@diff @folder:.").text


def test_linked_directory_in_the_project_is_not_followed(
    bench: Workbench, repo: Repository, victim: Repository
) -> None:
    (bench.work / "dir").mkdir()
    (bench.work / "dir" / "plan.txt").write_text("ours\n")
    repo.git("add", ".")
    repo.git("commit", "-qm", "dir")
    (bench.work / "dir" / "plan.txt").unlink()
    (bench.work / "dir").rmdir()
    (bench.work / "dir").symlink_to(victim.place)
    assert "TOP SECRET" not in read(bench, "@diff").text


def test_chat_does_not_use_a_repository_above_its_directory(bench: Workbench, repo: Repository) -> None:
    inner = bench.work / "inner"
    inner.mkdir()
    bench.change(source="telegram")
    bench.context.directory.root = bench.context.directory.cwd = inner
    assert remark_on(bench, "@diff") == "this directory is not in a git repository"


@pytest.mark.parametrize("name", ["HEAD", "index", "config", "packed-refs"])
def test_pipe_in_a_repository_does_not_block(
    bench: Workbench, repo: Repository, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.agent.references.git.changes.find_git", _with_short_limit)
    (bench.work / ".git" / name).unlink(missing_ok=True)
    os.mkfifo(bench.work / ".git" / name)
    attached = read(bench, "@diff")
    assert attached.count + len(attached.remarks) == 1


def _with_short_limit(context: object, timeout_s: float = TIMEOUT_S) -> object:
    from hermes.agent.references.git.process import find_git

    return find_git(context, min(timeout_s, 1.0))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "head",
    ["", "nonsense", "ref: ../../etc/passwd", "ref: refs/../../x", "ref: refs/heads/.invalid", "ref: refs/a\n" * 9],
)
def test_damaged_head_is_said_plainly(bench: Workbench, repo: Repository, head: str) -> None:
    (bench.work / ".git" / "HEAD").write_text(head)
    assert remark_on(bench, "@git:1")


def test_refs_in_a_circle_are_said_plainly(bench: Workbench, repo: Repository) -> None:
    (bench.work / ".git" / "refs" / "heads" / "main").write_text("ref: refs/heads/main\n")
    assert remark_on(bench, "@git:1") == "its git repository has a HEAD in an unknown format"


@pytest.mark.parametrize("name", ["a\x1b[31m.txt", "a\n+++ b", "\u202etxt"])
def test_odd_names_in_a_repository_are_escaped(bench: Workbench, repo: Repository, name: str) -> None:
    (bench.work / name).write_text("x\n")
    repo.git("add", ".")
    shown = block_of(bench, "@staged") + block_of(bench, "@folder:.")
    assert "\x1b" not in shown
    assert "\u202e" not in shown
    assert "\n+++ b\n" not in shown


def test_few_objects_that_stand_for_many_files_use_little_memory(
    bench: Workbench, repo: Repository, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("hermes.agent.references.git.process.MAX_MEMORY_BYTES", 64 * 1024 * 1024)
    kind, name = "100644 blob", repo.git("hash-object", "-w", "--stdin", text="x\n")
    for _ in range(10):
        name = repo.git("mktree", text="".join(f"{kind} {name}\t{each}\n" for each in range(10)))
        kind = "040000 tree"
    repo.git("update-ref", "refs/heads/main", repo.git("commit-tree", name, "-m", "many"))
    assert "out of memory" in remark_on(bench, "@git:1").casefold()


def test_pipe_in_place_of_the_names_of_other_object_directories_is_refused(bench: Workbench, repo: Repository) -> None:
    os.mkfifo(bench.work / ".git" / "objects" / "info" / "alternates")
    assert "the objects of another repository" in remark_on(bench, "@diff")


def test_many_large_indexes_are_refused(bench: Workbench, repo: Repository, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("hermes.agent.references.git.changes.MAX_INDEX_BYTES", 100_000)
    for number in range(3):
        (bench.work / ".git" / f"sharedindex.{number}").write_bytes(b"x" * 40_000)
    assert remark_on(bench, "@diff") == "its git repository has a very large index"


def test_damaged_settings_are_said_plainly(bench: Workbench, repo: Repository) -> None:
    (bench.work / ".git" / "config").write_text("[[[")
    assert remark_on(bench, "@diff") == "the settings of its git repository cannot be read"
