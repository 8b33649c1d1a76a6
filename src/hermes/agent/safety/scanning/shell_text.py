"""Reads the text of a shell command as stages of pipelines, without running or expanding anything.

It is no complete parser: it recognizes enough to know which programs run, what feeds them, and what is inside of
quotes and substitutions. Its time is proportional to the length of the text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import islice

MAX_STAGES = 4_000
"""No person reads a longer command; the rest of it is not read."""

COMPUTED = "\0"
"""Stands in a word for a part that only the shell knows: a variable or a substitution."""
ANY, ONE = "\1", "\2"
"""Stand in a word for a part of a pattern of names: any characters, or one."""

_PIECE = re.compile(
    r"""(?P<plain>[^\s\\'"`$<>|&;(){}*?\[]+)
      | (?P<blank>[ \t\r\f\v]+)
      | (?P<newline>\n)
      | (?P<escaped>\\(?:\n|.)?)
      | '(?P<single>[^']*)(?:'|\Z)
      | \$'(?P<ansi>(?:[^'\\]|\\.)*+)(?:'|\Z)
      | (?P<double>\$?")
      | (?P<backtick>`)
      | (?P<opened>\$\(|<\(|>\()
      | (?P<variable>\$(?:\{[^}]{0,200}\}?|\w+|[@*\#?$!-])?)
      | (?P<here><<<?-?)
      | (?P<redirect>[<>]\|?&?)
      | (?P<pipe>\|&?(?!\|))
      | (?P<separator>\|\||&&|;+&?|&)
      | (?P<group>[(){}])
      | (?P<pattern>[*?]|\[[^]\s"']{1,40}\])
      | (?P<bracket>\[)""",
    re.VERBOSE | re.DOTALL,
)
_INSIDE_DOUBLE = re.compile(
    r'(?P<text>[^"\\`$]+)|\\(?P<escaped>.?)|(?P<opened>\$\()|(?P<rest>[`$])|(?P<end>")', re.DOTALL
)
_ESCAPED_INSIDE_DOUBLE = '"\\$`\n'
"""Before another character a backslash stays."""
_PAREN = re.compile(r"""'[^']*(?:'|\Z)|"(?:[^"\\]|\\.)*+(?:"|\Z)|\\.|[()]""", re.DOTALL)
_WORDS_IN_BRACES = re.compile(r"([\w./:=+-]{0,80}(?:,[\w./:=+-]{0,80}){1,40})\}(?=[\s;|&)\]]|\Z)")
_WORD_PART, _BRACE, _SEVERAL, _QUOTE = map(re.compile, (r"\S{0,100}", r"[{}]", r",|\.\.", r"[\"'\\]"))
_MAX_BRACES = 8
_MANY_BRACES = re.compile(r"\{{8,}")
_CAN_RUN = re.compile(r"[|`<>;&\n]|\$\(")
_OPENERS = frozenset({"while", "until", "for", "if", "case", "select"})
_CLOSERS = frozenset({"done", "fi", "esac"})
ENDS = _CLOSERS | {"}"}
"""Words at the end of several commands, before redirections of all of them."""


@dataclass(slots=True)
class Stage:
    """One command of a pipeline."""

    is_fed: bool
    """Whether the output of another command is its input."""
    words: list[str] = field(default_factory=list)
    """Its words without quotes and backslashes."""
    inner: list[str] = field(default_factory=list)
    """The commands whose output is a part of it: `$(...)`, backticks and `<(...)`."""
    is_from_process: bool = False
    """Whether one of them is `<(...)`, which is read like a file."""
    fed: list[str] = field(default_factory=list)
    """The commands that get its output through `>(...)`."""
    written: list[str] = field(default_factory=list)
    """The files that its output is redirected to."""


@dataclass(slots=True)
class ShellText:
    """The stages of a command and the quoted texts in it."""

    stages: list[Stage]
    quoted: list[str]
    is_complete: bool = True


def read_shell_text(text: str, *, is_fed: bool = False) -> ShellText:
    """Read a command; with `is_fed`, its input is the output of another command."""
    return _Reader(text, is_fed).read()


class _Reader:
    """Reads one text from its beginning to its end."""

    def __init__(self, text: str, is_fed: bool) -> None:
        self._text = text
        self._at = 0
        self._groups = [(is_fed, "")]
        """Whether the open groups have an input, and the words that opened them."""
        self._word: list[str] | None = None
        self._is_target = False
        self._stage = Stage(is_fed)
        self._stages: list[Stage] = []
        self._quoted: list[str] = []

    def read(self) -> ShellText:
        while self._at < len(self._text) and len(self._stages) < MAX_STAGES:
            found = _PIECE.match(self._text, self._at)
            if found is None:
                self._add(self._text[self._at])
                self._at += 1
                continue
            self._at = found.end()
            self._take(str(found.lastgroup), found)
        self._end_stage(is_fed=False)
        return ShellText(self._stages, self._quoted, is_complete=self._at >= len(self._text))

    def _take(self, kind: str, found: re.Match[str]) -> None:
        match kind:
            case "plain" if self._word is None and found[0].startswith("#"):
                self._read_comment(found.start())
            case "plain":
                self._add(found[0])
            case "blank":
                self._end_word()
            case "escaped" if found[0].endswith("\n"):
                pass  # the line continues
            case "escaped":
                self._add(found[0][1:])
            case "single":
                self._quote(found["single"])
            case "ansi" | "variable":
                self._add(COMPUTED)
            case "pattern":
                self._add(ANY if found[0] == "*" else ONE)
            case "bracket":
                self._add(found[0])
            case "double":
                self._read_double()
            case "backtick":
                self._substitute(self._up_to_backtick(), "$(")
            case "opened":
                self._substitute(self._up_to_paren(), found[0])
            case "here":
                self._end_word_before_redirect(found.start())
            case "redirect":
                self._end_word_before_redirect(found.start())
                self._is_target = found[0] != "<"
            case "pipe":
                self._end_stage(True)
            case "newline" if self._word is None and not self._stage.words and not self._stage.inner:
                pass  # after `|` the next line continues the pipeline
            case "separator" | "newline":
                self._end_stage(self._groups[-1][0])
            case _:
                self._read_group(found[0])

    def _add(self, text: str) -> None:
        self._word = [] if self._word is None else self._word
        self._word.append(text)

    def _quote(self, text: str) -> None:
        self._add(text)
        if "$" in text or _CAN_RUN.search(text):
            self._quoted.append(text)

    def _keep_quoted(self, text: str) -> None:
        if _CAN_RUN.search(text):
            self._quoted.append(text)

    def _read_comment(self, start: int) -> None:
        """Skip a comment; after `|` the next line still continues the pipeline."""
        end = self._text.find("\n", start)
        self._at = len(self._text) if end < 0 else end
        self._keep_quoted(self._text[start + 1 : self._at])  # in case that a shell reads it as a command

    def _read_double(self) -> None:
        """Read up to the closing quote; substitutions work in there too."""
        parts, quoted = list[str](), list[str]()
        while self._at < len(self._text):
            found = _INSIDE_DOUBLE.match(self._text, self._at)
            assert found is not None
            self._at = found.end()
            if found["end"]:
                break
            start = found.start()
            if found["opened"]:
                self._stage.inner.append(self._up_to_paren())
                parts.append(COMPUTED)
            elif found["rest"] == "`":
                self._stage.inner.append(self._up_to_backtick())
                parts.append(COMPUTED)
            else:
                parts.append(found["text"] or found["escaped"] or (COMPUTED if found["rest"] else ""))
            is_escaped = bool(found["escaped"]) and found["escaped"] in _ESCAPED_INSIDE_DOUBLE
            quoted.append(found["escaped"] if is_escaped else self._text[start : self._at])
        self._add("".join(parts))
        self._keep_quoted("".join(quoted))  # as another shell reads it

    def _substitute(self, inner: str, opening: str) -> None:
        if opening == ">(":
            self._stage.fed.append(inner)
        else:
            self._stage.inner.append(inner)
            self._stage.is_from_process |= opening == "<("
        self._add(COMPUTED)

    def _up_to_paren(self) -> str:
        start, depth = self._at, 1
        for found in _PAREN.finditer(self._text, start):
            depth += {"(": 1, ")": -1}.get(found[0], 0)
            if not depth:
                self._at = found.end()
                return self._text[start : found.start()]
        self._at = len(self._text)
        return self._text[start:]

    def _up_to_backtick(self) -> str:
        start = self._at
        end = self._text.find("`", start)
        self._at = len(self._text) if end < 0 else end + 1
        return self._text[start:] if end < 0 else self._text[start:end]

    def _read_group(self, sign: str) -> None:
        if sign == "(" and self._word == ["="]:  # zsh
            self._word = None
            self._substitute(self._up_to_paren(), "<(")
            return
        is_at_start = self._word is None and not self._stage.words
        is_alone = self._at >= len(self._text) or self._text[self._at].isspace()
        if is_at_start and (sign == "(" or (sign == "{" and is_alone)):
            self._groups.append((self._stage.is_fed, sign))
        elif sign == ")" and self._groups[-1][1] == "case":
            self._end_stage(self._groups[-1][0])  # it ends a pattern
        elif sign == "{":
            self._read_braces()
        elif sign == "}" and not is_at_start:
            self._add(sign)
        else:
            self._end_stage(self._close_group())

    def _read_braces(self) -> None:
        """Read `{a,b}`, which is several words, or one part of a word that only the shell knows."""
        found = _WORDS_IN_BRACES.match(self._text, self._at) if self._word is None else None
        if found is None:
            self._read_part_in_braces()
            return
        self._at = found.end()
        for word in filter(None, found[1].split(",")):
            self._add(word)
            self._end_word()

    def _read_part_in_braces(self) -> None:
        """Read braces in a word; without a comma or two dots in them, they are what they are."""
        if run := _MANY_BRACES.match(self._text, self._at):
            self._at = run.end()
            self._add(COMPUTED)
            return
        found = _WORD_PART.match(self._text, self._at)
        part = found[0] if found else ""
        end = _end_of_braces(part)
        # A quote may hide a blank and the brace behind it.
        is_hidden = not end and (_QUOTE.search(part) is not None or part.count("{") >= _MAX_BRACES)
        is_several = is_hidden or _SEVERAL.search(part, 0, end) is not None
        self._add((ANY if end else COMPUTED) if is_several else "{")
        self._at += end if is_several else 0

    def _close_group(self) -> bool:
        if len(self._groups) > 1:
            self._groups.pop()
        return self._groups[-1][0]

    def _end_word(self) -> None:
        if self._word is None:
            return
        word, self._word = "".join(self._word), None
        if self._is_target:
            self._stage.written.append(word)
            self._is_target = False
            return
        if not self._stage.words and word in _OPENERS:
            self._groups.append((self._stage.is_fed, word))
        elif not self._stage.words and word in _CLOSERS:
            self._close_group()
        self._stage.words.append(word)

    def _end_word_before_redirect(self, start: int) -> None:
        """End a word; a number directly before a redirection belongs to it: `2> errors`."""
        if self._word is not None and "".join(self._word).isdecimal():
            self._word = None
        self._end_word()
        if not self._stage.words and self._text[max(0, start - 9) : start].rstrip().endswith((")", "}")):
            self._stage.words.append("}")  # it is the redirection of a group

    def _end_stage(self, is_fed: bool) -> None:
        self._end_word()
        self._is_target = False
        stage = self._stage
        if stage.words or stage.inner or stage.fed:
            self._stages.append(stage)
        self._stage = Stage(is_fed)


def _end_of_braces(text: str) -> int:
    """Return where the braces end that a text is in; 0 if they do not, or have too many others in them."""
    depth = 1
    for found in islice(_BRACE.finditer(text), _MAX_BRACES):
        depth += 1 if found[0] == "{" else -1
        if not depth:
            return found.end()
    return 0
