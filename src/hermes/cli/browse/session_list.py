"""The list on the screen, which draws only its visible lines."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import ClassVar

from rich.segment import Segment
from rich.style import Style
from textual import events
from textual.binding import Binding, BindingType
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from hermes.cli.browse.line_layout import LineStyle, format_header, format_line
from hermes.cli.browse.queries import Hit
from hermes.cli.display.terminal import clip, pad
from hermes.phrases import plural
from hermes.state.sessions.lists.browsing import ListedConversation, Order

NEAR_END = 30
"""The list requests more conversations this many lines before the end of those loaded."""

STYLES = {
    LineStyle.PLAIN: Style(),
    LineStyle.QUIET: Style(dim=True),
    LineStyle.NAME: Style(bold=True),
    LineStyle.FOUND: Style(bold=True, color="red"),
}
SELECTED = Style(reverse=True)
HEADING = Style(bold=True, underline=True)


class SessionList(ScrollView, can_focus=True, inherit_bindings=False):
    """Conversations that match by title or preview, and below them those that match by message."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "first", show=False),
        Binding("end", "last", show=False),
        Binding("enter", "choose", "Resume", show=False),
    ]

    class Moved(Message):
        """The selection has changed."""

    class NearEnd(Message):
        """The selection is near the end of the loaded conversations."""

    class Resized(Message):
        """The list has another width."""

    class Chosen(Message):
        """The user wants to resume the selected conversation."""

    def __init__(self) -> None:
        super().__init__()
        self.conversations: list[ListedConversation] = []
        self.hits: list[Hit] = []
        self.order = Order.ACTIVE
        self.at = 0
        """The selected line."""

    @property
    def selected(self) -> ListedConversation | None:
        """The selected conversation, if any."""
        item = self._item(self.at)
        return item.conversation if isinstance(item, Hit) else item

    def show(self, conversations: Sequence[ListedConversation], order: Order) -> None:
        """Replace the list and select its first line."""
        self.conversations, self.hits, self.order = list(conversations), [], order
        self.at = 0
        self.scroll_to(y=0, animate=False)
        self._redraw()

    def add(self, conversations: Sequence[ListedConversation]) -> None:
        """Append conversations; the hits stay below them."""
        if self.at >= len(self.conversations) and self.hits:
            self.at += len(conversations)
        self.conversations += conversations
        self.show_hits(self.hits)

    def show_hits(self, hits: Sequence[Hit]) -> None:
        """Show message hits, except those in conversations that are already listed."""
        shown = {each.root_id for each in self.conversations}
        self.hits = [hit for hit in hits if hit.conversation.root_id not in shown]
        self.at = self._nearest(min(self.at, self._last()), 1)
        self._redraw()

    def replace_conversation(self, changed: ListedConversation) -> None:
        """Update a conversation in the list."""
        self._replace_or_remove(changed.root_id, changed)

    def remove_conversation(self, gone: ListedConversation) -> None:
        """Remove a conversation from the list."""
        self._replace_or_remove(gone.root_id, None)
        self.at = self._nearest(min(self.at, self._last()), -1)
        self._redraw()

    def move(self, lines: int) -> None:
        """Move the selection down by a number of lines, or up if it is negative."""
        target = min(max(0, self.at + lines), max(0, self._last()))
        self._select(self._nearest(target, 1 if lines > 0 else -1))

    def step(self, lines: int, *, is_complete: bool) -> None:
        """Move the selection, from one end of a complete list to the other."""
        last = self._last()
        if lines > 0 and self.at >= last and is_complete:
            self._select(0)
        elif lines < 0 and self.at <= self._nearest(0, 1):
            self._select(max(0, last))
        else:
            self.move(lines)

    def on_resize(self) -> None:
        """Tell the screen, which draws the header; keep the selected line on the screen."""
        self.post_message(self.Resized())
        self.scroll_to_region(Region(0, self.at, 1, 1), animate=False)

    def action_first(self) -> None:
        """Select the first line."""
        self._select(0)

    def action_last(self) -> None:
        """Select the last loaded line."""
        self._select(self._last())

    def action_choose(self) -> None:
        """Resume the selected conversation."""
        if self.selected is not None:
            self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        """Select a line; a double click resumes it."""
        line = int(event.y + self.scroll_offset.y)
        if self._item(line) is None:
            return
        self._select(line)
        if event.chain == 2:
            self.action_choose()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Request more conversations when the user scrolls with the mouse."""
        super().watch_scroll_y(old_value, new_value)
        self._ask_for_more(int(new_value) + self.size.height)

    def header(self) -> str:
        """Return the column headings."""
        return format_header(self._width, self.order)

    def render_line(self, y: int) -> Strip:
        """Draw one line of the screen."""
        width = self._width
        line = y + int(self.scroll_offset.y)
        style = self.rich_style
        item = self._item(line)
        if item is None:
            is_heading = bool(self.hits) and line == len(self.conversations)
            text = pad(clip(self._heading(), width), width) if is_heading else " " * width
            return Strip([Segment(text, style + HEADING if is_heading else style)], width)
        if line == self.at:
            style += SELECTED
        parts = format_line(item, width, self.order, time.time())
        segments = [Segment(part.text, style + STYLES[part.style]) for part in parts]
        return Strip(segments).adjust_cell_length(width, style)

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _heading(self) -> str:
        return f"  Messages match in {plural(len(self.hits), 'more conversation')}"

    def _item(self, line: int) -> ListedConversation | Hit | None:
        if 0 <= line < len(self.conversations):
            return self.conversations[line]
        place = line - len(self.conversations) - 1
        return self.hits[place] if 0 <= place < len(self.hits) else None

    def _last(self) -> int:
        """Return the number of the last line; -1 if the list is empty."""
        return len(self.conversations) + (len(self.hits) + 1 if self.hits else 0) - 1

    def _nearest(self, line: int, step: int) -> int:
        """Return the line, or a neighbour if it is a heading."""
        if self._item(line) is not None or line < 0:
            return max(0, line)
        return line + step if self._item(line + step) is not None else max(0, line - step)

    def _select(self, line: int) -> None:
        before, self.at = self.at, max(0, line)
        self.refresh(self._region(before), self._region(self.at))
        self.scroll_to_region(Region(0, self.at, 1, 1), animate=False)
        self._ask_for_more(self.at)
        if before != self.at:
            self.post_message(self.Moved())

    def _region(self, line: int) -> Region:
        return Region(0, line - int(self.scroll_offset.y), self._width, 1)

    def _ask_for_more(self, line: int) -> None:
        if len(self.conversations) - NEAR_END <= line <= len(self.conversations):
            self.post_message(self.NearEnd())

    def _replace_or_remove(self, root_id: str, replacement: ListedConversation | None) -> None:
        """Replace a conversation, or remove it if there is no replacement."""
        for place, conversation in enumerate(self.conversations):
            if conversation.root_id == root_id:
                self.conversations[place : place + 1] = [] if replacement is None else [replacement]
                break
        for place, hit in enumerate(self.hits):
            if hit.conversation.root_id == root_id:
                self.hits[place : place + 1] = [] if replacement is None else [Hit(replacement, hit.snippet)]
                break
        self._redraw()

    def _redraw(self) -> None:
        self.virtual_size = Size(0, self._last() + 1)
        self.refresh()
        self.post_message(self.Moved())
