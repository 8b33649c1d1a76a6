"""How conversations look in a list: one line each, of exactly the width there is."""

from __future__ import annotations

import re
from collections.abc import Sequence
from enum import Enum, auto
from typing import NamedTuple

from hermes.cli.browse.catalogue import Hit
from hermes.cli.listing import UNTITLED
from hermes.cli.terminal import ELLIPSIS, clip, graphemes, pad, printable, width_of
from hermes.cli.times import ago
from hermes.state.browsing import Conversation, Order

PINNED, ARCHIVED = "★", "▽"
GAP = "  "
MESSAGES_WIDTH, WHEN_WIDTH, SOURCE_WIDTH = 5, 10, 8
LEAST_FOR_SOURCE = 76
"""With less room than this, where a conversation comes from is left to the pane beside it."""

_HIT = re.compile(r">>>((?:(?!>>>|<<<).)+)<<<", re.DOTALL)
_CUTS = re.compile(r"\A\.\.\.|\.\.\.\Z")


class Tone(Enum):
    """What a part of a line is."""

    PLAIN = auto()
    QUIET = auto()
    NAME = auto()
    FOUND = auto()


class Part(NamedTuple):
    """A part of a line in one tone."""

    text: str
    tone: Tone


def header_of(width: int, order: Order) -> str:
    """The line above the list."""
    name, words = _widths(width)
    moment = "Started" if order is Order.STARTED else "Active"
    cells = [pad("Title", name), pad("Beginning", words), "Msgs".rjust(MESSAGES_WIDTH), pad(moment, WHEN_WIDTH)]
    if width >= LEAST_FOR_SOURCE:
        cells.append(pad("Source", SOURCE_WIDTH))
    return f"  {GAP.join(cells)}"


def line_of(item: Conversation | Hit, width: int, order: Order, now: float) -> list[Part]:
    """A conversation by its title and its beginning, or by what was said in it."""
    conversation = item.conversation if isinstance(item, Hit) else item
    name, words = _widths(width)
    flag = PINNED if conversation.is_pinned else ARCHIVED if conversation.is_archived else " "
    moment = conversation.started_at if order is Order.STARTED else conversation.last_active
    facts = [
        str(conversation.message_count).rjust(MESSAGES_WIDTH),
        pad(clip(ago(moment, now), WHEN_WIDTH), WHEN_WIDTH),
    ]
    if width >= LEAST_FOR_SOURCE:
        facts.append(pad(clip(printable(conversation.source), SOURCE_WIDTH), SOURCE_WIDTH))
    title = conversation.title or (conversation.preview if isinstance(item, Hit) else None) or UNTITLED
    middle = _snippet(item.snippet, words) if isinstance(item, Hit) else [_fitted(conversation.preview, words)]
    return [
        Part(f"{flag} ", Tone.QUIET),
        _fitted(title, name, Tone.NAME if conversation.title else Tone.QUIET),
        Part(GAP, Tone.PLAIN),
        *middle,
        Part(GAP + GAP.join(facts), Tone.QUIET),
    ]


def name_of(conversation: Conversation) -> str:
    """A conversation as it is spoken of."""
    return printable(conversation.title or conversation.preview or conversation.id)


def _widths(width: int) -> tuple[int, int]:
    """The columns for titles and for beginnings."""
    fixed = 2 + 3 * len(GAP) + MESSAGES_WIDTH + WHEN_WIDTH
    if width >= LEAST_FOR_SOURCE:
        fixed += len(GAP) + SOURCE_WIDTH
    elastic = max(16, width - fixed)
    name = elastic * 2 // 5
    return name, elastic - name


def _fitted(text: str, width: int, tone: Tone = Tone.PLAIN) -> Part:
    return Part(pad(clip(printable(text), width), width), tone)


def _snippet(snippet: str, width: int) -> list[Part]:
    """What was found with a little of what comes before it, on one line."""
    runs = [printable(run) for run in _HIT.split(_CUTS.sub(ELLIPSIS, snippet))]
    behind = sum(width_of(run) for run in runs[1:])
    before = _ending(runs[0].lstrip(), max(width // 3, width - behind)) if len(runs) > 1 else runs[0]
    parts: list[Part] = []
    room = width
    for number, run in enumerate([before, *runs[1:]]):
        text = clip(run, room) if room > 1 else ""
        parts.append(Part(text, Tone.FOUND if number % 2 else Tone.PLAIN))
        room -= width_of(text)
        if text != run:
            break
    return [*parts, Part(" " * room, Tone.PLAIN)]


def _ending(text: str, width: int) -> str:
    """The end of a text that fits."""
    if width_of(text) <= width:
        return text
    kept: Sequence[str] = []
    room = width - 1
    for grapheme in reversed(list(graphemes(text))):
        room -= width_of(grapheme)
        if room < 0:
            break
        kept = [grapheme, *kept]
    ending = "".join(kept)
    # From the beginning of a word, if there is one.
    return ELLIPSIS + (ending.partition(" ")[2] or ending)
