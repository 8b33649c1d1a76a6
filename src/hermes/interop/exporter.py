"""Writing sessions out, a few at a time: a store of any size fits into little memory."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from tempfile import SpooledTemporaryFile
from typing import BinaryIO, Protocol

from hermes.interop.jsonl.encoding import line_of
from hermes.state.engine import Report
from hermes.state.import_export.session_reader import SelectedSession, SessionExport, group_sessions, read_sessions
from hermes.state.operations import Operations
from hermes.state.rows import Row

HELD_BYTES = 8 << 20
"""So much of what is to be written is held in memory, the rest in a file that has no name."""

_CONTROLS = re.compile(rb"\x7f|\xc2[\x80-\x9f]")


class Form(Protocol):
    """How sessions are written."""

    def begin(self) -> Iterator[bytes]:
        """What comes first."""
        ...

    def session(self, session: SessionExport) -> Iterator[bytes]:
        """A session, in pieces."""
        ...

    def end(self) -> Iterator[bytes]:
        """What comes last."""
        ...


class Lines:
    """One line of JSON for each session; what could act on a terminal is escaped where one shows it."""

    def __init__(self, *, for_terminal: bool = False) -> None:
        self._for_terminal = for_terminal

    def begin(self) -> Iterator[bytes]:
        """Nothing comes first."""
        return iter(())

    def session(self, session: SessionExport) -> Iterator[bytes]:
        """A session, in pieces."""
        pieces = line_of(session)
        return (_CONTROLS.sub(_escaped, piece) for piece in pieces) if self._for_terminal else pieces

    def end(self) -> Iterator[bytes]:
        """Nothing comes last."""
        return iter(())


@dataclass(slots=True)
class Written:
    """How much was written."""

    sessions: int = 0
    messages: int = 0
    secrets: int = 0
    """How many were replaced."""


def write_out(
    store: Operations | None,
    chosen: Sequence[SelectedSession],
    form: Form,
    file: BinaryIO,
    *,
    hides_secrets: bool = False,
    with_undone: bool = True,
    report: Report | None = None,
) -> Written:
    """Write sessions to a file, each as it is at one moment; without a store there are none to choose.

    `with_undone` says whether messages are written that were undone or retried.
    """
    total = sum(each.messages for each in chosen)
    written = Written()

    def tell(more: int) -> None:
        if report is not None:
            report("exporting", min(written.messages + more, total), total)

    def taker(held: SpooledTemporaryFile[bytes]) -> _Taker:
        return _Taker(form, held, tell, hides_secrets=hides_secrets, with_undone=with_undone)

    file.writelines(form.begin())
    for group in group_sessions(chosen):
        assert store is not None
        # Not written as it is read: whoever reads a pipe slowly must not keep the store's log from being emptied.
        with SpooledTemporaryFile(max_size=HELD_BYTES) as held:
            some = read_sessions(store, [each.id for each in group], taker(held))
            held.seek(0)
            shutil.copyfileobj(held, file, 1 << 20)
        written.sessions += some.sessions
        written.messages += some.messages
        written.secrets += some.secrets
    file.writelines(form.end())
    return written


class _Taker:
    """Writes what is read; when it is called again it starts over."""

    def __init__(
        self,
        form: Form,
        held: SpooledTemporaryFile[bytes],
        tell: Callable[[int], None],
        *,
        hides_secrets: bool,
        with_undone: bool,
    ) -> None:
        self._form = form
        self._held = held
        self._tell = tell
        self._hides_secrets = hides_secrets
        self._with_undone = with_undone

    def __call__(self, sessions: Iterator[SessionExport]) -> Written:
        self._held.seek(0)
        self._held.truncate()
        written = Written()
        for session in sessions:
            written.sessions += 1
            for piece in self._form.session(self._changed(session, written)):
                self._held.write(piece)
        return written

    def _changed(self, session: SessionExport, written: Written) -> SessionExport:
        def found(secrets: int) -> None:
            written.secrets += secrets

        def counted() -> Iterator[list[Row]]:
            for whole in session.pages:
                page = whole if self._with_undone else [each for each in whole if each["active"]]
                written.messages += len(page)
                self._tell(written.messages)
                yield page

        counting = session._replace(pages=counted())
        if not self._hides_secrets:
            return counting
        # What a secret looks like takes a while to learn.
        from hermes.interop.redacted import redacted

        return redacted(counting, found)


def _escaped(control: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(control[0].decode())
