"""Changes and files of a repository, read by git from its data alone.

Git gets a directory of its own instead of `.git`, with a configuration that is written here. So no setting of the
repository can name a program: no filter, textconv, external diff, hook, pager, signature program, file monitor,
included file or remote. Submodules are left out, because git would run once more inside of them. The index may come
from a stranger too: git opens every file that it names, so one that names files outside of the work tree is refused.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from shutil import copyfileobj
from tempfile import TemporaryDirectory

from hermes.agent.references.access import is_terminal, require_repository_access
from hermes.agent.references.git.patches import without_protected
from hermes.agent.references.git.process import Git, GitFailed, GitOutput, find_git
from hermes.agent.references.git.repository import (
    Repository,
    find_repository,
    has_odd_name,
    is_inside,
    read_small,
)
from hermes.agent.references.limits import TooMuchContext
from hermes.agent.references.texts import Block, NotAttached
from hermes.agent.safety.opening import open_regular_file
from hermes.agent.tools.context import ToolContext
from hermes.errors import InvalidValue
from hermes.phrases import plural

_NUMBER = re.compile("|0*[1-9][0-9]{0,8}")

MAX_COMMITS = 10
MAX_INDEX_BYTES = 256 * 1024 * 1024
MAX_NAMES_BYTES = 64 * 1024 * 1024
"""The names of all files in an index together."""

_PATCH = (
    *("--no-ext-diff", "--no-textconv", "--no-color", "--no-renames", "--ignore-submodules=all", "--submodule=short"),
    *("--src-prefix=a/", "--dst-prefix=b/"),
)
_LOG = ("--format=medium", "--date=iso", "--no-decorate", "--no-show-signature", "--no-notes", "--no-mailmap")
_SETTINGS = {
    "filemode": ("true", "false"),
    "ignorecase": ("true", "false"),
    "symlinks": ("true", "false"),
    "precomposeunicode": ("true", "false"),
    "autocrlf": ("true", "false", "input"),
    "eol": ("lf", "crlf", "native"),
}
"""The settings of a repository that are kept: they say how its files are compared, and name nothing."""
_MAX_SETTINGS_BYTES = 64 * 1024
_LARGE_INDEX = "its git repository has a very large index"


@dataclass(frozen=True, slots=True)
class GitView:
    """A repository as git sees it through a directory of our own."""

    git: Git
    root: Path
    variables: Mapping[str, str]
    is_whole: bool
    """Whether the session's directory is the top of the repository."""

    def run(self, arguments: Sequence[str], limit_bytes: int) -> GitOutput:
        """Run git on the files below the session's directory."""
        below = [] if self.is_whole else ["."]
        return self.git.run(
            [*arguments, "--", *below], cwd=self.root, variables=self.variables, limit_bytes=limit_bytes
        )


def read_changes(context: ToolContext, limit_bytes: int, *, is_staged: bool) -> Block:
    """Return the changes that are not staged, or those that are."""
    arguments = ["diff", *(["--cached"] if is_staged else []), *_PATCH]
    return _read_patch(
        context, arguments, limit_bytes, "staged changes" if is_staged else "changes that are not staged"
    )


def read_commits(context: ToolContext, value: str, limit_bytes: int) -> Block:
    """Return the last commits with their changes."""
    if not _NUMBER.fullmatch(value):
        raise NotAttached(f"the number of commits is from 1 to {MAX_COMMITS}, such as @git:3")
    wanted = int(value or 1)
    count = min(wanted, MAX_COMMITS)
    remark = "" if wanted == count else f"@git:{value} has the last {MAX_COMMITS} commits, which is the most"
    label = "the last commit" if count == 1 else f"the last {plural(count, 'commit')}"
    return _read_patch(context, ["log", f"-n{count}", "-p", *_LOG, *_PATCH], limit_bytes, label, remark)


def _read_patch(
    context: ToolContext, arguments: Sequence[str], limit_bytes: int, label: str, remark: str = ""
) -> Block:
    with open_view(context) as (view, repository):
        if arguments[0] == "log" and repository.head is None:
            raise NotAttached("the repository has no commit yet")
        is_of_files = arguments[0] == "diff"
        if is_of_files:
            _refuse_odd_names(view, repository)
        output = view.run(arguments, limit_bytes)
        if output.is_cut:
            raise TooMuchContext
        reason_of = _reason_in(context, repository.top, is_of_files=is_of_files)
        text = without_protected(output.data.decode("utf-8", "replace"), reason_of)
    return Block(label if text else f"{label}: none", text or "(no output)\n", "diff", remark)


def _refuse_odd_names(view: GitView, repository: Repository) -> None:
    """Raise `NotAttached` if the index names files that git would never have put there."""
    listed = view.git.run(
        ["ls-files", "-z", "--cached"], cwd=repository.top, variables=view.variables, limit_bytes=MAX_NAMES_BYTES
    )
    if listed.is_cut:
        raise NotAttached(_LARGE_INDEX)
    if has_odd_name(listed.data):
        raise NotAttached("its git repository has an index with names that lead out of it")


def _reason_in(context: ToolContext, top: Path, *, is_of_files: bool) -> Callable[[str], str | None]:
    """Return a function that says why the changes of a file are hidden; with `is_of_files` git has read the files."""

    def reason_of(name: str) -> str | None:
        path = top / name
        # For a conflict git opens the file even if its directory is a link.
        if is_of_files and not is_inside(path, context.directory.root):
            return "its directory is a link to another place"
        return context.protected.reason(context.resolve_path(str(path)))

    return reason_of


@contextmanager
def open_view(context: ToolContext, git: Git | None = None) -> Iterator[tuple[GitView, Repository]]:
    """Yield the repository of the session's directory for git; raise `NotAttached` if there is none to be read."""
    root = context.directory.root
    require_repository_access(context, root)
    repository = find_repository(root, may_leave=is_terminal(context))
    git = git or find_git(context)
    with TemporaryDirectory(prefix="hermes-git-") as made:
        place = Path(made)
        _write_view(place, repository, git)
        variables = {
            "GIT_DIR": made,
            "GIT_WORK_TREE": str(repository.top),
            "GIT_OBJECT_DIRECTORY": str(repository.common_dir / "objects"),
        }
        yield GitView(git, root, variables, is_whole=root == repository.top), repository


def _write_view(place: Path, repository: Repository, git: Git) -> None:
    """Write a directory that git takes for `.git`."""
    (place / "refs" / "heads").mkdir(parents=True)
    (place / "objects").mkdir()
    (place / "info").mkdir()
    (place / "HEAD").write_text(f"{repository.head or 'ref: refs/heads/none'}\n")
    is_sha256 = repository.is_sha256
    lines = ["[core]", f"\trepositoryformatversion = {int(is_sha256)}", "\tbare = false"]
    (place / "config").write_text("\n".join([*lines, ""]))
    lines += [f"\t{name} = {value}" for name, value in _kept_settings(place, repository, git)]
    if is_sha256:
        lines += ["[extensions]", "\tobjectformat = sha256"]
    (place / "config").write_text("\n".join([*lines, ""]))
    for name in ("shallow", "info/exclude"):
        text = read_small(repository.common_dir / name)
        if text:
            (place / name).write_text(text)
    left = MAX_INDEX_BYTES
    for index in (repository.git_dir / "index", *repository.git_dir.glob("sharedindex.*")):
        left -= _copy_index(index, place / index.name, left)


def _copy_index(index: Path, copy: Path, limit_bytes: int) -> int:
    """Copy an index and return its size; git compares its time with the times of files, and may write to the copy."""
    try:
        with open_regular_file(index) as file:
            status = os.fstat(file.fileno())
            if status.st_size > limit_bytes:
                raise NotAttached(_LARGE_INDEX)
            with copy.open("wb") as written:
                copyfileobj(file, written)
    except FileNotFoundError:  # nothing was ever added
        return 0
    except InvalidValue:
        raise NotAttached("its git repository has an index that is not a regular file") from None
    except OSError as error:
        raise NotAttached(f"the index of its git repository cannot be read: {error.strerror}") from None
    os.utime(copy, ns=(status.st_atime_ns, status.st_mtime_ns))
    return status.st_size


def _kept_settings(place: Path, repository: Repository, git: Git) -> Iterator[tuple[str, str]]:
    """Yield the harmless settings of a repository; files that it includes are not read."""
    text = read_small(repository.common_dir / "config")
    if not text:
        return
    copy = place / "settings"
    copy.write_text(text)
    try:
        listed = git.run(
            ["config", "--file", str(copy), "--no-includes", "--null", "--list"],
            cwd=place,
            variables={"GIT_DIR": str(place)},
            limit_bytes=_MAX_SETTINGS_BYTES,
        )
    except GitFailed:
        raise NotAttached("the settings of its git repository cannot be read") from None
    for entry in listed.data.decode("utf-8", "replace").split("\0"):
        name, _, value = entry.partition("\n")
        section, _, name = name.partition(".")
        if section == "core" and value.lower() in _SETTINGS.get(name, ()):
            yield name, value.lower()
