"""Export of sessions to a file, a few at a time, so that a store of any size needs little memory."""

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

MAX_BYTES_IN_MEMORY = 8 << 20
"""How much of a group is buffered in memory; the rest goes to an unnamed temporary file."""

_CONTROLS = re.compile(rb"\x7f|\xc2[\x80-\x9f]")


class Form(Protocol):
    """An output format for sessions."""

    def begin(self) -> Iterator[bytes]:
        """Yield the text before the first session."""
        ...

    def session(self, session: SessionExport) -> Iterator[bytes]:
        """Yield a session, in pieces."""
        ...

    def end(self) -> Iterator[bytes]:
        """Yield the text after the last session."""
        ...


class Lines:
    """One line of JSON per session; `for_terminal` escapes control characters."""

    def __init__(self, *, for_terminal: bool = False) -> None:
        self._for_terminal = for_terminal

    def begin(self) -> Iterator[bytes]:
        """Yield nothing."""
        return iter(())

    def session(self, session: SessionExport) -> Iterator[bytes]:
        """Yield a session, in pieces."""
        pieces = line_of(session)
        return (_CONTROLS.sub(_escape, piece) for piece in pieces) if self._for_terminal else pieces

    def end(self) -> Iterator[bytes]:
        """Yield nothing."""
        return iter(())


@dataclass(slots=True)
class Written:
    """How many sessions and messages were written."""

    sessions: int = 0
    messages: int = 0
    secrets: int = 0
    """How many secrets were replaced."""


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
    """Write sessions to a file, each as of one point in time; `store` may be None if no sessions are chosen.

    `with_undone` includes messages that were undone or retried.
    """
    total = sum(each.messages for each in chosen)
    written = Written()

    def report_messages(more: int) -> None:
        if report is not None:
            report("exporting", min(written.messages + more, total), total)

    def writer_to(held: SpooledTemporaryFile[bytes]) -> _GroupWriter:
        return _GroupWriter(form, held, report_messages, hides_secrets=hides_secrets, with_undone=with_undone)

    file.writelines(form.begin())
    for group in group_sessions(chosen):
        assert store is not None
        # Read the whole group before writing: a slow reader of a pipe must not hold a snapshot of the store open.
        with SpooledTemporaryFile(max_size=MAX_BYTES_IN_MEMORY) as held:
            some = read_sessions(store, [each.id for each in group], writer_to(held))
            held.seek(0)
            shutil.copyfileobj(held, file, 1 << 20)
        written.sessions += some.sessions
        written.messages += some.messages
        written.secrets += some.secrets
    file.writelines(form.end())
    return written


class _GroupWriter:
    """Writes the sessions of a group to a buffer; a second call starts over."""

    def __init__(
        self,
        form: Form,
        held: SpooledTemporaryFile[bytes],
        report_messages: Callable[[int], None],
        *,
        hides_secrets: bool,
        with_undone: bool,
    ) -> None:
        self._form = form
        self._held = held
        self._report_messages = report_messages
        self._hides_secrets = hides_secrets
        self._with_undone = with_undone

    def __call__(self, sessions: Iterator[SessionExport]) -> Written:
        self._held.seek(0)
        self._held.truncate()
        written = Written()
        for session in sessions:
            written.sessions += 1
            for piece in self._form.session(self._filter(session, written)):
                self._held.write(piece)
        return written

    def _filter(self, session: SessionExport, written: Written) -> SessionExport:
        def found(secrets: int) -> None:
            written.secrets += secrets

        def filter_pages() -> Iterator[list[Row]]:
            for whole in session.pages:
                page = whole if self._with_undone else [each for each in whole if each["active"]]
                written.messages += len(page)
                self._report_messages(written.messages)
                yield page

        counting = session._replace(pages=filter_pages())
        if not self._hides_secrets:
            return counting
        # Imported late: compiling the patterns of secrets takes a while.
        from hermes.interop.redacted import redact_session

        return redact_session(counting, found)


def _escape(control: re.Match[bytes]) -> bytes:
    return b"\\u%04x" % ord(control[0].decode())
