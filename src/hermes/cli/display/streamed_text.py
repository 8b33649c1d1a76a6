"""Text that comes in pieces and is broken between words, as far as it goes; code and tables are left as they are."""

from __future__ import annotations

from hermes.cli.display.terminal import display_width, graphemes

FENCE = "```"
AS_IT_IS = (FENCE, "|")
"""How lines begin that mean something by their breaks."""


class StreamedText:
    """Makes of pieces what can be written at once: a word is held back until it is known where it ends."""

    def __init__(self, width: int, column: int = 0) -> None:
        self._width = max(1, width)
        self._column = column
        self._blanks = ""
        self._word = ""
        self._is_line_new = True
        self._is_line_kept = False
        """Whether this line is left as it is."""
        self._is_in_code = False
        self._is_in_word = False
        """Whether the beginning of this word, longer than a line, has been written: the terminal breaks it itself."""

    def add(self, piece: str) -> str:
        """What can be written now that this piece has come; the end of a line brings everything that was held back."""
        return "".join(map(self._take, graphemes(piece)))

    def _take(self, each: str) -> str:
        if each in ("\n", "\r\n"):
            return self._flush() + self._begin_line()
        if each.isspace():
            done = self._flush()
            self._blanks += each
            self._is_in_word = False
            return done
        # Between characters that fill two columns, as in Chinese, a line may be broken anywhere.
        done = self._flush() if display_width(each) > 1 else ""
        self._word += each
        if display_width(each) > 1:
            done += self._flush()
        elif display_width(self._word) >= self._width:
            done += self._flush()
            self._is_in_word = True
        return done

    def _flush(self) -> str:
        word, blanks = self._word, self._blanks
        if not word:
            return ""
        self._word = self._blanks = ""
        if self._is_line_new:
            self._is_line_new = False
            self._is_line_kept = self._is_in_code or word.startswith(AS_IT_IS)
            if word.startswith(FENCE):
                self._is_in_code = not self._is_in_code
        wanted = display_width(blanks.expandtabs(4)) + display_width(word)
        if self._is_in_word:
            self._column = (self._column + wanted) % self._width
            return word
        if not self._is_line_kept and self._column > 0 and self._column + wanted > self._width:
            self._column = display_width(word)
            return f"\n{word}"
        self._column += wanted
        return f"{blanks}{word}"

    def _begin_line(self) -> str:
        self._column, self._blanks = 0, ""
        self._is_line_new, self._is_line_kept, self._is_in_word = True, False, False
        return "\n"
