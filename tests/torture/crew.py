"""Writers that do everything at once that a store can do, and keep a journal of it."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

from hermes.clock import Clock, system_clock
from hermes_state import SessionDB, StoreError
from tests.torture.forked import Voice
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
"""No search is cut short because the machine is busy with everything else."""
_LONGEST = 24
"""A session that has more messages is left alone, so that a round stays quick to judge."""


def text_of(message: Message, random: Random) -> str:
    """What a message says: its word, the word of all, and now and then so much that it takes several pages."""
    padding = " lorem ipsum" * random.choice((0, 1, 5, 20, 20, 600))
    return f"{message.word} {COMMON}{padding}"


class Hand:
    """One thread of a writer: does one thing after the other and says so."""

    def __init__(self, path: Path, stream: str, random: Random, say: Callable[[str], None], clock: Clock) -> None:
        self._path = path
        self._stream = stream
        self._random = random
        self._say = say
        self._clock = clock
        self._db = self._open()
        self._states: dict[str, State] = {}
        self._made = 0

    def owe(self, messages: tuple[Message, ...]) -> None:
        """Send again what another one was sending when it died, as far as that is safe."""
        if repeatable := tuple(message for message in messages if message.uid is not None):
            self._do(Step("append", SHARED, repeatable))

    def speak(self, say: Callable[[str], None]) -> None:
        """From now on talk like this, because the old way belongs to another process."""
        self._say = say

    def work(self, is_over: Callable[[], bool]) -> None:
        """Go on until it is over, then let go of the store."""
        self.go_on(is_over)
        self.close()

    def go_on(self, is_over: Callable[[], bool]) -> None:
        """Do one thing after the other until it is over."""
        try:
            while not is_over():
                self._act(self._random.choices(list(_PLAN), list(_PLAN.values()))[0])
        except Exception as exc:  # noqa: BLE001 - no operation may fail like this, and the parent is to hear of it
            self._say(wrong(self._stream, f"{type(exc).__name__}: {exc}"))

    def close(self) -> None:
        """Let go of the store."""
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
        self._say(begun(self._stream, step))
        try:
            self._perform(step)
        except StoreError as exc:
            self._say(failed(self._stream, f"{exc.code}: {exc}"))
            return
        self._say(done(self._stream))
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
            self._say(wrong(self._stream, f"{message} is found {len(hits)} times"))

    def _read(self, session: str, held: tuple[Message, ...]) -> None:
        rows = self._db.get_messages(session, include_inactive=True)
        found = tuple(Message(word_of(str(row["content"])), bool(row["active"])) for row in rows)
        if found != held:
            self._say(wrong(self._stream, f"{session} holds {found}, not {held}"))
        self._db.list_sessions_rich(limit=5)

    def _messages(self, count: int) -> tuple[Message, ...]:
        return tuple(Message(nth_word(self._stream, self._next())) for _ in range(count))

    def _next(self) -> int:
        self._made += 1
        return self._made

    def _open(self) -> SessionDB:
        return SessionDB(self._path, clock=self._clock)


def never() -> bool:
    """When a writer stops that only somebody else can stop."""
    return False


def write(
    path: Path,
    streams: list[str],
    seed: int,
    say: Callable[[str], None],
    *,
    is_over: Callable[[], bool] = never,
    owed: tuple[Message, ...] = (),
    clock: Clock = system_clock,
) -> None:
    """Be a writer with one thread for each stream until it is over, or until somebody ends this process."""
    hands = [Hand(path, stream, Random(seed + number), say, clock) for number, stream in enumerate(streams)]
    hands[0].owe(owed)
    threads = [threading.Thread(target=hand.work, args=(is_over,)) for hand in hands[1:]]
    for thread in threads:
        thread.start()
    try:
        hands[0].work(is_over)
    except SystemExit:
        # As a program does that has the store in a `with` block.
        for hand in hands:
            hand.close()
        raise
    finally:
        for thread in threads:
            thread.join()


def append(path: Path, stream: str, times: int, voice: Voice) -> None:
    """Append so many messages to the shared session once told to, and say how long each call took."""
    with SessionDB(path) as db:
        voice.say(ready(stream))
        voice.hear()
        for number in range(times):
            message = Message(nth_word(stream, number))
            voice.say(begun(stream, Step("append", SHARED, (message,))))
            started = time.perf_counter()
            try:
                db.append_message(SHARED, "user", text_of(message, Random(number)), uid=message.uid)
            except StoreError as exc:
                voice.say(failed(stream, f"{exc.code}: {exc}"))
                continue
            voice.say(took(stream, (time.perf_counter() - started) * 1000))
            voice.say(done(stream))
