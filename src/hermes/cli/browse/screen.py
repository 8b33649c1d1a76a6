"""The screen on which conversations are found, tidied up, and gone on with."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import ClassVar

from textual import events, on
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.screen import ModalScreen
from textual.widget import Widget
from textual.widgets import Footer, Input, Static

from hermes.cli.browse.catalogue import PAGE, Catalogue, Doomed, Hit
from hermes.cli.browse.dialogs import Help, Question
from hermes.cli.browse.follower import Follower
from hermes.cli.browse.look import name_of
from hermes.cli.browse.pane import Pane
from hermes.cli.browse.shelf import Shelf
from hermes.cli.chat.recap import Recap
from hermes.cli.failures import INTERRUPTED
from hermes.cli.receipt import lines_of
from hermes.cli.terminal import printable
from hermes.errors import HermesError
from hermes.phrases import counted
from hermes.state.browsing import Conversation, Order, Wanted

LEAST_WIDTH, LEAST_HEIGHT = 80, 24
LEAST_FOR_PANE = 100
PLACEHOLDER = "Type to find a conversation"
LIST_DELAY_S, SEARCH_DELAY_S, RECAP_DELAY_S = 0.03, 0.15, 0.06
"""How long typing is waited for before something is read."""

ORDERS = {Order.ACTIVE: "activity", Order.STARTED: "start", Order.MESSAGES: "messages", Order.TITLE: "title"}


class Browser(App[str]):
    """Answers the id of the session to go on with, or None."""

    CSS_PATH = "screen.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,question_mark", "help", "Help", key_display="F1"),
        Binding("f2,r", "rename", "Rename", key_display="F2"),
        Binding("f3,s", "sort", "Sort", key_display="F3"),
        Binding("f4,a", "archive", "Archive", key_display="F4"),
        Binding("f6,p", "pin", "Pin", key_display="F6"),
        Binding("f8,d,delete", "delete", "Delete", key_display="F8"),
        Binding("escape", "step_back", "Back", key_display="Esc"),
        Binding("tab", "switch", show=False, priority=True),
        Binding("slash", "filter", show=False),
        Binding("q", "quit", show=False),
        Binding("ctrl+c", "interrupt", show=False, priority=True),
        Binding("up", "move(-1)", show=False),
        Binding("down", "move(1)", show=False),
        Binding("pageup", "page(-1)", show=False),
        Binding("pagedown", "page(1)", show=False),
    ]

    def __init__(self, catalogue: Catalogue, wanted: Wanted) -> None:
        # Without colours of its own there are none at all; otherwise greys would be left.
        super().__init__(ansi_color=True if os.environ.get("NO_COLOR") else None)
        self.done: list[str] = []
        """What was changed, as it is told afterwards."""
        self._catalogue = catalogue
        self._wanted = wanted
        self._total: int | None = None
        self._is_complete = False
        """Whether every conversation that fits has been loaded."""
        self._is_loading = False
        self._found: tuple[Wanted, list[Hit]] | None = None
        """What was said, as far as it was looked for."""
        self._shelf, self._pane = Shelf(), Pane()
        self._small, self._header = Static(id="small"), Static(id="header", markup=False)
        self._status = Static(id="talk", markup=False)
        self._filter = Input(placeholder=PLACEHOLDER, id="filter", compact=True, select_on_focus=False)
        self._title = Input(id="title", compact=True, select_on_focus=False)
        self._pages = Follower(catalogue.page, self._show_page, self._complain, delay_s=LIST_DELAY_S)
        self._searches = Follower(catalogue.said, self._show_hits, self._complain, delay_s=SEARCH_DELAY_S)
        self._recaps = Follower(catalogue.recap, self._show_recap, self._complain, delay_s=RECAP_DELAY_S)

    def compose(self) -> ComposeResult:
        """The filter, the list with the pane beside it, a line of talk, and the keys."""
        yield self._small
        with Vertical(id="whole"):
            yield self._filter
            yield self._header
            with Horizontal():
                yield self._shelf
                yield self._pane
            with Horizontal(id="renaming"):
                yield Static("Title: ")
                yield self._title
            yield self._status
            yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Begin to read, and to hear those who want the program to end."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._end, 128 + number)
        for follower in (self._pages, self._searches, self._recaps):
            self.run_worker(follower.follow())
        self._pages.wish(self._wanted)
        self._begin(self._count())

    def on_resize(self, event: events.Resize) -> None:
        """Choose what fits."""
        width, height = event.size
        is_small = width < LEAST_WIDTH or height < LEAST_HEIGHT
        self.set_class(is_small, "small")
        self.set_class(width < LEAST_FOR_PANE, "narrow")
        needed = f"{LEAST_WIDTH} columns and {LEAST_HEIGHT} lines"
        self._small.update(
            f"This needs a terminal of {needed}; it has {width} and {height}.\n"
            "Make it larger, or press Esc and use `hermes sessions list`."
        )
        self.call_after_refresh(self._show_header)

    @on(Input.Changed, "#filter")
    def narrow(self, event: Input.Changed) -> None:
        """Look for what was typed."""
        self._want(replace(self._wanted, words=event.value.strip()))

    @on(Input.Submitted, "#filter")
    @on(Shelf.Chosen)
    def resume(self) -> None:
        """Leave for the selected conversation."""
        if self._shelf.selected is not None:
            self.exit(self._shelf.selected.id)

    @on(Shelf.Moved)
    def look(self) -> None:
        """Show what is selected."""
        selected = self._shelf.selected
        self._pane.show(selected)
        if selected is None or self.has_class("narrow"):
            self._recaps.forget()
        else:
            self._recaps.wish(selected)

    @on(Shelf.NearEnd)
    def load_more(self) -> None:
        """Read the next page, before somebody sees that it is missing."""
        if self._shelf.conversations and not self._is_complete and not self._is_loading:
            self._is_loading = True
            self._begin(self._load_more(self._wanted, self._shelf.conversations[-1]))

    @on(Input.Submitted, "#title")
    def finish_renaming(self, event: Input.Submitted) -> None:
        """Give the conversation the typed title; one that cannot be given is told of, and typed again."""
        selected = self._shelf.selected
        if selected is not None:
            self._begin(self._rename(selected, event.value))

    def action_move(self, lines: int) -> None:
        """Select another line."""
        self._shelf.move(lines)

    def action_page(self, pages: int) -> None:
        """Select a line a screenful away."""
        self._shelf.move(pages * max(1, self._shelf.size.height - 1))

    def action_switch(self) -> None:
        """Go from the filter to the list, or back; in a question, from button to button."""
        if isinstance(self.screen, ModalScreen):
            self.screen.focus_next()
        elif not self._is_renaming:
            self._go_to(self._shelf if self._filter.has_focus else self._filter)

    def action_filter(self) -> None:
        """Go to the filter."""
        self._go_to(self._filter)

    def action_step_back(self) -> None:
        """Go one step back: out of the renaming, out of the filter, out."""
        if self._is_renaming:
            self._stop_renaming()
        elif self._filter.value:
            self._filter.value = ""
        else:
            self.exit()

    def action_interrupt(self) -> None:
        """Leave as Ctrl-C leaves everything."""
        self._end(INTERRUPTED)

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(Help())

    def action_sort(self) -> None:
        """Take the next order."""
        orders = list(ORDERS)
        self._want(replace(self._wanted, order=orders[(orders.index(self._wanted.order) + 1) % len(orders)]))

    def action_rename(self) -> None:
        """Ask for a title, below the list."""
        if (selected := self._shelf.selected) is not None:
            self.add_class("renaming")
            self._title.value = selected.title or ""
            self._title.cursor_position = len(self._title.value)
            self._go_to(self._title)

    def action_archive(self) -> None:
        """Leave the conversation out of the list, or bring it back."""
        self._with_selected(self._archive)

    def action_pin(self) -> None:
        """Keep the conversation from being pruned, or no longer."""
        self._with_selected(self._pin)

    def action_delete(self) -> None:
        """Delete the conversation, after a question."""
        self._with_selected(self._delete)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a title is typed, the other keys have no meaning."""
        if self.has_class("small"):
            return action in ("step_back", "quit", "interrupt")
        return not self._is_renaming or action in ("step_back", "interrupt", "switch")

    @property
    def _is_renaming(self) -> bool:
        return self.has_class("renaming")

    def _go_to(self, widget: Widget) -> None:
        # At once: the next key may have been pressed already.
        self.screen.set_focus(widget)

    def _want(self, wanted: Wanted) -> None:
        if wanted == self._wanted:
            return
        self._wanted = wanted
        self._pages.wish(wanted)
        if wanted.words:
            self._searches.wish(wanted)
        else:
            self._searches.forget()

    def _show_page(self, wanted: Wanted, page: list[Conversation]) -> None:
        self._is_complete = len(page) < PAGE
        self._shelf.show(page, wanted.order)
        if self._found is not None and self._found[0] == wanted:
            self._shelf.show_hits(self._found[1])
        self._show_header()
        self._show_status()

    def _show_hits(self, wanted: Wanted, hits: list[Hit]) -> None:
        self._found = (wanted, hits)
        if wanted == self._wanted:
            self._shelf.show_hits(hits)
            self._show_status()

    def _show_recap(self, conversation: Conversation, recap: Recap) -> None:
        if conversation == self._shelf.selected:
            self._pane.show(conversation, recap)

    def _show_header(self) -> None:
        self._header.update(self._shelf.header())

    def _show_status(self) -> None:
        shown = len(self._shelf.conversations)
        noun = "archived conversation" if self._wanted.archived_only else "conversation"
        if self._wanted.words:
            parts = [f"{counted(shown, noun)}{'' if self._is_complete else ' or more'} by title or beginning"]
            if self._shelf.hits:
                parts.append(f"{len(self._shelf.hits)} more by what was said")
        else:
            parts = [counted(shown if self._total is None else self._total, noun)]
        if self._wanted.source is not None:
            parts.append(f"from {printable(self._wanted.source)}")
        self._talk(", ".join([*parts, f"by {ORDERS[self._wanted.order]}"]))

    def _talk(self, text: str, *, is_error: bool = False) -> None:
        self._status.set_class(is_error, "error")
        self._status.update(text)

    def _complain(self, error: HermesError) -> None:
        self._talk(printable(f"{error.message}; {error.hint}" if error.hint else error.message), is_error=True)

    def _end(self, exit_code: int) -> None:
        self.exit(return_code=exit_code)

    def _stop_renaming(self) -> None:
        self.remove_class("renaming")
        self._show_status()
        self._go_to(self._shelf)

    def _begin(self, work: Awaitable[None]) -> None:
        """Do something that takes long; what it cannot do is told."""

        async def guarded() -> None:
            try:
                await work
            except HermesError as error:
                self._complain(error)

        self.run_worker(guarded())

    def _with_selected(self, work: Callable[[Conversation], Awaitable[None]]) -> None:
        if (selected := self._shelf.selected) is not None:
            self._begin(work(selected))

    async def _count(self) -> None:
        self._total = await asyncio.to_thread(self._catalogue.count, self._wanted)
        self._show_status()

    async def _load_more(self, wanted: Wanted, after: Conversation) -> None:
        try:
            page = await asyncio.to_thread(self._catalogue.page, wanted, after)
        finally:
            self._is_loading = False
        if wanted == self._wanted and self._shelf.conversations[-1:] == [after]:
            self._is_complete = len(page) < PAGE
            self._shelf.add(page)
            self._show_status()

    async def _rename(self, conversation: Conversation, title: str) -> None:
        renamed = await asyncio.to_thread(self._catalogue.rename, conversation, title)
        self._shelf.replace(renamed)
        self._stop_renaming()
        told = f"{renamed.id}  {renamed.title}" if renamed.title else f"{renamed.id} has no title any more."
        self._note(printable(told))

    async def _archive(self, conversation: Conversation) -> None:
        changed = await asyncio.to_thread(self._catalogue.archive, conversation)
        if changed.is_archived == self._wanted.archived_only:
            self._shelf.replace(changed)
        else:
            self._take_out(changed)
        self._note(printable(f"{changed.id} is {'' if changed.is_archived else 'no longer '}archived."))

    async def _pin(self, conversation: Conversation) -> None:
        changed = await asyncio.to_thread(self._catalogue.pin, conversation)
        self._shelf.replace(changed)
        self._note(printable(f"{changed.id} is {'' if changed.is_pinned else 'no longer '}pinned."))

    async def _delete(self, conversation: Conversation) -> None:
        doomed = await asyncio.to_thread(self._catalogue.doomed, conversation)
        if await self.push_screen_wait(Question(conversation, doomed)):
            await self._delete_for_good(conversation, doomed)
        else:
            self._talk("Nothing was deleted.")

    async def _delete_for_good(self, conversation: Conversation, doomed: Doomed) -> None:
        self._talk(f"Deleting “{name_of(conversation)}” ...")
        receipt = await asyncio.to_thread(self._catalogue.delete, doomed)
        self._take_out(conversation)
        told, *rest = lines_of(receipt)
        self._note(printable(f"{conversation.id}: {told}"))
        self.done += rest

    def _take_out(self, conversation: Conversation) -> None:
        self._shelf.take_out(conversation)
        if self._total is not None:
            self._total -= 1

    def _note(self, told: str) -> None:
        self._talk(told)
        self.done.append(told)
