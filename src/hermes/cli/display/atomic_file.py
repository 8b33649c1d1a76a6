"""A file that is written bit by bit, and is there only once it is complete."""

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
except ImportError:  # pragma: no cover - Windows: what a killed process left has to be removed by hand
    fcntl = None  # type: ignore[assignment]

STDOUT = "-"


@contextlib.contextmanager
def open_output(output: str, *, overwrite: bool) -> Iterator[BinaryIO]:
    """Something to write to: stdout for `-`, else a file of that name.

    The file appears under its name when the block has come to its end, and is on disk then; of one that was not
    finished nothing is left. Pipes and devices are written to as they are.
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
            hint="nothing was left of it; make room, or name another place",
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
    """Refuse a link or a pipe that another user has put where the file is to be: the sessions would go to them."""
    try:
        there = os.lstat(output)
    except OSError:
        return
    is_way_elsewhere = stat.S_ISLNK(there.st_mode) or stat.S_ISFIFO(there.st_mode) or stat.S_ISSOCK(there.st_mode)
    if os.name == "posix" and is_way_elsewhere and there.st_uid not in (0, os.geteuid()):
        raise InvalidValue(f"{output} is a link or a pipe of another user", hint="name another file")


def _is_stream(target: Path) -> bool:
    try:
        mode = target.stat().st_mode
    except OSError:
        return False
    return not stat.S_ISREG(mode) and not stat.S_ISDIR(mode)


def _check_target(target: Path, output: str, *, overwrite: bool) -> None:
    if target.is_dir():
        raise InvalidValue(f"{output} is a directory", hint="name a file in it")
    if not target.parent.is_dir():
        raise NotFound(f"there is no directory {target.parent}", hint="make it first, or name another place")
    if target.exists() and not overwrite:
        raise _file_exists_error(output)


def _file_exists_error(output: str) -> Conflict:
    return Conflict(f"{output} is there already", hint="name another file, or say --force to replace it")


@contextlib.contextmanager
def _open_draft(target: Path) -> Iterator[BinaryIO]:
    """A file beside the target that is gone afterwards, unless it was given its name."""
    _remove_leftovers(target)
    draft = target.with_name(f"{_draft_prefix(target)}{os.urandom(4).hex()}.partial")
    try:
        with open(draft, "xb", opener=private_opener) as file:
            if fcntl is not None:
                with contextlib.suppress(OSError):  # not every file system can do that
                    fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            yield file
    finally:
        draft.unlink(missing_ok=True)


def _publish(draft: Path, target: Path, *, overwrite: bool) -> None:
    """Give a finished file its name."""
    if overwrite:
        draft.replace(target)
    else:
        try:
            os.link(draft, target)
        except FileExistsError:
            raise
        except OSError:  # a file system without links: there nobody can be kept from taking the name just now
            draft.replace(target)
    sync_directory(target.parent)


def _remove_leftovers(target: Path) -> None:
    """Remove what processes left that were killed over the same file; whoever is still at it holds a lock."""
    if fcntl is None:  # pragma: no cover
        return
    for each in target.parent.glob(f"{_draft_prefix(target)}*.partial"):
        with contextlib.suppress(OSError):
            _remove_leftover(each)


def _remove_leftover(path: Path) -> None:
    """Remove a file that nobody has locked; links are not followed, and what is no file is not opened."""
    if not stat.S_ISREG(path.lstat().st_mode):
        return
    # Whatever takes its place meanwhile is not followed, and does not make anybody wait.
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        if stat.S_ISREG(os.fstat(descriptor).st_mode):
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            path.unlink()
    finally:
        os.close(descriptor)


def _draft_prefix(target: Path) -> str:
    """How the names begin of what is going to be this file: as long as any, for its own may be as long as can be."""
    return f".hermes-{crc32(os.fsencode(target.name)):08x}-"
