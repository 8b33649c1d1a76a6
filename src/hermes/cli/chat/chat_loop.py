"""The chat loop: reads messages and commands from a terminal or a pipe and runs them on the current conversation."""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Protocol

from hermes.agent.conversation import Conversation
from hermes.agent.references.texts import format_attached
from hermes.agent.turns.turn import TurnOutcome
from hermes.cli.chat.exit_summary import exit_summary_lines, running_process_lines
from hermes.cli.chat.keyboard.modes import echo_off, keys_alone, on_resume
from hermes.cli.chat.keyboard.question import ask_yes_no
from hermes.cli.chat.keyboard.watch import watch_keys
from hermes.cli.chat.model_names import ModelNames
from hermes.cli.chat.own_commands import PATTERN as OWN_COMMAND
from hermes.cli.chat.own_commands import OwnCommands
from hermes.cli.chat.resume import SOURCE, current_directory, restore_context, show_recap
from hermes.cli.chat.terminal.attention import call_user
from hermes.cli.chat.terminal.live_rows import leave_rows
from hermes.cli.chat.terminal.signals import ChatEnded, LineDropped
from hermes.cli.chat.terminal.style import can_move
from hermes.cli.errors import INTERRUPTED, exit_code_of
from hermes.errors import HermesError, NotFound
from hermes.log import warn
from hermes.state.owner import EVERYBODY

if TYPE_CHECKING:
    from hermes.agent.agent import Agent
    from hermes.agent.history.images import Image
    from hermes.agent.models.model import Cancellation
    from hermes.agent.models.selection import Models
    from hermes.agent.safety.approval import Approve
    from hermes.cli.chat.terminal.screen import Screen
    from hermes.cli.chat.terminal.signals import Signals

TITLE_LIMIT_S = 5.0
"""How long the chat waits at its end for a title that a model is still writing."""

LEAVING_WORDS = ("exit", "quit", ":q")
"""Words that leave the chat, as they leave other programs."""

_COMMAND = re.compile(r"/([A-Za-z?][\w-]*)(?:\s+(.*))?", re.DOTALL)


class Reader(Protocol):
    """A source of input lines."""

    def read(self, draft: str = "") -> str:
        """Return the next line, which may start as a draft; raise EOFError at the end."""
        ...


class Chat:
    """A running chat, on which slash commands operate."""

    def __init__(
        self, agent: Agent, models: Models, screen: Screen, signals: Signals, approve: Approve | None = None
    ) -> None:
        self.agent = agent
        self.store = agent.store
        self.models = models
        self.screen = screen
        self.exit_code = 0
        """The exit code of the first error, or of Ctrl-C."""
        self.outcome: TurnOutcome | None = None
        """How the last turn ended."""
        self.draft = ""
        """The text that the next prompt starts with."""
        self.listed: list[str] = []
        """The session ids of the last list, in order."""
        self.is_choosing = False
        """Whether a number alone chooses one of them."""
        self.is_over = False
        self._was_stopped = False
        self.signals = signals
        self.model_names = ModelNames()
        self.own_commands = OwnCommands()
        self._has_prompt = False
        """Whether the user types at a prompt, so that Esc stops an answer and `!` runs a command."""
        self._approve = approve
        self.conversation = self._new()
        self._began = time.monotonic()

    def start_new(self) -> None:
        """End the conversation and start a new one with the same model."""
        model = self.conversation.model
        self.conversation.end("new_session")
        self.own_commands.take()
        self.conversation = self._new()
        self.conversation.session.model = model

    def resume(self, session_id: str, *, has_recap: bool = True) -> None:
        """End the conversation and resume another session."""
        tip = self.store.get_compression_tip(session_id)
        if self.conversation.is_stored and tip == self.conversation.session_id:
            self.screen.print_text(f"Already in session {tip}.")
            return
        resumed = Conversation.resume(self.agent, session_id, asker=EVERYBODY, approve=self._approve)
        self.conversation.end("resumed_other")
        self.own_commands.take()
        self.conversation = resumed
        restore_context(resumed, session_id, self.models, self.screen, self._ask if self._approve is not None else None)
        if has_recap:
            show_recap(resumed.history, self.agent.config.display, self.screen)

    def send(self, text: str, typed: str | None = None) -> None:
        """Run one turn with a message from the user.

        The references in `typed`, the part that the user has typed (default: all), are read first. If they name too
        much, or the user stops this, nothing is sent, and the next prompt starts with the message.
        """
        with self.cancellable() as cancellation:
            try:
                attached, images = self._read_references(text if typed is None else typed, cancellation)
            except HermesError:
                self.draft = text
                raise
            if cancellation.is_cancelled:
                self.draft = text
                outcome = TurnOutcome("interrupted", self.conversation.session_id)
            else:
                attached = self._with_outputs(attached)
                outcome = self.conversation.say(text, self.screen, cancellation, attached=attached, images=images)
        self.show_outcome(outcome)

    def _with_outputs(self, attached: str) -> str:
        """Return the attached context with the output of the user's own commands since the last message."""
        outputs = self.own_commands.take()
        return "\n\n".join([attached, *outputs]) if attached else format_attached(outputs)

    def _read_references(self, typed: str, cancellation: Cancellation) -> tuple[str, list[Image]]:
        """Return what the references in a text name, and show what was attached and what was not."""
        if "@" not in typed and "/" not in typed:
            return "", []
        from hermes.agent.models.sight import why_no_images
        from hermes.agent.references.attach import ReferenceReader

        session, settings = self.conversation.session, self.agent.config.model
        reader = ReferenceReader(
            session.tools.context(cancellation),
            session.model.context_tokens,
            why_no_images=why_no_images(session.model, settings.sees_images),
        )
        attached = reader.read(typed)
        self.screen.print_status(attached.summary)
        for remark in attached.remarks:
            self.screen.notice(remark)
        return attached.text, attached.images

    @contextmanager
    def cancellable(self) -> Iterator[Cancellation]:
        """Run a block that Ctrl-C, and at a prompt Esc, can cancel, with the screen showing its progress."""
        display, began = self.agent.config.display, time.monotonic()
        with self.signals.cancellable() as cancellation, self._keys(cancellation):
            self.screen.begin()
            try:
                yield cancellation
            finally:
                self.screen.end()
                self._was_stopped = cancellation.is_cancelled
        if self._has_prompt and not self._was_stopped and time.monotonic() - began >= display.notify_after_s:
            call_user(display.notify, "Hermes is ready")

    def _keys(self, cancellation: Cancellation) -> AbstractContextManager[None]:
        return watch_keys(cancellation.cancel) if self._has_prompt else echo_off()

    def show_outcome(self, outcome: TurnOutcome) -> None:
        """Show how a turn ended, and note its exit code."""
        self.outcome = outcome
        self.screen.print_answer(outcome.text)
        if outcome.status == "interrupted":
            self.screen.print_dim("Interrupted. The messages so far are saved.")
            self.exit_code = INTERRUPTED
        elif outcome.error is not None:
            self.show_error(outcome.error)

    def show_error(self, error: HermesError) -> None:
        """Show an error and note its exit code; the chat continues."""
        self.screen.print_error(error)
        self.exit_code = self.exit_code or exit_code_of(error)

    def handle_line(self, line: str) -> None:
        """Run a line of input: a slash command, the number of a session, or a message."""
        text = line.strip()
        is_choosing, self.is_choosing = self.is_choosing, False
        if not text:
            return
        try:
            if is_choosing and text.isdecimal():
                self.choose_session(int(text))
            elif found := _COMMAND.fullmatch(text):
                from hermes.cli.chat.slash.registry import find_command

                find_command(found[1]).run(self, (found[2] or "").strip())
            elif self._has_prompt and (found := OWN_COMMAND.fullmatch(text)) and not self._is_for_model(text):
                self.own_commands.run(self, found[1])
            else:
                self.send(line)
        except HermesError as error:
            self.show_error(error)

    def _is_for_model(self, text: str) -> bool:
        """Whether a line with an exclamation mark is a directive for the offline model."""
        from hermes.agent.models.offline.script import is_directive

        return self.conversation.model.base_url is None and is_directive(text)

    def choose_session(self, number: int) -> None:
        """Resume a session by its number in the last list."""
        if not 1 <= number <= len(self.listed):
            raise NotFound(f"there is no number {number} in the list", hint="type /resume to see the list")
        self.resume(self.listed[number - 1])

    def send_piped(self, question: str | None, *, patience_s: float | None) -> None:
        """Run one turn with the question, if any, and the text on stdin."""
        from hermes.cli.chat.keyboard.piped_text import NoInput, join_message, read_text

        text = ""
        try:
            text = read_text(self.signals, patience_s)
        except NoInput:
            self.screen.print_text(
                f"Note: no input on stdin for {patience_s:g} s; sending only the question."
                " Pass --stdin to wait longer, or < /dev/null not to wait."
            )
        except HermesError as error:
            self.show_error(error)
            return
        except ChatEnded:
            return
        if "\ufffd" in text:
            self.screen.print_text("Note: stdin is not valid UTF-8; invalid bytes were replaced by \ufffd.")
        if message := join_message(question, text):
            self.send(message, typed=question or "")

    def run_lines(self, reader: Reader) -> None:
        """Run each line of a pipe until it ends or Ctrl-C is pressed."""
        try:
            while not self.is_over and self.signals.leaving is None:
                try:
                    line = reader.read()
                except HermesError as error:
                    self.show_error(error)
                    return
                self.handle_line(line)
                if self._was_stopped:  # even at the very end of an answer
                    raise KeyboardInterrupt
        except (EOFError, ChatEnded):
            return
        except KeyboardInterrupt:
            self.exit_code = INTERRUPTED

    def run_prompt(self, reader: Reader) -> None:
        """Run each line that the user types until they leave; the prompt shows what is typed before it is there."""
        self._has_prompt = True
        # In lines, which only a plain prompt reads, the terminal would lose Ctrl-D and long texts.
        with keys_alone() if can_move(sys.stdout) else nullcontext(), on_resume(leave_rows):
            self._run_prompt(reader)

    def _run_prompt(self, reader: Reader) -> None:
        while not self.is_over and self.signals.leaving is None:
            draft, self.draft = self.draft, ""
            try:
                line = reader.read(draft)
            except (EOFError, ChatEnded):
                break
            except LineDropped:
                self.screen.print_dim("Line dropped. Press Up to get it back.")
                continue
            except KeyboardInterrupt:
                with suppress(KeyboardInterrupt):  # a second Ctrl-C, too fast for the prompt to see
                    self.screen.print_dim("Press Ctrl-C again or Ctrl-D to leave.")
                    continue
                break
            if line.strip().casefold() in LEAVING_WORDS:
                break
            try:
                self.handle_line(line)
            except KeyboardInterrupt:  # in a short command; a turn handles Ctrl-C itself
                self.screen.print_dim("Interrupted.")

    def end_session(self) -> None:
        """End the session and give it a title if it has none."""
        is_settled = False
        with suppress(KeyboardInterrupt):  # the user does not want to wait: the title comes from the first words
            is_settled = self.agent.settle(TITLE_LIMIT_S)
        try:
            if not is_settled and self.conversation.is_stored:
                self.conversation.name_by_words()
            self.conversation.end("user_exit" if self.signals.leaving is None else "terminated")
        except HermesError as error:  # the messages are stored, and an open session can be resumed too
            self.show_error(error)

    def show_exit_summary(self) -> None:
        """Show which session this was and how to resume it."""
        self.screen.print_text("\n".join(exit_summary_lines(self.conversation, time.monotonic() - self._began)))

    def release_processes(self) -> None:
        """Stop the background processes, if configured, and list those that still run."""
        kill = self.agent.config.terminal.kill_at_exit
        try:
            running = self.agent.processes.close(kill=kill)
        except KeyboardInterrupt:  # the user does not want to wait: list the rest
            running = self.agent.processes.close(kill=False)
        for line in running_process_lines(running, was_asked_to_end=kill):
            self.screen.print_text(line)
            if self.signals.leaving is not None:
                warn(__name__, "%s", line)  # the terminal may be gone

    def _ask(self, question: str) -> bool:
        return ask_yes_no(question, self.signals)

    def _new(self) -> Conversation:
        return Conversation.start(self.agent, SOURCE, asker=EVERYBODY, cwd=current_directory(), approve=self._approve)
