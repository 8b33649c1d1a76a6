"""A numbered list with a question, for those who have no screen but can answer."""

from __future__ import annotations

import time

import click

from hermes.cli.browse.catalogue import Catalogue
from hermes.cli.browse.look import name_of
from hermes.cli.table import Column, lay_out
from hermes.cli.terminal import talk, terminal_width
from hermes.cli.times import ago
from hermes.phrases import counted
from hermes.state.browsing import Conversation, Wanted

SHOWN = 20
LEAVING = ("", "q", "quit", "exit")


def choose(catalogue: Catalogue, wanted: Wanted) -> str | None:
    """The session that somebody names by its number, page by page; None if they leave."""
    page, shown = catalogue.page(wanted), 0
    total = catalogue.count(wanted)
    while page:
        for line in table_of(page[:SHOWN], terminal_width(), time.time()):
            talk(line)
        shown += len(page[:SHOWN])
        talk(f"{shown} of {counted(total, 'conversation')}")
        following = page[SHOWN:] or catalogue.page(wanted, page[-1])
        answer = _ask(len(page[:SHOWN]), has_more=bool(following))
        if answer is None:
            return None
        if answer > 0:
            return page[answer - 1].id
        page = following
    return None


def table_of(page: list[Conversation], width: int, now: float) -> list[str]:
    """The lines of a page."""
    numbers = Column("#", [str(number) for number in range(1, len(page) + 1)])
    names = Column("Title", [name_of(each) for each in page], is_elastic=True)
    moments = Column("Last Active", [ago(each.last_active, now) for each in page])
    return lay_out([numbers, names, moments, Column("Src", [each.source for each in page])], width)


def _ask(count: int, *, has_more: bool) -> int | None:
    """A number, 0 for more, None to leave; anything else is asked again."""
    more = ", m for more" if has_more else ""
    while True:
        try:
            said = click.prompt(
                f"Resume which [1-{count}]{more}, Enter to leave", default="", show_default=False, err=True
            )
        except click.Abort:  # the end of what there is to read
            return None
        answer = str(said).strip().lower()
        if answer in LEAVING:
            return None
        if has_more and answer == "m":
            return 0
        if answer.isdecimal() and 1 <= int(answer) <= count:
            return int(answer)
        talk(f"{answer} is none of them.")
