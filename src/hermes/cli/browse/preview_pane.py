"""The preview pane: the facts and the last messages of the selected conversation."""

from __future__ import annotations

import time

from rich.text import Text
from textual.containers import VerticalScroll
from textual.widgets import Static

from hermes.cli.browse.line_layout import conversation_name, format_cost, format_model
from hermes.cli.chat.recap import DOTS, LABELS, Recap
from hermes.cli.display.terminal import printable, printable_lines
from hermes.cli.display.times import ago
from hermes.phrases import plural
from hermes.state.sessions.lists.browsing import ListedConversation

COLOURS = {"user": "yellow", "assistant": "green"}


class PreviewPane(VerticalScroll, can_focus=False):
    """Shows one conversation."""

    def __init__(self) -> None:
        super().__init__()
        self._text = Static(markup=False)

    def compose(self) -> list[Static]:
        """Return the scrollable text."""
        return [self._text]

    def show(self, conversation: ListedConversation | None, recap: Recap | None = None) -> None:
        """Show a conversation, with its last messages once the recap is loaded."""
        self._text.update("" if conversation is None else _describe(conversation, recap, time.time()))
        self.scroll_end(animate=False) if recap else self.scroll_home(animate=False)


def _describe(conversation: ListedConversation, recap: Recap | None, now: float) -> Text:
    flags = [name for name, is_so in _flags(conversation).items() if is_so]
    text = Text(conversation_name(conversation), style="bold")
    text.append(f"\n{printable(conversation.id)}", style="not bold")
    facts = [printable(conversation.source), plural(conversation.message_count, "message")]
    facts += [each for each in (format_model(conversation), format_cost(conversation), *flags) if each]
    text.append(f"\n{', '.join(facts)}", style="not bold dim")
    moments = f"started {ago(conversation.started_at, now)}, last active {ago(conversation.last_active, now)}"
    text.append(f"\n{moments}\n", style="not bold dim")
    if recap is None:
        return text
    if recap.earlier:
        text.append(f"\n{DOTS} {plural(recap.earlier, 'earlier message')} {DOTS}\n", style="not bold dim")
    for entry in recap.entries:
        mark, label, _ = LABELS[entry.role]
        text.append(f"\n{mark} ", style=f"not bold {COLOURS[entry.role]}")
        text.append(f"{label} ", style="bold")
        text.append(f"{printable_lines(entry.text)}\n", style="not bold")
    if not recap.entries:
        text.append("\nNo messages yet.", style="not bold dim")
    return text


def _flags(conversation: ListedConversation) -> dict[str, bool]:
    return {"pinned": conversation.is_pinned, "archived": conversation.is_archived}
