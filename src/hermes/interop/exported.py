"""Exported sessions, written by us or by a program with the same format: one JSON object per line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from hermes.errors import InvalidValue
from hermes.interop.jsonl.lines import Line, bad_line, changed_line, parse_line
from hermes.interop.jsonl.long_line import LongLine
from hermes.interop.source import ByteProgress, Examined
from hermes.state.import_export.session_checks import EXPORT_SCHEMA, CheckedSession, check_session, iter_drafts

MAX_LINE_IN_MEMORY = 1 << 20
"""Longer lines are read message by message."""


def is_exported(record: Mapping[str, Any]) -> bool:
    """Whether an object is an exported session."""
    is_like_ours = isinstance(record.get("id"), str) and isinstance(record.get("messages"), list)
    return is_like_ours or record.get("schema") == EXPORT_SCHEMA


class Exported:
    """A file of exported sessions."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._good_upto = 0
        self._ends: dict[int, int] = {}
        """The end offsets of the long lines, by line number."""

    def examine(self, now: float, progress: ByteProgress) -> Examined:
        """Read and check the whole file."""
        ids: list[str] = []
        try:
            for record in self._records(self._path.stat().st_size, progress):
                ids.append(self._check(record, now))
                self._good_upto = self._end_of(record)
        except InvalidValue as trouble:
            return Examined(ids, trouble=trouble)
        return Examined(ids)

    def sessions(self, now: float, progress: ByteProgress) -> Iterator[CheckedSession]:
        """Yield the sessions that `examine` found; call `examine` first."""
        return (self._read(record, now) for record in self._records(self._good_upto, progress))

    def _check(self, record: Line | LongLine, now: float) -> str:
        session = self._read(record, now)
        try:
            for _ in iter_drafts(session, now):
                pass
        except InvalidValue as error:
            raise bad_line(self._path, record.number, error.message) from None
        if isinstance(record, LongLine):
            self._ends[record.number] = record.end
        return session.id

    def _read(self, record: Line | LongLine, now: float) -> CheckedSession:
        if isinstance(record, LongLine):
            head, messages = record.head(EXPORT_SCHEMA), record
        else:
            head, messages = parse_line(record, self._path), None
        try:
            return check_session(head, now, messages)
        except InvalidValue as error:
            raise bad_line(self._path, record.number, error.message) from None

    def _records(self, upto: int, progress: ByteProgress) -> Iterator[Line | LongLine]:
        with self._path.open("rb") as file:
            number = start = 0
            while start < upto and (data := file.readline(MAX_LINE_IN_MEMORY)):
                number += 1
                if len(data) == MAX_LINE_IN_MEMORY and not data.endswith(b"\n"):
                    yield LongLine(self._path, number, start)
                    if number not in self._ends:
                        raise changed_line(self._path, number)
                    end = self._ends[number]
                    file.seek(end)
                else:
                    end = start + len(data)
                    if not data.isspace():
                        yield Line(number, start, data)
                progress(end - start)
                start = end

    def _end_of(self, record: Line | LongLine) -> int:
        return record.end if isinstance(record, LongLine) else record.start + len(record.data)
