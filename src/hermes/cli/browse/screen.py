"""The full screen to find, manage and resume conversations."""

from __future__ import annotations

import asyncio
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

from hermes.cli.browse.dialogs import DeleteDialog, HelpDialog
from hermes.cli.browse.latest_only import LatestOnly
from hermes.cli.browse.line_layout import conversation_name
from hermes.cli.browse.preview_pane import PreviewPane
from hermes.cli.browse.queries import PAGE, DeletionPreview, Hit, SessionQueries
from hermes.cli.browse.session_list import SessionList
from hermes.cli.chat.recap import Recap
from hermes.cli.display.receipt import format_receipt
from hermes.cli.display.terminal import printable
from hermes.cli.errors import INTERRUPTED
from hermes.errors import HermesError
from hermes.phrases import plural
from hermes.state.sessions.lists.browsing import BrowseFilter, ListedConversation, Order

LEAST_WIDTH, LEAST_HEIGHT = 60, 16
LEAST_FOR_PANE = 100
THEME = "ansi-dark"
"""The colours of the terminal itself, also its background, whether it is light or dark."""
PLACEHOLDER = "Type to filter conversations"
LIST_DELAY_S, SEARCH_DELAY_S, RECAP_DELAY_S = 0.03, 0.15, 0.06
"""The delays after the last key press before something is read."""

ORDERS = {Order.ACTIVE: "activity", Order.STARTED: "start", Order.MESSAGES: "messages", Order.TITLE: "title"}


class Browser(App[str]):
    """The application; `run` returns the id of the session to resume, or None."""

    CSS_PATH = "screen.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("f1,question_mark", "help", "Help", key_display="F1"),
        Binding("f2,r", "rename", "Name", key_display="F2"),
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

    def __init__(self, queries: SessionQueries, wanted: BrowseFilter) -> None:
        super().__init__(ansi_color=True)
        self.theme = THEME
        self.changes: list[str] = []
        """The changes made here, which the command prints afterwards."""
        self._queries = queries
        self._wanted = wanted
        self._total: int | None = None
        self._is_complete = False
        """Whether all matching conversations are loaded."""
        self._is_loading = False
        self._is_about_change = False
        """Whether the status line is about a change."""
        self._found: tuple[BrowseFilter, list[Hit]] | None = None
        """The last search of messages and its hits."""
        self._list, self._preview = SessionList(), PreviewPane()
        self._focused_before: Widget | None = None
        """What had the focus before the window became too small."""
        self._small, self._header = Static(id="small"), Static(id="header", markup=False)
        self._status = Static(id="status", markup=False)
        self._filter = Input(placeholder=PLACEHOLDER, id="filter", compact=True, select_on_focus=False)
        self._title = Input(id="title", compact=True, select_on_focus=False)
        self._pages = LatestOnly(queries.page, self._show_page, self._show_error, delay_s=LIST_DELAY_S)
        self._searches = LatestOnly(queries.search_messages, self._show_hits, self._show_error, delay_s=SEARCH_DELAY_S)
        self._recaps = LatestOnly(queries.recap, self._show_recap, self._show_error, delay_s=RECAP_DELAY_S)

    def compose(self) -> ComposeResult:
        """Yield the filter, the list with its preview, the status line and the keys."""
        yield self._small
        with Vertical(id="whole"):
            yield self._filter
            yield self._header
            with Horizontal():
                yield self._list
                yield self._preview
            with Horizontal(id="renaming"):
                yield Static("Title: ")
                yield self._title
            yield self._status
            yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Start reading, and handle SIGTERM and SIGHUP."""
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, self._exit_with, 128 + number)
        for worker in (self._pages, self._searches, self._recaps):
            self.run_worker(worker.run())
        self._pages.request(self._wanted)
        self._run_guarded(self._count())

    def on_resize(self, event: events.Resize) -> None:
        """Choose the layout for the new size."""
        width, height = event.size
        is_small = width < LEAST_WIDTH or height < LEAST_HEIGHT
        if is_small and not self.has_class("small"):  # what is hidden loses the focus
            self._focused_before = self._filter.screen.focused
        elif not is_small and self.has_class("small"):
            self.call_after_refresh(self._focus_again)
        self.set_class(is_small, "small")
        was_narrow = self.has_class("narrow")
        self.set_class(width < LEAST_FOR_PANE, "narrow")
        if was_narrow != self.has_class("narrow"):  # in a narrow window no recap is read
            self.show_selected()
        self._small.update(
            f"Terminal too small: {width}x{height}; at least {LEAST_WIDTH}x{LEAST_HEIGHT} is needed.\n"
            "Enlarge it, or press Esc and use `hermes sessions list`."
        )

    @on(SessionList.Resized)
    def fit_header(self) -> None:
        """Give the header the columns of the list."""
        self._show_header()

    @on(Input.Changed, "#filter")
    def narrow(self, event: Input.Changed) -> None:
        """Filter by the typed words."""
        self._want(replace(self._wanted, words=event.value.strip()))

    @on(Input.Submitted, "#filter")
    @on(SessionList.Chosen)
    def resume(self) -> None:
        """Exit with the selected conversation."""
        if self._list.selected is not None:
            self.exit(self._list.selected.id)

    @on(SessionList.Moved)
    def show_selected(self) -> None:
        """Show the selected conversation in the preview."""
        selected = self._list.selected
        self._preview.show(selected)
        if selected is None or self.has_class("narrow"):
            self._recaps.cancel()
        else:
            self._recaps.request(selected)

    @on(SessionList.NearEnd)
    def load_more(self) -> None:
        """Load the next page before the user reaches the end of this one."""
        if self._list.conversations and not self._is_complete and not self._is_loading:
            self._is_loading = True
            self._run_guarded(self._load_more(self._wanted, self._list.conversations[-1]))

    @on(Input.Submitted, "#title")
    def finish_renaming(self, event: Input.Submitted) -> None:
        """Rename the conversation. If the title is refused, show why and let the user edit it."""
        selected = self._list.selected
        if selected is not None:
            self._run_guarded(self._rename(selected, event.value))

    def action_move(self, lines: int) -> None:
        """Move the selection by lines; after the last comes the first, and before the first the last."""
        self._list.step(lines, is_complete=self._is_complete)

    def action_page(self, pages: int) -> None:
        """Move the selection by pages."""
        self._list.move(pages * max(1, self._list.size.height - 1))

    def action_switch(self) -> None:
        """Move the focus between filter and list, or between the buttons of a dialog."""
        if isinstance(self.screen, ModalScreen):
            self.screen.focus_next()
        elif not self._is_renaming:
            self._go_to(self._list if self._filter.has_focus else self._filter)

    def action_filter(self) -> None:
        """Focus the filter."""
        self._go_to(self._filter)

    def action_step_back(self) -> None:
        """Cancel renaming, clear the filter, or exit, whichever applies first."""
        if self._is_renaming:
            self._stop_renaming()
        elif self._filter.value:
            self._filter.value = ""
        else:
            self.exit()

    def action_interrupt(self) -> None:
        """Exit with the code of an interrupted program."""
        self._exit_with(INTERRUPTED)

    def action_help(self) -> None:
        """Show the keys."""
        self.push_screen(HelpDialog())

    def action_sort(self) -> None:
        """Switch to the next sort order."""
        orders = list(ORDERS)
        self._want(replace(self._wanted, order=orders[(orders.index(self._wanted.order) + 1) % len(orders)]))

    def action_rename(self) -> None:
        """Open the title field below the list."""
        if (selected := self._list.selected) is not None:
            self.add_class("renaming")
            self._title.value = selected.title or ""
            self._title.cursor_position = len(self._title.value)
            self._go_to(self._title)

    def action_archive(self) -> None:
        """Archive or unarchive the selected conversation."""
        self._with_selected(self._archive)

    def action_pin(self) -> None:
        """Pin or unpin the selected conversation."""
        self._with_selected(self._pin)

    def action_delete(self) -> None:
        """Delete the selected conversation after a confirmation."""
        self._with_selected(self._delete)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Disable other keys while the user types a title."""
        if self.has_class("small"):
            return action in ("step_back", "quit", "interrupt")
        return not self._is_renaming or action in ("step_back", "interrupt", "switch")

    @property
    def _is_renaming(self) -> bool:
        return self.has_class("renaming")

    def _focus_again(self) -> None:
        screen = self._filter.screen
        if screen.focused is None:
            screen.set_focus(self._focused_before or self._filter)

    def _go_to(self, widget: Widget) -> None:
        # Immediately, because the next key press may already be waiting.
        self.screen.set_focus(widget)

    def _want(self, wanted: BrowseFilter) -> None:
        if wanted == self._wanted:
            return
        self._wanted = wanted
        self._pages.request(wanted)
        if wanted.words:
            self._searches.request(wanted)
        else:
            self._searches.cancel()

    def _show_page(self, wanted: BrowseFilter, page: list[ListedConversation]) -> None:
        self._is_complete = len(page) < PAGE
        self._list.show(page, wanted.order)
        if self._found is not None and self._found[0] == wanted:
            self._list.show_hits(self._found[1])
        self._show_header()
        self._show_status()

    def _show_hits(self, wanted: BrowseFilter, hits: list[Hit]) -> None:
        self._found = (wanted, hits)
        if wanted == self._wanted:
            self._list.show_hits(hits)
            self._renew_status()

    def _show_recap(self, conversation: ListedConversation, recap: Recap) -> None:
        if conversation == self._list.selected:
            self._preview.show(conversation, recap)

    def _show_header(self) -> None:
        self._header.update(self._list.header())

    def _show_status(self) -> None:
        listed = len(self._list.conversations)
        noun = "archived conversation" if self._wanted.archived_only else "conversation"
        if self._wanted.words:
            parts = [f"{plural(listed, noun)}{'' if self._is_complete else ' or more'} by title or preview"]
            if self._list.hits:
                parts.append(f"{len(self._list.hits)} more by message")
        else:
            parts = [plural(listed if self._total is None else self._total, noun)]
        if self._wanted.source is not None:
            parts.append(f"from {printable(self._wanted.source)}")
        self._show_message(", ".join([*parts, f"sorted by {ORDERS[self._wanted.order]}"]))

    def _renew_status(self) -> None:
        """Show the counts, unless the line is about a change: what is read meanwhile must not hide that."""
        if not self._is_about_change:
            self._show_status()

    def _show_message(self, text: str, *, is_error: bool = False) -> None:
        self._is_about_change = False
        self._status.set_class(is_error, "error")
        self._status.update(text)

    def _show_error(self, error: HermesError) -> None:
        self._show_message(printable(f"{error.message}; {error.hint}" if error.hint else error.message), is_error=True)

    def _exit_with(self, exit_code: int) -> None:
        self.exit(return_code=exit_code)

    def _stop_renaming(self) -> None:
        self.remove_class("renaming")
        self._show_status()
        self._go_to(self._list)

    def _run_guarded(self, work: Awaitable[None]) -> None:
        """Run work in the background and show its error, if any."""

        async def run() -> None:
            try:
                await work
            except HermesError as error:
                self._show_error(error)

        self.run_worker(run())

    def _with_selected(self, work: Callable[[ListedConversation], Awaitable[None]]) -> None:
        if (selected := self._list.selected) is not None:
            self._run_guarded(work(selected))

    async def _count(self) -> None:
        self._total = await asyncio.to_thread(self._queries.count, self._wanted)
        self._renew_status()

    async def _load_more(self, wanted: BrowseFilter, after: ListedConversation) -> None:
        try:
            page = await asyncio.to_thread(self._queries.page, wanted, after)
        finally:
            self._is_loading = False
        if wanted == self._wanted and self._list.conversations[-1:] == [after]:
            self._is_complete = len(page) < PAGE
            self._list.add(page)
            self._renew_status()

    async def _rename(self, conversation: ListedConversation, title: str) -> None:
        renamed = await asyncio.to_thread(self._queries.rename, conversation, title)
        self._list.replace_conversation(renamed)
        self._stop_renaming()
        change = f"{renamed.id}  {renamed.title}" if renamed.title else f"{renamed.id} has no title now."
        self._record_change(printable(change))

    async def _archive(self, conversation: ListedConversation) -> None:
        changed = await asyncio.to_thread(self._queries.archive, conversation)
        if changed.is_archived == self._wanted.archived_only:
            self._list.replace_conversation(changed)
        else:
            self._remove(changed)
        self._record_change(printable(f"{changed.id} is {'' if changed.is_archived else 'no longer '}archived."))

    async def _pin(self, conversation: ListedConversation) -> None:
        changed = await asyncio.to_thread(self._queries.pin, conversation)
        self._list.replace_conversation(changed)
        self._record_change(printable(f"{changed.id} is {'' if changed.is_pinned else 'no longer '}pinned."))

    async def _delete(self, conversation: ListedConversation) -> None:
        deletion = await asyncio.to_thread(self._queries.preview_deletion, conversation)
        if await self.push_screen_wait(DeleteDialog(conversation, deletion)):
            await self._delete_confirmed(conversation, deletion)
        else:
            self._show_message("Nothing was deleted.")

    async def _delete_confirmed(self, conversation: ListedConversation, deletion: DeletionPreview) -> None:
        self._show_message(f"Deleting “{conversation_name(conversation)}” ...")
        receipt = await asyncio.to_thread(self._queries.delete, deletion)
        self._remove(conversation)
        summary, *rest = format_receipt(receipt)
        self._record_change(printable(f"{conversation.id}: {summary}"))
        self.changes += rest

    def _remove(self, conversation: ListedConversation) -> None:
        self._list.remove_conversation(conversation)
        if self._total is not None:
            self._total -= 1

    def _record_change(self, text: str) -> None:
        self._show_message(text)
        self._is_about_change = True
        self.changes.append(text)
