"""Notes that the model reads during one turn, next to the user's message; they are never stored."""

from __future__ import annotations

from collections.abc import Iterable

from hermes.state.rows import Row

_BEGINNING, _END = "[System note: ", "]"


def note_rows(notes: Iterable[str]) -> list[Row]:
    """Return notes as messages of a history; the projection joins them to the message before them."""
    return [{"role": "system", "content": format_note(each)} for each in notes if each.strip()]


def format_note(text: str) -> str:
    """Return a note as the model reads it; a bracket inside must not end it."""
    return f"{_BEGINNING}{text.strip().replace('[', '(').replace(']', ')')}{_END}"


def without_notes(text: str) -> str:
    """Return a message of the projection without the notes at its end."""
    text = text.rstrip()
    while text.endswith(_END) and (start := text.rfind(_BEGINNING)) >= 0 and _END not in text[start:-1]:
        text = text[:start].rstrip()
    return text
