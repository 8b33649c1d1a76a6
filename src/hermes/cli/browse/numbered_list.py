"""A numbered list with a prompt, for terminals without a full screen."""

from __future__ import annotations

import time

import click

from hermes.cli.browse.line_layout import conversation_name
from hermes.cli.browse.queries import SessionQueries
from hermes.cli.display.table import Column, format_table
from hermes.cli.display.terminal import terminal_width, write_stderr
from hermes.cli.display.times import ago
from hermes.phrases import plural
from hermes.state.sessions.lists.browsing import BrowseFilter, ListedConversation

SHOWN = 20
LEAVING = ("", "q", "quit", "exit")


def choose_by_number(queries: SessionQueries, wanted: BrowseFilter) -> str | None:
    """Show conversations page by page and return the one that the user chooses by number; None if they leave."""
    page, shown = queries.page(wanted), 0
    total = queries.count(wanted)
    while page:
        for line in format_numbered(page[:SHOWN], terminal_width(), time.time()):
            write_stderr(line)
        shown += len(page[:SHOWN])
        write_stderr(f"{shown} of {plural(total, 'conversation')}")
        following = page[SHOWN:] or queries.page(wanted, page[-1])
        answer = _ask(len(page[:SHOWN]), has_more=bool(following))
        if answer is None:
            return None
        if answer > 0:
            return page[answer - 1].id
        page = following
    return None


def format_numbered(page: list[ListedConversation], width: int, now: float) -> list[str]:
    """Format a page as a numbered table."""
    numbers = Column("#", [str(number) for number in range(1, len(page) + 1)])
    names = Column("Title", [conversation_name(each) for each in page], is_elastic=True)
    moments = Column("Last Active", [ago(each.last_active, now) for each in page])
    return format_table([numbers, names, moments, Column("Src", [each.source for each in page])], width)


def _ask(count: int, *, has_more: bool) -> int | None:
    """Ask for a number until the user gives one. Return 0 for the next page and None to leave."""
    more = ", m for more" if has_more else ""
    while True:
        try:
            reply = click.prompt(
                f"Resume which [1-{count}]{more}, Enter to leave", default="", show_default=False, err=True
            )
        except click.Abort:  # the end of stdin
            return None
        answer = str(reply).strip().lower()
        if answer in LEAVING:
            return None
        if has_more and answer == "m":
            return 0
        if answer.isdecimal() and 1 <= int(answer) <= count:
            return int(answer)
        write_stderr("Type a number from the list.")
