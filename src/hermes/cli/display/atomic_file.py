"""Output files that appear under their name only when they are complete."""

from __future__ import annotations

import contextlib
import os
import stat
import sys
from binascii import crc32
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

from hermes.cli.display.terminal import discard_output
from hermes.errors import Conflict, HermesError, InvalidValue, NotFound
from hermes.home import private_opener, sync_directory

try:
    import fcntl
except ImportError:  # pragma: no cover - Windows: the user removes the leftovers of a killed process
    fcntl = None  # type: ignore[assignment]

STDOUT = "-"


@contextlib.contextmanager
def open_output(output: str, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Open stdout for `-`, or a file, and yield a binary stream.

    The file appears under its name, synced to disk, when the block ends; an exception leaves no file. Pipes and
    devices are written directly.
    """
    if output == STDOUT:
        with _open_stdout() as stream:
            yield stream
        return
    _refuse_foreign_link(output)
    target = Path(os.path.realpath(output))
    try:
        if _is_stream(target):
            with target.open("wb") as stream:
                yield stream
        else:
            _check_target(target, output, overwrite=overwrite)
            with _open_draft(target) as file:
                yield file
                file.flush()
                os.fsync(file.fileno())
                _publish(Path(file.name), target, overwrite=overwrite)
    except BrokenPipeError:
        raise
    except FileExistsError:
        raise _file_exists_error(output) from None
    except OSError as error:
        raise HermesError(
            f"{output} cannot be written: {error.strerror}",
            hint="nothing was written; free disk space, or choose another file",
        ) from error


@contextlib.contextmanager
def _open_stdout() -> Iterator[BinaryIO]:
    try:
        yield sys.stdout.buffer
        sys.stdout.buffer.flush()
    except BrokenPipeError:
        raise
    except OSError as error:
        discard_output()
        raise HermesError(f"the output cannot be written: {error.strerror}") from error


def _refuse_foreign_link(output: str) -> None:
    """Raise `InvalidValue` for a link or pipe of another user, who would receive the sessions."""
    try:
        there = os.lstat(output)
    except OSError:
        return
    leads_elsewhere = stat.S_ISLNK(there.st_mode) or stat.S_ISFIFO(there.st_mode) or stat.S_ISSOCK(there.st_mode)
    if os.name == "posix" and leads_elsewhere and there.st_uid not in (0, os.geteuid()):
        raise InvalidValue(f"{output} is a link or a pipe of another user", hint="choose another file")


def _is_stream(target: Path) -> bool:
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _check_target(target: Path, output: str, *, overwrite: bool) -> None:
    if target.is_dir():
        raise InvalidValue(f"{output} is a directory", hint="give a file in it")
    if not target.parent.is_dir():
        raise NotFound(f"there is no directory {target.parent}", hint="create it, or choose another file")
    if target.exists() and not overwrite:
        raise _file_exists_error(output)


def _file_exists_error(output: str) -> Conflict:
    return Conflict(f"{output} already exists", hint="choose another file, or pass --force to replace it")


@contextlib.contextmanager
def _open_draft(target: Path) -> Iterator[BinaryIO]:
    """Open a temporary file in the directory of the target, and delete it after the block unless it was published."""
    _remove_leftovers(target)
    draft = target.with_name(f"{_draft_prefix(target)}{os.urandom(4).hex()}.partial")
    try:
        with open(draft, "xb", opener=private_opener) as file:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # not every file system supports locks
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
    finally:
        draft.unlink(missing_ok=True)


def _publish(draft: Path, target: Path, *, overwrite: bool) -> None:
    """Rename a finished file to its target."""
    if overwrite:
        draft.replace(target)
    else:
        try:
            os.link(draft, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: a file created just now is replaced
            draft.replace(target)
    sync_directory(target.parent)


def _remove_leftovers(target: Path) -> None:
    """Delete temporary files of killed processes that wrote the same target. A running process holds a lock."""
    if fcntl is None:  # pragma: no cover
        return
    for each in target.parent.glob(f"{_draft_prefix(target)}*.partial"):
        with contextlib.suppress(OSError):
            _remove_leftover(each)


def _remove_leftover(path: Path) -> None:
    """Delete an unlocked regular file. Links are not followed, and nothing but a file is opened."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return
    # If a link or a pipe replaces the file meanwhile, this neither follows nor waits for it.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    finally:
        os.close(descriptor)


def _draft_prefix(target: Path) -> str:
    """The prefix of temporary names for a target: short, because the target's own name may have the maximum length."""
    return f".hermes-{crc32(os.fsencode(target.name)):08x}-"
