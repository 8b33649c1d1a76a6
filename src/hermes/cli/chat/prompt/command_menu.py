"""The menu below the prompt: the commands and names that fit what was typed."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from prompt_toolkit.application import get_app
from prompt_toolkit.completion import Completion
from prompt_toolkit.filters import has_completions, is_done
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.layout import ConditionalContainer, FormattedTextControl, Window

from hermes.cli.display.terminal import clip, display_width

ROWS = 8
"""How many entries are shown at once."""
_GAP = "  "


def command_menu() -> ConditionalContainer:
    """Return the menu of the current completions."""
    window = Window(FormattedTextControl(_current_rows), dont_extend_height=True)
    return ConditionalContainer(window, filter=has_completions & ~is_done)


def match_words(typed: str, words: Iterable[str]) -> list[str]:
    """Return the words that fit what was typed, ignoring case.

    Words that begin with it come first, then those that contain it, then those that have its letters in that order.
    """
    wanted = typed.casefold()
    ranked: list[list[str]] = [[], [], []]
    for word in words:
        folded = word.casefold()
        if folded.startswith(wanted):
            ranked[0].append(word)
        elif wanted in folded:
            ranked[1].append(word)
        elif _has_letters(folded, wanted):
            ranked[2].append(word)
    return [word for rank in ranked for word in rank]


def menu_rows(entries: Sequence[Completion], selected: int | None, columns: int) -> list[tuple[str, bool]]:
    """Return the visible rows of a menu, and whether each is the selected one."""
    first = min(max(0, (selected or 0) - ROWS // 2), max(0, len(entries) - ROWS))
    shown = entries[first : first + ROWS]
    width = min(max((display_width(each.display_text) for each in shown), default=0), columns // 2)
    rows = []
    for place, each in enumerate(shown, first):
        name = clip(each.display_text, width)
        text = f"{_GAP}{name}{' ' * (width - display_width(name))}{_GAP}{each.display_meta_text}".rstrip()
        rows.append((clip(text, columns - 1), place == selected))
    return rows


def _current_rows() -> StyleAndTextTuples:
    app = get_app()
    state = app.current_buffer.complete_state
    if state is None:
        return []
    rows = menu_rows(state.completions, state.complete_index, app.output.get_size().columns)
    fragments: StyleAndTextTuples = []
    for place, (text, is_selected) in enumerate(rows):
        style = "class:menu.selected" if is_selected else "class:menu"
        fragments.append((style, text if place == len(rows) - 1 else f"{text}\n"))
    return fragments


def _has_letters(word: str, letters: str) -> bool:
    """Whether a word has these letters in this order."""
    rest = iter(word)
    return all(letter in rest for letter in letters)
