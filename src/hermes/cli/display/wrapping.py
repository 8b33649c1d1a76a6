"""Lines of text that fit, whatever its script."""

from __future__ import annotations

from hermes.cli.display.terminal import display_width, graphemes, printable


def wrap_text(text: str, width: int) -> list[str]:
    """A text in printable lines of at most `width` columns, broken between words where there are some."""
    lines: list[str] = []
    for line in text.splitlines() or [""]:
        lines += _wrapped_line(printable(line.expandtabs(4)).rstrip(), max(1, width))
    return lines


def _wrapped_line(line: str, width: int) -> list[str]:
    lines: list[str] = []
    while display_width(line) > width:
        head = _fitting(line, width)
        blank = head.rfind(" ")
        if line[len(head)] != " " and blank > len(head) // 2:
            head = head[:blank]
        lines.append(head.rstrip())
        line = line[len(head) :].lstrip(" ")
    return [*lines, line]


def _fitting(line: str, width: int) -> str:
    """The beginning that fits; at least one character, or there would be no end."""
    head, room = "", width
    for grapheme in graphemes(line):
        room -= display_width(grapheme)
        if room < 0 and head:
            break
        head += grapheme
    return head
