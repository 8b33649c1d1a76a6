"""A sitting: somebody at a terminal, or a program at a pipe, and the conversation that they have at the moment."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Protocol, TypeVar

from hermes.agent.conversation import Conversation
from hermes.cli.chat.farewell import farewell_of, still_running
from hermes.cli.chat.keys import unechoed
from hermes.cli.chat.question import ask
from hermes.cli.chat.resume import SOURCE, arrive, current_directory, show_recap
from hermes.cli.chat.signals import Dropped, Left
from hermes.cli.failures import INTERRUPTED, exit_code_of
from hermes.errors import HermesError, NotFound
from hermes.log import warn
from hermes.state.owner import EVERYBODY

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.listener import Listener
    from hermes.agent.model import Stop
    from hermes.agent.safety.approval import Approve
    from hermes.agent.turn import Outcome
    from hermes.cli.chat.models import Models
    from hermes.cli.chat.screen import Screen
    from hermes.cli.chat.signals import Signals

TITLE_LIMIT_S = 5.0
"""How long the end waits for a title that is still being made."""

LEAVING_WORDS = ("exit", "quit", ":q")
"""What a person types to leave anywhere else; nobody means to ask a model that."""

T = TypeVar("T")

_COMMAND = re.compile(r"/([A-Za-z?][\w-]*)(?:\s+(.*))?", re.DOTALL)


class Reader(Protocol):
    """Where words come from."""

    def read(self, draft: str = "") -> str:
        """The next words, which may begin with a draft; raises EOFError when there are no more."""
        ...


class Sitting:
    """What the commands of a chat work on."""

    def __init__(
        self, agent: Agent, models: Models, screen: Screen, signals: Signals, approve: Approve | None = None
    ) -> None:
        self.agent = agent
        self.store = agent.store
        self.models = models
        self.screen = screen
        self.exit_code = 0
        """That of the first thing that went wrong, or of Ctrl-C."""
        self.draft = ""
        """What the next prompt begins with."""
        self.listed: list[str] = []
        """The sessions of the list that was shown last, by number."""
        self.is_choosing = False
        """Whether a number alone means one of them."""
        self.is_over = False
        self._was_stopped = False
        self._approve = approve
        self._signals = signals
        self.conversation = self._new()
        self._began = time.monotonic()

    def begin_new(self) -> None:
        """Leave the conversation for a new one, with the same model."""
        model = self.conversation.model
        self.conversation.end("new_session")
        self.conversation = self._new()
        self.conversation.model = model

    def resume(self, session_id: str, *, has_recap: bool = True) -> None:
        """Leave the conversation, if there is one, for another that was left before."""
        tip = self.store.get_compression_tip(session_id)
        if self.conversation.is_stored and tip == self.conversation.session_id:
            self.screen.say(f"This is session {tip} already.")
            return
        resumed = Conversation.resume(self.agent, session_id, asker=EVERYBODY, approve=self._approve)
        self.conversation.end("resumed_other")
        self.conversation = resumed
        arrive(resumed, session_id, self.models, self.screen, self._ask if self._approve is not None else None)
        if has_recap:
            show_recap(resumed.history, self.agent.config.display, self.screen)

    def say(self, text: str) -> Outcome:
        """One turn."""
        return self.turn(lambda listener, stop: self.conversation.say(text, listener, stop))

    def turn(self, work: Callable[[Listener, Stop], Outcome]) -> Outcome:
        """Have something answered, until it is or Ctrl-C is pressed, and say what came of it."""
        outcome = self.stoppable(work)
        self.screen.conclude(outcome.text)
        if outcome.status == "interrupted":
            self.screen.say_dim("Interrupted; what was said is kept.")
            self.exit_code = INTERRUPTED
        elif outcome.error is not None:
            self.complain(outcome.error)
        return outcome

    def stoppable(self, work: Callable[[Listener, Stop], T]) -> T:
        """Do something that takes long and heeds a stop."""
        with self._signals.turn() as stop, unechoed():
            self.screen.begin()
            try:
                return work(self.screen, stop)
            finally:
                self.screen.end()
                self._was_stopped = stop.is_wished

    def complain(self, error: HermesError) -> None:
        """Tell of an error; the chat goes on."""
        self.screen.report(error)
        self.exit_code = self.exit_code or exit_code_of(error)

    def take(self, line: str) -> None:
        """Do what a person has typed: run a command, choose a session, or talk."""
        text = line.strip()
        is_choosing, self.is_choosing = self.is_choosing, False
        if not text:
            return
        try:
            if is_choosing and text.isdecimal():
                self.choose(int(text))
            elif found := _COMMAND.fullmatch(text):
                from hermes.cli.chat.slash.registry import find_command

                find_command(found[1]).run(self, (found[2] or "").strip())
            else:
                self.say(line)
        except HermesError as error:
            self.complain(error)

    def choose(self, number: int) -> None:
        """Resume a session by its number in the list that was shown last."""
        if not 1 <= number <= len(self.listed):
            raise NotFound(f"there is no number {number} in the list", hint="/resume shows the list again")
        self.resume(self.listed[number - 1])

    def say_piped(self, question: str | None, *, patience_s: float | None) -> None:
        """One turn with a question, if there is one, and all that stdin has to add to it."""
        from hermes.cli.chat.piped import Silent, joined, read_text

        text = ""
        try:
            text = read_text(self._signals, patience_s)
        except Silent:
            self.screen.say(
                f"Note: stdin is open, but nothing came for {patience_s:g} s, so the question goes alone;"
                " --stdin waits for it, < /dev/null saves the wait."
            )
        except HermesError as error:
            self.complain(error)
            return
        except Left:
            return
        if "\ufffd" in text:
            self.screen.say("Note: stdin is not all UTF-8; what is not became \ufffd.")
        if message := joined(question, text):
            self.say(message)

    def work_off(self, reader: Reader) -> None:
        """Take what a program has to say, until there is no more; Ctrl-C ends all of it."""
        try:
            while not self.is_over and self._signals.leaving is None:
                try:
                    line = reader.read()
                except HermesError as error:
                    self.complain(error)
                    return
                self.take(line)
                if self._was_stopped:  # be it at the very end of an answer
                    raise KeyboardInterrupt
        except (EOFError, Left):
            return
        except KeyboardInterrupt:
            self.exit_code = INTERRUPTED

    def run(self, reader: Reader) -> None:
        """Go on with a person until they leave."""
        while not self.is_over and self._signals.leaving is None:
            draft, self.draft = self.draft, ""
            try:
                line = reader.read(draft)
            except (EOFError, Left):
                break
            except Dropped:
                self.screen.say_dim("Dropped; the Up key brings it back.")
                continue
            except KeyboardInterrupt:
                with suppress(KeyboardInterrupt):  # the second in a row, too quick for the prompt to see it
                    self.screen.say_dim("Press Ctrl-C again to leave; Ctrl-D leaves too.")
                    continue
                break
            if line.strip().casefold() in LEAVING_WORDS:
                break
            try:
                self.take(line)
            except KeyboardInterrupt:  # in a command that takes no time; a turn hears Ctrl-C itself
                self.screen.say_dim("Interrupted.")

    def end(self) -> None:
        """Close the session."""
        is_settled = False
        with suppress(KeyboardInterrupt):  # who is in a hurry gets a title that takes no time
            is_settled = self.agent.settle(TITLE_LIMIT_S)
        try:
            if not is_settled and self.conversation.is_stored:
                self.conversation.name_by_words()
            self.conversation.end("user_exit" if self._signals.leaving is None else "terminated")
        except HermesError as error:  # what was said is stored, and an open session can be resumed as well
            self.complain(error)

    def say_farewell(self) -> None:
        """Tell which session it was, and how to come back."""
        self.screen.say("\n".join(farewell_of(self.conversation, time.monotonic() - self._began)))

    def release_processes(self) -> None:
        """End the background processes, if that is set, and tell of those that go on."""
        kill = self.agent.config.terminal.kill_at_exit
        try:
            running = self.agent.processes.close(kill=kill)
        except KeyboardInterrupt:  # in the middle of ending them: who is in a hurry is told what is left
            running = self.agent.processes.close(kill=False)
        for line in still_running(running, was_asked_to_end=kill):
            self.screen.say(line)
            if self._signals.leaving is not None:
                warn(__name__, "%s", line)  # the terminal may be gone

    def _ask(self, question: str) -> bool:
        return ask(question, self._signals)

    def _new(self) -> Conversation:
        return Conversation.start(self.agent, SOURCE, asker=EVERYBODY, cwd=current_directory(), approve=self._approve)
