"""Asking a person, in the middle of a turn, whether a tool may do what it wants."""

from __future__ import annotations

from dataclasses import dataclass, replace

from hermes.agent.safety.approval import Decision, Origin, Request
from hermes.cli.chat.keys import fresh_line
from hermes.cli.chat.lines import read_chunk
from hermes.cli.chat.output import write_talk
from hermes.cli.chat.screen import Screen
from hermes.cli.chat.signals import Signals
from hermes.cli.chat.style import bold
from hermes.cli.terminal import printable, printable_lines

QUESTION = "Allow it? [y]es, for this [s]ession, [a]lways, [N]o: "
ANSWERS = {
    "y": Decision.ONCE,
    "yes": Decision.ONCE,
    "o": Decision.ONCE,
    "once": Decision.ONCE,
    "s": Decision.SESSION,
    "session": Decision.SESSION,
    "a": Decision.ALWAYS,
    "always": Decision.ALWAYS,
    "": Decision.DENY,
    "n": Decision.DENY,
    "no": Decision.DENY,
}


@dataclass(frozen=True, slots=True)
class Asker:
    """Asks on the terminal; what is not a clear yes is a no."""

    screen: Screen
    signals: Signals

    def __call__(self, request: Request) -> Decision:
        """Show what is wanted, and read what the person decides; Ctrl-C ends the turn as well."""
        self.screen.show(_shown(request))
        try:
            with self.signals.question(), fresh_line():
                return _read_decision()
        except KeyboardInterrupt:
            self.signals.stop_turn()
            self.screen.say()
            return Decision.DENY

    def ask_operator(self, request: Request, origin: Origin) -> Decision:
        """Ask about a conversation of a chat platform that was resumed here: the person at the terminal runs it."""
        whose = f"This conversation is one of {origin.source}: [a] holds for its people there, without asking you."
        return self(replace(request, note=" ".join(filter(None, [request.note, whose]))))


def _read_decision() -> Decision:
    while True:
        write_talk(QUESTION)
        line = read_chunk().decode("utf-8", "replace")
        decision = ANSWERS.get(line.strip().lower())
        if decision is not None:
            return decision


def _shown(request: Request) -> list[str]:
    warning = "" if request.risk == "normal" else f" ({request.risk})"
    lines = [bold(printable(f"{request.summary}{warning}"))]
    lines += [f"  {line}" for line in printable_lines(request.detail).split("\n")]
    if request.note:
        lines.append(printable(f"Note: {request.note}"))
    return [*lines, printable(f"[s] and [a] would allow {request.permit}.")]
