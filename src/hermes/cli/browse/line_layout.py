"""The lines of a list of conversations: one line each, as wide as the list."""

from __future__ import annotations

from enum import Enum, auto
from typing import NamedTuple

from hermes.cli.browse.queries import Hit
from hermes.cli.display.snippet import split_hits
from hermes.cli.display.terminal import ELLIPSIS, clip, display_width, pad, printable
from hermes.cli.display.times import ago
from hermes.cli.display.wrapping import count_fitting, join_glyphs, split_glyphs
from hermes.cli.insights.figures import money
from hermes.cli.sessions.list_ import UNTITLED
from hermes.state.sessions.lists.browsing import ListedConversation, Order

PINNED, ARCHIVED = "★", "▽"
GAP = "  "
MESSAGES_WIDTH, WHEN_WIDTH, SOURCE_WIDTH = 5, 10, 8
COST_WIDTH, MODEL_WIDTH = 8, 18
LEAST_FOR_COST, LEAST_FOR_MODEL, LEAST_FOR_SOURCE = 64, 84, 100
"""In a narrower list, only the preview pane shows the cost, the model and the source."""


class LineStyle(Enum):
    """The style of a part of a line."""

    PLAIN = auto()
    QUIET = auto()
    NAME = auto()
    FOUND = auto()


class StyledText(NamedTuple):
    """A part of a line in one style."""

    text: str
    style: LineStyle


def format_header(width: int, order: Order) -> str:
    """Return the line above the list."""
    name, words = _widths(width)
    moment = "Started" if order is Order.STARTED else "Active"
    cells = [pad("Title", name), pad("Beginning", words), "Msgs".rjust(MESSAGES_WIDTH), pad(moment, WHEN_WIDTH)]
    if width >= LEAST_FOR_COST:
        cells.append("Cost".rjust(COST_WIDTH))
    if width >= LEAST_FOR_MODEL:
        cells.append(pad("Model", MODEL_WIDTH))
    if width >= LEAST_FOR_SOURCE:
        cells.append(pad("Source", SOURCE_WIDTH))
    return f"  {GAP.join(cells)}"


def format_line(item: ListedConversation | Hit, width: int, order: Order, now: float) -> list[StyledText]:
    """Return the line of a conversation: its title and its preview, or the place of a hit."""
    conversation = item.conversation if isinstance(item, Hit) else item
    name, words = _widths(width)
    flag = PINNED if conversation.is_pinned else ARCHIVED if conversation.is_archived else " "
    moment = conversation.started_at if order is Order.STARTED else conversation.last_active
    facts = [
        str(conversation.message_count).rjust(MESSAGES_WIDTH),
        pad(clip(ago(moment, now), WHEN_WIDTH), WHEN_WIDTH),
    ]
    if width >= LEAST_FOR_COST:
        facts.append(clip(format_cost(conversation), COST_WIDTH).rjust(COST_WIDTH))
    if width >= LEAST_FOR_MODEL:
        facts.append(pad(clip(format_model(conversation), MODEL_WIDTH), MODEL_WIDTH))
    if width >= LEAST_FOR_SOURCE:
        facts.append(pad(clip(printable(conversation.source), SOURCE_WIDTH), SOURCE_WIDTH))
    title = conversation.title or (conversation.preview if isinstance(item, Hit) else None) or UNTITLED
    middle = _format_snippet(item.snippet, words) if isinstance(item, Hit) else [_fit_text(conversation.preview, words)]
    return [
        StyledText(f"{flag} ", LineStyle.QUIET),
        _fit_text(title, name, LineStyle.NAME if conversation.title else LineStyle.QUIET),
        StyledText(GAP, LineStyle.PLAIN),
        *middle,
        StyledText(GAP + GAP.join(facts), LineStyle.QUIET),
    ]


def format_cost(conversation: ListedConversation) -> str:
    """Return the cost of a conversation; empty if it is unknown."""
    return "" if conversation.cost_usd is None else money(conversation.cost_usd)


def format_model(conversation: ListedConversation) -> str:
    """Return the model of a conversation without its vendor; empty if there is none."""
    return printable((conversation.model or "").rpartition("/")[2])


def conversation_name(conversation: ListedConversation) -> str:
    """Return the name of a conversation for messages to the user."""
    return printable(conversation.title or conversation.preview or conversation.id)


def _widths(width: int) -> tuple[int, int]:
    """The columns for titles and for previews."""
    fixed = 2 + 3 * len(GAP) + MESSAGES_WIDTH + WHEN_WIDTH
    for least, taken in (
        (LEAST_FOR_COST, COST_WIDTH),
        (LEAST_FOR_MODEL, MODEL_WIDTH),
        (LEAST_FOR_SOURCE, SOURCE_WIDTH),
    ):
        fixed += len(GAP) + taken if width >= least else 0
    elastic = max(16, width - fixed)
    name = elastic * 2 // 5
    return name, elastic - name


def _fit_text(text: str, width: int, style: LineStyle = LineStyle.PLAIN) -> StyledText:
    return StyledText(pad(clip(printable(text), width), width), style)


def _format_snippet(snippet: str, width: int) -> list[StyledText]:
    """Return the hit with some text before it, on one line."""
    runs = [printable(run) for run in split_hits(snippet)]
    behind = sum(display_width(run) for run in runs[1:])
    before = _clip_start(runs[0].lstrip(), max(width // 3, width - behind)) if len(runs) > 1 else runs[0]
    parts: list[StyledText] = []
    left = width
    for number, run in enumerate([before, *runs[1:]]):
        text = clip(run, left) if left > 1 else ""
        parts.append(StyledText(text, LineStyle.FOUND if number % 2 else LineStyle.PLAIN))
        left -= display_width(text)
        if text != run:
            break
    return [*parts, StyledText(" " * left, LineStyle.PLAIN)]


def _clip_start(text: str, width: int) -> str:
    """Return the end of a text that fits, from the start of a word if there is one."""
    if display_width(text) <= width:
        return text
    glyphs = split_glyphs(text)
    ending = join_glyphs(glyphs[len(glyphs) - count_fitting(glyphs[::-1], width - 1, least=0) :])
    return ELLIPSIS + (ending.partition(" ")[2] or ending)
