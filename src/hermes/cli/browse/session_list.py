"""The list on the screen: as many lines as there are conversations, of which only the visible ones are drawn."""

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
from hermes.phrases import counted
from hermes.state.sessions.browsing import ListedConversation, Order

NEAR_END = 30
"""So many lines before the end of what is loaded, more is asked for."""

STYLES = {
    LineStyle.PLAIN: Style(),
    LineStyle.QUIET: Style(dim=True),
    LineStyle.NAME: Style(bold=True),
    LineStyle.FOUND: Style(bold=True, color="red"),
}
SELECTED = Style(reverse=True)
HEADING = Style(bold=True, underline=True)


class SessionList(ScrollView, can_focus=True, inherit_bindings=False):
    """Conversations by title and beginning, and below them those in which the words were said."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("home", "first", show=False),
        Binding("end", "last", show=False),
        Binding("enter", "choose", "Resume", show=False),
    ]

    class Moved(Message):
        """Another conversation is selected, or none."""

    class NearEnd(Message):
        """Soon there is nothing more to show of what is loaded."""

    class Chosen(Message):
        """The selected conversation is to be gone on with."""

    def __init__(self) -> None:
        super().__init__()
        self.conversations: list[ListedConversation] = []
        self.hits: list[Hit] = []
        self.order = Order.ACTIVE
        self.at = 0
        """The selected line."""

    @property
    def selected(self) -> ListedConversation | None:
        """The conversation that keys are about."""
        item = self._item(self.at)
        return item.conversation if isinstance(item, Hit) else item

    def show(self, conversations: Sequence[ListedConversation], order: Order) -> None:
        """Begin anew, at the top."""
        self.conversations, self.hits, self.order = list(conversations), [], order
        self.at = 0
        self.scroll_to(y=0, animate=False)
        self._changed()

    def add(self, conversations: Sequence[ListedConversation]) -> None:
        """Go on behind those that are shown; what was said stays below."""
        if self.at >= len(self.conversations) and self.hits:
            self.at += len(conversations)
        self.conversations += conversations
        self.show_hits(self.hits)

    def show_hits(self, hits: Sequence[Hit]) -> None:
        """Show where the words were said, but for conversations that are shown already."""
        shown = {each.root_id for each in self.conversations}
        self.hits = [hit for hit in hits if hit.conversation.root_id not in shown]
        self.at = self._nearest(min(self.at, self._last()), 1)
        self._changed()

    def replace_conversation(self, changed: ListedConversation) -> None:
        """Show a conversation as it is now."""
        self._replace_or_remove(changed.root_id, changed)

    def remove_conversation(self, gone: ListedConversation) -> None:
        """Leave out a conversation."""
        self._replace_or_remove(gone.root_id, None)
        self.at = self._nearest(min(self.at, self._last()), -1)
        self._changed()

    def move(self, lines: int) -> None:
        """Select another line, so many further down."""
        target = min(max(0, self.at + lines), max(0, self._last()))
        self._select(self._nearest(target, 1 if lines > 0 else -1))

    def action_first(self) -> None:
        """Go to the first line."""
        self._select(0)

    def action_last(self) -> None:
        """Go to the last line of what is loaded."""
        self._select(self._last())

    def action_choose(self) -> None:
        """Go on with the selected conversation."""
        if self.selected is not None:
            self.post_message(self.Chosen())

    def on_click(self, event: events.Click) -> None:
        """Select a line, and with a second click go on with it."""
        line = int(event.y + self.scroll_offset.y)
        if self._item(line) is None:
            return
        self._select(line)
        if event.chain == 2:
            self.action_choose()

    def watch_scroll_y(self, old_value: float, new_value: float) -> None:
        """Ask for more also when somebody turns the wheel."""
        super().watch_scroll_y(old_value, new_value)
        self._ask_for_more(int(new_value) + self.size.height)

    def header(self) -> str:
        """The line above."""
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
        segments = [Segment(part.text, style + STYLES[part.tone]) for part in parts]
        return Strip(segments).adjust_cell_length(width, style)

    @property
    def _width(self) -> int:
        return self.scrollable_content_region.width

    def _heading(self) -> str:
        return f"  Said in {counted(len(self.hits), 'more conversation')}"

    def _item(self, line: int) -> ListedConversation | Hit | None:
        if 0 <= line < len(self.conversations):
            return self.conversations[line]
        place = line - len(self.conversations) - 1
        return self.hits[place] if 0 <= place < len(self.hits) else None

    def _last(self) -> int:
        """The last line; -1 if there is none."""
        return len(self.conversations) + (len(self.hits) + 1 if self.hits else 0) - 1

    def _nearest(self, line: int, step: int) -> int:
        """A line, or the one beside it if it is a heading."""
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

    def _replace_or_remove(self, root_id: str, instead: ListedConversation | None) -> None:
        """Put something else in the place of a conversation."""
        for place, conversation in enumerate(self.conversations):
            if conversation.root_id == root_id:
                self.conversations[place : place + 1] = [] if instead is None else [instead]
                break
        for place, hit in enumerate(self.hits):
            if hit.conversation.root_id == root_id:
                self.hits[place : place + 1] = [] if instead is None else [Hit(instead, hit.snippet)]
                break
        self._changed()

    def _changed(self) -> None:
        self.virtual_size = Size(0, self._last() + 1)
        self.refresh()
        self.post_message(self.Moved())
