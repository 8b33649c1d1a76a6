"""The Hermes home directory, and private files and directories (0600 and 0700)."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

from hermes.errors import ConfigError

DB_FILENAME = "state.db"

_PRIVATE_DIR = 0o700
_PRIVATE_FILE = 0o600
_OTHERS = 0o077


def get_hermes_home() -> Path:
    """Return the Hermes home: `HERMES_HOME`, or `~/.hermes`. The directory need not exist."""
    named = os.environ.get("HERMES_HOME", "").strip()
    expanded = os.path.expanduser(named or os.path.join("~", ".hermes"))
    if expanded.startswith("~"):
        raise ConfigError(
            f"cannot resolve the directory {named or '~/.hermes'}",
            hint="set HERMES_HOME to an absolute path",
        )
    return Path(os.path.abspath(expanded))


def ensure_private_dir(path: Path) -> None:
    """Create the directory `path` and its missing parents with mode 0700.

    A directory that already exists keeps its mode, except the user's own Hermes home: it is closed to other users.
    """
    try:
        _make_dirs(path)
    except PermissionError as error:
        raise ConfigError(
            f"no permission to create {error.filename}",
            hint="change the owner of the directory above it, or set HERMES_HOME to another directory",
        ) from error
    except (FileExistsError, NotADirectoryError) as error:
        raise ConfigError(
            f"{error.filename} should be a directory, but it is {_what_is_at(Path(error.filename))}",
            hint="move it away, or set HERMES_HOME to another directory",
        ) from error
    except OSError as error:
        raise ConfigError(f"cannot create {error.filename}: {error.strerror}") from error
    if path == get_hermes_home():
        _close_to_others(path)


def create_private_file(path: Path) -> bool:
    """Create `path`, empty and 0600, and return whether it was missing.

    A file that already exists is not opened: closing a second handle on a database drops SQLite's locks on it.
    """
    try:
        fd = _create_exclusively(path)
    except FileExistsError:
        return False
    os.close(fd)
    return True


def private_opener(path: str, flags: int) -> int:
    """An opener for `open()` that creates files with mode 0600 under any umask."""
    if flags & os.O_CREAT:
        try:
            return _create_exclusively(path, flags)
        except FileExistsError:
            if flags & os.O_EXCL:
                raise
    return os.open(path, flags, _PRIVATE_FILE)


def open_plain_file(path: str | Path, flags: int) -> int:
    """Open a plain file, or create it 0600; raise OSError for a link, a pipe or a directory.

    For files next to a database: the directory may belong to another user, who must not redirect the write.
    """
    fd = private_opener(str(path), flags | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise OSError(errno.EINVAL, "it is not a plain file", str(path))
    return fd


def read_plain_file(path: Path) -> bytes:
    """Return the content of a plain file; raise OSError for a pipe or a device, without waiting for it."""
    fd = os.open(path, os.O_RDONLY | getattr(os, "O_NONBLOCK", 0))
    try:
        if not stat.S_ISREG(os.fstat(fd).st_mode):
            raise OSError(errno.EINVAL, "it is not a plain file", str(path))
        with os.fdopen(fd, "rb", closefd=False) as file:
            return file.read()
    finally:
        os.close(fd)


def write_private_atomic(path: Path, data: bytes) -> None:
    """Replace `path` with a 0600 file that holds `data`; a crash at any moment leaves the old content or the new.

    A symbolic link stays; its target is replaced.
    """
    target = Path(os.path.realpath(path))
    draft = target.with_name(f".hermes-{os.urandom(6).hex()}.tmp")
    try:
        with os.fdopen(_create_exclusively(draft), "wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(draft, target)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    sync_directory(target.parent)


def _make_dirs(path: Path) -> None:
    if path.is_dir():
        return
    if path.parent != path:
        _make_dirs(path.parent)
    try:
        os.mkdir(path, _PRIVATE_DIR)
    except FileExistsError:
        if path.is_dir():
            return
        raise
    os.chmod(path, _PRIVATE_DIR)


def _close_to_others(home: Path) -> None:
    """Remove group and world access from `home`, unless another user owns it or it visibly serves more than Hermes."""
    if os.name != "posix":
        return
    status = home.stat()
    if status.st_uid != os.geteuid() or not status.st_mode & _OTHERS or serves_more_than_hermes(home, status):
        return
    try:
        home.chmod(stat.S_IMODE(status.st_mode) & ~_OTHERS)
    except OSError:
        return  # some file systems have no modes or are read-only; the files in the home are 0600 anyway


def serves_more_than_hermes(home: Path, status: os.stat_result) -> bool:
    """True for places like `/tmp`, `/srv` and the user's home directory, which other programs need."""
    is_shared_by_design = bool(status.st_mode & stat.S_ISVTX)
    is_top_level = home.parent == home.parent.parent
    holds_home_dirs = Path(os.path.expanduser("~")).is_relative_to(home)
    return is_shared_by_design or is_top_level or holds_home_dirs


def _create_exclusively(path: str | Path, flags: int = os.O_WRONLY) -> int:
    fd = os.open(path, flags | os.O_CREAT | os.O_EXCL, _PRIVATE_FILE)
    if os.name == "posix":
        os.fchmod(fd, _PRIVATE_FILE)
    return fd


def sync_directory(path: Path) -> None:
    """Flush `path`, so that a rename in it survives a power cut."""
    if os.name != "posix":
        return
    fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _what_is_at(path: Path) -> str:
    if path.is_symlink() and not path.exists():
        return f"a link to {os.readlink(path)}, which does not exist"
    return "a file"
