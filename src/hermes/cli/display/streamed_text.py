"""Text that arrives in pieces, broken between words; code and tables keep their lines."""

from __future__ import annotations

from hermes.cli.display.wrapping import Glyph, join_glyphs, split_glyphs

FENCE = "```"
KEPT_LINES = (FENCE, "|")
"""The beginnings of lines that are never broken."""


class StreamedText:
    """Turns pieces of text into text to write; a word is held back until its end has arrived."""

    def __init__(self, width: int, column: int = 0) -> None:
        self._width = max(1, width)
        self._column = column
        self._blanks = ""
        self._word: list[Glyph] = []
        self._is_line_new = True
        self._is_line_kept = False
        """Whether this line is never broken."""
        self._is_in_code = False
        self._is_in_word = False
        """Whether the beginning of a word that is longer than a line has been written: the terminal breaks it."""

    def add(self, piece: str) -> str:
        """Return the text to write now; the end of a line brings everything that was held back."""
        return "".join(map(self._add_glyph, split_glyphs(piece)))

    def _add_glyph(self, glyph: Glyph) -> str:
        if glyph.text in ("\n", "\r\n"):
            return self._flush() + self._begin_line()
        if glyph.text.isspace():
            done = self._flush()
            self._blanks += glyph.text
            self._is_in_word = False
            return done
        # Between characters of two columns, as in Chinese, a line may be broken anywhere.
        done = self._flush() if glyph.width > 1 else ""
        self._word.append(glyph)
        if glyph.width > 1:
            done += self._flush()
        elif sum(each.width for each in self._word) >= self._width:
            done += self._flush()
            self._is_in_word = True
        return done

    def _flush(self) -> str:
        if not self._word:
            return ""
        word, blanks, columns = join_glyphs(self._word), self._blanks, sum(each.width for each in self._word)
        self._word, self._blanks = [], ""
        if self._is_line_new:
            self._is_line_new = False
            self._is_line_kept = self._is_in_code or word.startswith(KEPT_LINES)
            if word.startswith(FENCE):
                self._is_in_code = not self._is_in_code
        wanted = len(blanks.expandtabs(4)) + columns
        if self._is_in_word:
            self._column = (self._column + wanted) % self._width
            return word
        if not self._is_line_kept and self._column > 0 and self._column + wanted > self._width:
            self._column = columns
            return f"\n{word}"
        self._column += wanted
        return f"{blanks}{word}"

    def _begin_line(self) -> str:
        self._column, self._blanks = 0, ""
        self._is_line_new, self._is_line_kept, self._is_in_word = True, False, False
        return "\n"
