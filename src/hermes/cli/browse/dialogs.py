"""Dialogs over the list: the confirmation of a deletion, and the key help."""

from __future__ import annotations

from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widgets import Button, Static

from hermes.cli.browse.line_layout import conversation_name
from hermes.cli.browse.queries import DeletionPreview
from hermes.phrases import plural
from hermes.state.sessions.lists.browsing import ListedConversation

KEYS = {
    "letters": "filter by title, preview, id and source,",
    "": "then by the text of messages",
    "↑ ↓ PgUp PgDn": "select; the mouse works too",
    "Enter": "resume the selected conversation; or double-click it",
    "Tab": "switch to the list, where letters are commands,",
    " ": "and back to the filter; / does that too",
    "F2  r": "rename",
    "F3  s": "sort by activity, start, messages or title",
    "F4  a": "archive or unarchive",
    "F6  p": "pin or unpin",
    "F8  d": "delete, after confirmation",
    "F1  ?": "show this help",
    "Esc": "clear the filter; leave if it is empty",
    "Ctrl-C  q": "leave",
}


class DeleteDialog(ModalScreen[bool]):
    """Asks whether to delete a conversation; returns True for yes."""

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
        """Yield the question and two buttons, the harmless one first."""
        sessions = plural(len(self._deletion.session_ids), "session")
        pinned = " It is pinned." if self._conversation.is_pinned else ""
        with Vertical():
            yield Static(f"Delete “{conversation_name(self._conversation)}”?", markup=False, classes="title")
            yield Static(
                f"{sessions} with {plural(self._deletion.messages, 'message')}.{pinned}"
                " Only a backup can bring it back.",
                markup=False,
            )
            with Horizontal():
                yield Button("Keep (n)", id="keep")
                yield Button("Delete (y)", id="delete", variant="error")

    def on_button_pressed(self, event: Button.Pressed) -> None:
        """Close the dialog with the choice of the pressed button."""
        self.action_answer(event.button.id == "delete")

    def action_answer(self, is_sure: bool) -> None:
        """Close the dialog with a choice."""
        self.dismiss(is_sure)


class HelpDialog(ModalScreen[None]):
    """Lists all keys."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q,enter,f1,question_mark", "dismiss", "Close")]

    def compose(self) -> ComposeResult:
        """Yield the table of keys."""
        with Vertical():
            yield Static("Keys", classes="title")
            yield Static("\n".join(f"{key:<16}{meaning}" for key, meaning in KEYS.items()), markup=False)

    def on_click(self) -> None:
        """Close the dialog on any click."""
        self.dismiss()
