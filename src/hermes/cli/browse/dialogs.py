"""What stands in front of the list for a moment: a question, and the keys."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from hermes.cli.browse.line_layout import conversation_name
from hermes.cli.browse.queries import DeletionPreview
from hermes.phrases import counted
from hermes.state.sessions.browsing import ListedConversation

KEYS = {
    "letters": "narrow the list by titles, beginnings, ids, sources,",
    "": "and then by what was said",
    "↑ ↓ PgUp PgDn": "select; also with the mouse",
    "Enter": "go on with the selected one; also a double click",
    "Tab": "from the filter to the list, where letters are keys,",
    " ": "and back, as / does",
    "F2  r": "rename",
    "F3  s": "sort by activity, start, messages, title",
    "F4  a": "archive, or bring back",
    "F6  p": "pin, or no longer",
    "F8  d": "delete, after a question",
    "F1  ?": "show this",
    "Esc": "clear the filter; without one, leave",
    "Ctrl-C  q": "leave",
}


class DeleteDialog(ModalScreen[bool]):
    """Whether a conversation is to be deleted for good."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("y", "answer(True)", "Delete"),
        Binding("n,escape,q", "answer(False)", "Keep"),
        Binding("left,right", "app.focus_next", show=False),
    ]

    def __init__(self, conversation: ListedConversation, deletion: DeletionPreview) -> None:
        super().__init__()
        self._conversation = conversation
        self._deletion = deletion

    def compose(self) -> ComposeResult:
        """A sentence with the count, and two buttons, of which the harmless one is the first."""
        sessions = counted(len(self._deletion.session_ids), "session")
        pinned = " It is pinned." if self._conversation.is_pinned else ""
        with Vertical():
            yield Static(f"Delete “{conversation_name(self._conversation)}”?", markup=False, classes="title")
            yield Static(
                f"{sessions} with {counted(self._deletion.messages, 'message')}.{pinned}"
                " It cannot be brought back but from a backup.",
                markup=False,
            )
            with Horizontal():
                yield Button("Keep (n)", id="keep")
                yield Button("Delete (y)", id="delete", variant="error")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """A button was pressed."""
        self.action_answer(event.button.id == "delete")

    def action_answer(self, is_sure: bool) -> None:
        """Close the question."""
        self.dismiss(is_sure)


class HelpDialog(ModalScreen[None]):
    """All keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,f1,question_mark", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        """A table."""
        with Vertical():
            yield Static("Keys", classes="title")
            yield Static("\n".join(f"{key:<16}{meaning}" for key, meaning in KEYS.items()), markup=False)

    def on_click(self) -> None:
        """A click anywhere closes it."""
        self.dismiss()
