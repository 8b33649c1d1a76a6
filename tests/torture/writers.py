"""Writers that use every operation of a store at random and report each step."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from hermes.clock import Clock, system_clock
from hermes_state import SessionDB, StoreError
from tests.torture.forked import Pipe
from tests.torture.journal import SHARED, Message, State, Step, after, begun, done, failed, ready, took, wrong
from tests.torture.words import COMMON, letters, nth_word, word_of

_PLAN: dict[str, int] = {
    "append": 40,
    "share": 20,
    "batch": 10,
    "create": 6,
    "title": 4,
    "replace": 4,
    "rewind": 4,
    "restore": 3,
    "delete": 2,
    "search": 5,
    "read": 4,
    "reopen": 1,
}
PATIENCE_S = 60.0
"""Long enough that no search times out on a busy machine."""
_LONGEST = 24
"""Longer sessions are not written to any more, so that a round can be checked quickly."""


def text_of(message: Message, random: Random) -> str:
    """The text of a message: its own word, the common word, and sometimes enough padding for several pages."""
    padding = " lorem ipsum" * random.choice((0, 1, 5, 20, 20, 600))
    return f"{message.word} {COMMON}{padding}"


class WriterThread:
    """One thread of a writer: performs random steps and reports each before and after."""

    def __init__(self, path: Path, stream: str, random: Random, report: Callable[[str], None], clock: Clock) -> None:
        self._path = path
        self._stream = stream
        self._random = random
        self._report = report
        self._clock = clock
        self._db = self._open()
        self._states: dict[str, State] = {}
        self._made = 0

    def resend(self, messages: tuple[Message, ...]) -> None:
        """Append again the messages of a writer that died; only those with a uid can be repeated safely."""
        if repeatable := tuple(message for message in messages if message.uid is not None):
            self._do(Step("append", SHARED, repeatable))

    def use_pipe(self, report: Callable[[str], None]) -> None:
        """Report through `say` from now on: after a fork the old pipe belongs to the parent."""
        self._report = report

    def run_and_close(self, is_over: Callable[[], bool]) -> None:
        """Run until `is_over`, then close the store."""
        self.run(is_over)
        self.close()

    def run(self, is_over: Callable[[], bool]) -> None:
        """Perform random steps until `is_over`."""
        try:
            while not is_over():
                self._act(self._random.choices(list(_PLAN), list(_PLAN.values()))[0])
        except Exception as exc:  # noqa: BLE001 - no operation may fail like this; the parent reports it
            self._report(wrong(self._stream, f"{type(exc).__name__}: {exc}"))

    def close(self) -> None:
        """Close the store."""
        self._db.close()

    def _act(self, what: str) -> None:
        sessions = [name for name, state in self._states.items() if len(state.messages) < _LONGEST]
        if what == "share":
            self._do(Step("append", SHARED, self._messages(1)))
        elif what == "reopen":
            self.close()
            self._db = self._open()
        elif what == "create" or not sessions:
            self._do(Step("create", f"{self._stream}-{self._next()}"))
        else:
            self._act_on(self._random.choice(sessions), what)

    def _act_on(self, session: str, what: str) -> None:
        held = self._states[session].messages
        match what:
            case "append":
                self._do(Step("append", session, self._messages(1)))
            case "batch":
                self._do(Step("append", session, self._messages(self._random.randint(2, 20))))
            case "replace":
                self._do(Step("replace", session, self._messages(self._random.randint(0, 12))))
            case "title":
                self._do(Step("title", session, title=f"the {letters(self._next(), 6)} of {self._stream}"))
            case "delete":
                self._do(Step("delete", session))
            case "rewind" if held:
                self._do(Step("rewind", session, start=self._random.randrange(len(held))))
            case "restore" if held:
                self._do(Step("restore", session, start=self._random.randrange(len(held))))
            case "search" if held:
                self._search(held[-1])
            case "read":
                self._read(session, held)

    def _do(self, step: Step) -> None:
        self._report(begun(self._stream, step))
        try:
            self._perform(step)
        except StoreError as exc:
            self._report(failed(self._stream, f"{exc.code}: {exc}"))
            return
        self._report(done(self._stream))
        if step.session == SHARED:
            return
        state = after(self._states.get(step.session), step)
        if state is None:
            del self._states[step.session]
        else:
            self._states[step.session] = state

    def _perform(self, step: Step) -> None:
        drafts: list[dict[str, Any]] = [
            {
                "role": "user" if step.session != SHARED else self._random.choice(("user", "assistant", "tool")),
                "content": text_of(message, self._random),
                "uid": message.uid,
            }
            for message in step.messages
        ]
        match step.kind:
            case "create":
                self._db.ensure_session(step.session, "cli")
            case "append" if len(drafts) == 1:
                self._db.append_message(step.session, **drafts[0])
            case "append":
                self._db.append_messages(step.session, drafts)
            case "replace":
                self._db.replace_messages(step.session, drafts)
            case "title":
                assert step.title is not None
                self._db.set_session_title(step.session, step.title)
            case "delete":
                self._db.delete_session(step.session)
            case "rewind":
                self._db.rewind_to_message(step.session, self._id_of(step))
            case "restore":
                self._db.restore_rewound(step.session, self._id_of(step))

    def _id_of(self, step: Step) -> int:
        return int(self._db.get_messages(step.session, include_inactive=True)[step.start]["id"])

    def _search(self, message: Message) -> None:
        hits = self._db.search_messages(message.word, budget_s=PATIENCE_S)
        if len(hits) != message.is_active:
            self._report(wrong(self._stream, f"{message} is found {len(hits)} times"))

    def _read(self, session: str, held: tuple[Message, ...]) -> None:
        rows = self._db.get_messages(session, include_inactive=True)
        found = tuple(Message(word_of(str(row["content"])), bool(row["active"])) for row in rows)
        if found != held:
            self._report(wrong(self._stream, f"{session} holds {found}, not {held}"))
        self._db.list_sessions_rich(limit=5)

    def _messages(self, count: int) -> tuple[Message, ...]:
        return tuple(Message(nth_word(self._stream, self._next())) for _ in range(count))

    def _next(self) -> int:
        self._made += 1
        return self._made

    def _open(self) -> SessionDB:
        return SessionDB(self._path, clock=self._clock)


def never() -> bool:
    """Return False: the writer runs until it is killed."""
    return False


def write(
    path: Path,
    streams: list[str],
    seed: int,
    report: Callable[[str], None],
    *,
    is_over: Callable[[], bool] = never,
    owed: tuple[Message, ...] = (),
    clock: Clock = system_clock,
) -> None:
    """Run one writer thread per stream until `is_over`, or until this process is killed."""
    writers = [
        WriterThread(path, stream, Random(seed + number), report, clock) for number, stream in enumerate(streams)
    ]
    writers[0].resend(owed)
    threads = [threading.Thread(target=writer.run_and_close, args=(is_over,)) for writer in writers[1:]]
    for thread in threads:
        thread.start()
    try:
        writers[0].run_and_close(is_over)
    except SystemExit:
        # Like a program that has the store in a `with` block.
        for writer in writers:
            writer.close()
        raise
    finally:
        for thread in threads:
            thread.join()


def append(path: Path, stream: str, times: int, pipe: Pipe) -> None:
    """Wait for the signal, then append `times` messages to the shared session and report the time of each call."""
    with SessionDB(path) as db:
        pipe.send_line(ready(stream))
        pipe.receive()
        for number in range(times):
            message = Message(nth_word(stream, number))
            pipe.send_line(begun(stream, Step("append", SHARED, (message,))))
            started = time.perf_counter()
            try:
                db.append_message(SHARED, "user", text_of(message, Random(number)), uid=message.uid)
            except StoreError as exc:
                pipe.send_line(failed(stream, f"{exc.code}: {exc}"))
                continue
            pipe.send_line(took(stream, (time.perf_counter() - started) * 1000))
            pipe.send_line(done(stream))
