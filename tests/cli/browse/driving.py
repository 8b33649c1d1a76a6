"""Driving the browse screen without a terminal: press keys and read what it shows."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable

from textual.pilot import Pilot
from textual.widgets import Input, Static

from hermes.cli.browse.preview_pane import PreviewPane
from hermes.cli.browse.queries import SessionQueries
from hermes.cli.browse.screen import Browser
from hermes.cli.browse.session_list import SessionList
from hermes.config import load_config
from hermes.state.sessions.lists.browsing import BrowseFilter
from hermes_state import SessionDB
from tests.cli.conftest import Hermes

LIMIT_S = 20.0
LARGE, SMALL = (120, 40), (80, 24)


class Screen:
    """A running screen."""

    def __init__(self, browser: Browser, pilot: Pilot[str]) -> None:
        self.browser = browser
        self.pilot = pilot

    @property
    def sessions(self) -> SessionList:
        return self.browser.screen_stack[0].query_one(SessionList)

    @property
    def names(self) -> list[str]:
        """The titles or previews of the listed conversations."""
        return [each.title or each.preview for each in self.sessions.conversations]

    @property
    def hit_names(self) -> list[str]:
        """The names of the conversations listed by message hits."""
        return [hit.conversation.title or hit.conversation.preview for hit in self.sessions.hits]

    @property
    def selected(self) -> str | None:
        return None if self.sessions.selected is None else self.sessions.selected.id

    @property
    def status(self) -> str:
        return str(self.browser.screen_stack[0].query_one("#status", Static).content)

    @property
    def pane(self) -> str:
        return str(self.browser.query_one(PreviewPane).query_one(Static).content)

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def type(self, text: str, into: str = "#filter") -> None:
        """Type a text and wait until it is in the field."""
        field = self.browser.query_one(into, Input)
        wanted = field.value + text
        await self.pilot.press(*("space" if char == " " else char for char in text))
        await self.until(lambda: field.value == wanted, f"{wanted!r} in the field")

    async def until(self, is_so: Callable[[], bool], what: str) -> None:
        """Wait until a condition holds."""
        deadline = time.monotonic() + LIMIT_S
        while not is_so():
            assert time.monotonic() < deadline, f"waited {LIMIT_S:g} s in vain for {what}; it says: {self.status}"
            await self.pilot.pause(0.01)

    async def until_names(self, *names: str) -> None:
        await self.until(lambda: self.names == list(names), f"{names}, not {self.names}")

    async def until_status(self, text: str) -> None:
        await self.until(lambda: text in self.status, repr(text))


def drive(
    hermes: Hermes,
    scenario: Callable[[Screen], Awaitable[None]],
    size: tuple[int, int] = LARGE,
    wanted: BrowseFilter | None = None,
) -> Browser:
    """Run a scenario on a screen and return the finished screen."""

    async def run() -> Browser:
        with SessionDB(hermes.database, read_only=True) as store:
            browser = Browser(SessionQueries(load_config(hermes.home), store), wanted or BrowseFilter())
            async with browser.run_test(size=size) as pilot:
                await scenario(Screen(browser, pilot))
            return browser

    return asyncio.run(run())
