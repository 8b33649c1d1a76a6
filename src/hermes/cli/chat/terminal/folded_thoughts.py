"""Thinking that a model writes into its answer: left out while the answer arrives."""

from __future__ import annotations

import re

NAMES = ("think", "thinking", "reasoning", "reasoning_scratchpad", "thought")
LONGEST_TAG = 24

_OPEN = re.compile(rf"<({'|'.join(NAMES)})>", re.IGNORECASE)


class FoldedThoughts:
    """Removes thoughts in tags from pieces of text.

    Only a tag at the beginning of a line counts; the tag in a sentence about it, or in code, is text.
    """

    def __init__(self) -> None:
        self._held = ""
        """The beginning of what may be a tag."""
        self._is_line_new = True
        self._is_in_code = False
        self._closing = ""
        self._is_after = False
        """Whether a thought has just ended: the empty lines after it belong to it."""
        self.count = 0
        """The number of thoughts so far."""

    @property
    def is_thinking(self) -> bool:
        """Whether the text that arrives is a thought."""
        return bool(self._closing)

    def add(self, piece: str) -> str:
        """Return the part of the text so far that is no thought."""
        text, self._held = self._held + piece, ""
        shown = ""
        while text:
            if self._closing:
                _, found, rest = _partition(text, self._closing)
                if not found:
                    self._held = text[-len(self._closing) :]
                    return shown
                self._closing, text, self._is_line_new, self._is_after = "", rest, True, True
                continue
            if self._is_after and not (text := text.lstrip("\n")):
                return shown
            self._is_after = False
            line, end, rest = text.partition("\n")
            if self._is_line_new and not self._is_in_code and line.lstrip().startswith("<"):
                bare = line.lstrip()
                if tag := _OPEN.match(bare):
                    self._closing, self.count = f"</{tag[1].lower()}>", self.count + 1
                    text = bare[tag.end() :] + end + rest
                    continue
                if not end and len(bare) < LONGEST_TAG and ">" not in bare:
                    self._held = text
                    return shown
            if self._is_line_new and not end and "```".startswith(line.strip()) and line.strip():
                self._held = text
                return shown
            if self._is_line_new and line.lstrip().startswith("```"):
                self._is_in_code = not self._is_in_code
            shown += line + end
            self._is_line_new = bool(end) or (self._is_line_new and not line.strip())
            text = rest
        return shown

    def finish(self) -> str:
        """Return the text that was held back, at the end of an answer."""
        held, self._held = self._held, ""
        return "" if self._closing else held


def _partition(text: str, mark: str) -> tuple[str, str, str]:
    found = re.search(re.escape(mark), text, re.IGNORECASE)
    return (text, "", "") if found is None else (text[: found.start()], found[0], text[found.end() :])
