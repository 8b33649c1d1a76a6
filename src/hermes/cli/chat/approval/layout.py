"""What the user sees of a request: what would be done, where, why it is dangerous, and what each key allows."""

from __future__ import annotations

import sys
from dataclasses import dataclass

from hermes.agent.safety.approval import Answer, ApprovalRequest, Decision
from hermes.agent.safety.visible_text import fold_blanks
from hermes.cli.chat.terminal.style import bold, danger, has_style
from hermes.cli.display.terminal import clip, display_width, graphemes, printable, printable_lines
from hermes.cli.display.wrapping import wrap_line

INDENT = "  "
MIN_COLUMNS = 8
_MAX_ROWS = 3
"""How many rows a note or a choice takes at most."""


@dataclass(frozen=True, slots=True)
class Choice:
    """A key, what it means, and the answer that it gives; None if the user is asked for a text first."""

    key: str
    label: str
    answer: Answer | None


def choices_for(request: ApprovalRequest) -> list[Choice]:
    """Return the answers to a request: a permission that it cannot get is not offered."""
    choices = [Choice("y", "yes, once", Answer(Decision.ONCE))]
    scope = request.longest_scope
    if scope in (Decision.SESSION, Decision.ALWAYS):
        session = "yes, for this session"
        choices.append(Choice("s", f"{session}: {request.permit}", Answer(Decision.SESSION)))
        if request.kind_permit is not None:
            for_kind = Answer(Decision.SESSION, is_for_kind=True)
            choices.append(Choice("p", f"{session}: {request.kind_permit}", for_kind))
    if scope is Decision.ALWAYS:
        choices.append(Choice("a", f"yes, always: {request.permit}", Answer(Decision.ALWAYS)))
    return [*choices, Choice("n", "no", Answer(Decision.DENY)), Choice("i", "no, and do this instead", None)]


def heading(request: ApprovalRequest, width: int) -> str:
    """Return the first line: who asks to do what."""
    verb, _, what = request.summary.partition(" ")
    is_shown_below = request.detail.partition("\n")[0] in (what, request.subject)
    text = f"Hermes asks to {verb if is_shown_below else request.summary}:"
    shown = clip(printable(text), max(MIN_COLUMNS, width - 1))
    return danger(clip(f"Dangerous: {shown}", max(MIN_COLUMNS, width - 1))) if request.risk == "high" else bold(shown)


def request_rows(request: ApprovalRequest, width: int) -> list[str]:
    """Return the rows of a request; what makes it dangerous, and the difference of a file, have colours."""
    width = max(MIN_COLUMNS, width - len(INDENT) - 1)
    about = request.about.removesuffix(request.findings) if request.findings else request.about
    rows = split_rows(fold_blanks(about), width)
    if request.diff is not None:
        from hermes.cli.display.diff_rows import diff_rows

        rows = [*rows[:-1], *diff_rows(request.diff, width, has_colour=has_style(sys.stderr))]
    findings = [row for line in request.findings.split("\n")[1:] for row in _wrap_finding(line, width)]
    return [f"{INDENT}{row}".rstrip() for row in [*rows, *(danger(row) if row else "" for row in findings)]]


def _wrap_finding(line: str, width: int) -> list[str]:
    """Break a finding between words; a word that is longer than a row is broken, so that nothing is cut off."""
    return wrap_line(printable(line), width, margin=2, breaks_words=True)


def choice_rows(request: ApprovalRequest, choices: list[Choice], width: int, *, is_paged: bool) -> list[str]:
    """Return the rows between a request and the question; if it was shown in pages, they begin with its summary."""
    columns = max(MIN_COLUMNS, width - 1)
    rows = [_summary(request, columns)] if is_paged else [""]
    if request.note:
        rows += _limit(wrap_line(printable(f"Note: {request.note}"), columns, breaks_words=True))
    for each in choices:
        label = printable(f"{INDENT}[{each.key}] {each.label}")
        rows += _limit(wrap_line(label, columns, margin=6, breaks_words=True))
    return rows


def split_rows(text: str, width: int) -> list[str]:
    """Split a text into the rows that it takes on the screen; nothing is left out."""
    rows: list[str] = []
    for line in printable_lines(text).split("\n"):
        row, columns = "", 0
        for each in graphemes(line):
            taken = display_width(each)
            if row and columns + taken > width:
                rows.append(row)
                row, columns = "", 0
            row, columns = row + each, columns + taken
        rows.append(row)
    return rows


def _summary(request: ApprovalRequest, columns: int) -> str:
    count = request.subject.count("\n") + 1
    size = f" ({'1 line' if count == 1 else f'{count} lines'}, {request.risk} risk)"
    text = clip(printable(request.summary), max(MIN_COLUMNS, columns - len(size))) + size
    return danger(text) if request.risk == "high" else bold(text)


def _limit(rows: list[str]) -> list[str]:
    return rows if len(rows) <= _MAX_ROWS else [*rows[: _MAX_ROWS - 1], f"{INDENT}..."]
