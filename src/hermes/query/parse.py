"""Parse a typed query into a tree. No input is an error: nonsense is repaired, and each repair is reported.

    words       all must match            "a phrase"  words in this order   (a OR b)  grouping
    prefix*     words that start with it  *part*      inside words          a NOT b, -b  without b

NOT binds tightest, then AND (implied between plain words), then OR. Everything else is literal text.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from hermes.query import analyze
from hermes.query.tree import And, Leaf, Node, Not, Or, Part, Words

MAX_CHARACTERS = 100_000
MAX_LEAVES = 128
MAX_DEPTH = 8
MAX_WORDS = 64
"""How many words of one phrase are searched."""

OPERATORS = ("AND", "OR", "NOT")
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»"}
_space = re.compile(r"\s")


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query."""

    tree: Node | None
    """None if there is nothing to search for."""
    repairs: tuple[str, ...] = ()
    """Messages for the user: which parts of the input were changed, and how."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """word, phrase, AND, OR, NOT, ( or )"""
    text: str = ""
    prefix: bool = False


def parse(typed: str) -> Query:
    """Parse a query; never raise."""
    repairs: list[str] = []
    if len(typed) > MAX_CHARACTERS:
        repairs.append(f"only the first {MAX_CHARACTERS} characters are used")
    typed = analyze.replace_unindexable(typed[:MAX_CHARACTERS])
    tokens = _drop_dangling(_scan(typed, repairs), repairs)
    parser = _Parser(tokens, repairs)
    tree = parser.disjunction()
    if tree is None and typed.strip():
        # Only punctuation: search for the punctuation itself.
        repairs.clear()
        literal = analyze.fold_to_line(typed)
        words = tuple(analyze.words(literal))[:MAX_WORDS]
        tree = _words_leaf(words, literal, prefix=False) if words else (Part(literal) if literal else None)
    return Query(tree, tuple(dict.fromkeys(repairs)))


def _scan(typed: str, repairs: list[str]) -> list[_Token]:
    tokens: list[_Token] = []
    open_groups = too_deep = at = 0
    while at < len(typed):
        character = typed[at]
        if _space.match(character):
            at += 1
        elif character == "(" and open_groups == MAX_DEPTH:
            repairs.append(f"parentheses deeper than {MAX_DEPTH} are ignored")
            too_deep += 1
            at += 1
        elif character == "(":
            tokens.append(_Token("("))
            open_groups += 1
            at += 1
        elif character == ")" and too_deep:
            too_deep -= 1
            at += 1
        elif character == ")" and open_groups:
            tokens.append(_Token(")"))
            open_groups -= 1
            at += 1
        elif (
            character == "-" and at + 1 < len(typed) and not _space.match(typed[at + 1]) and typed[at + 1] not in "->)"
        ):
            tokens.append(_Token("NOT"))
            at += 1
        elif character in _QUOTES and (end := typed.find(_QUOTES[character], at + 1)) > 0:
            prefix = typed[end + 1 : end + 2] == "*"
            tokens.append(_Token("phrase", typed[at + 1 : end], prefix))
            at = end + 1 + prefix
        else:
            if character in _QUOTES:
                repairs.append(f"the quotation mark {character} is not closed; its words are searched one by one")
                at += 1
                continue
            end = _word_end(typed, at, open_groups)
            tokens.append(_word(typed[at:end]))
            at = end
    if open_groups:
        repairs.append("a parenthesis is not closed")
    return tokens


def _word_end(typed: str, start: int, open_groups: int) -> int:
    """Return where a word ends: at a space, or at a parenthesis that closes a group outside the word."""
    own = 0
    for at in range(start, len(typed)):
        character = typed[at]
        if _space.match(character):
            return at
        if character == "(":
            own += 1
        elif character == ")":
            if own:
                own -= 1
            elif open_groups:
                return at
        elif character == '"' and at > start and typed.find('"', at + 1) > 0 and typed[at - 1] in "(:=":
            return at
    return len(typed)


def _word(text: str) -> _Token:
    if text in OPERATORS:
        return _Token(text)
    return _Token("word", text)


def _drop_dangling(tokens: list[_Token], repairs: list[str]) -> list[_Token]:
    """Drop AND, OR and NOT that dangle at an end, in upper or lower case."""
    kept = list(tokens)
    while kept and (kept[-1].kind in OPERATORS or _is_small_operator(kept[-1])):
        repairs.append(f"{_token_text(kept.pop())} at the end is ignored")
    while kept and (kept[0].kind in ("AND", "OR") or _is_small_operator(kept[0])):
        repairs.append(f"{_token_text(kept.pop(0))} at the start is ignored")
    if kept:
        return kept
    repairs.clear()
    return [_Token("word", _token_text(token)) for token in tokens]


def _is_small_operator(token: _Token) -> bool:
    return token.kind == "word" and token.text in ("and", "or", "not")


def _token_text(token: _Token) -> str:
    return token.text or token.kind


class _Parser:
    """A recursive descent parser; tokens that do not fit are dropped and reported."""

    def __init__(self, tokens: list[_Token], repairs: list[str]) -> None:
        self._tokens = tokens
        self._repairs = repairs
        self._at = 0
        self._leaves = 0

    def disjunction(self) -> Node | None:
        """Parse alternatives joined by OR."""
        branches = []
        while True:
            branch = self._conjunction()
            if branch is not None:
                branches.append(branch)
            if self._kind() != "OR":
                break
            self._at += 1
        return _join(Or, branches)

    def _conjunction(self) -> Node | None:
        factors = []
        while (kind := self._kind()) not in ("OR", ")", ""):
            if kind == "AND":
                self._at += 1
                continue
            factor = self._factor()
            if factor is not None:
                factors.append(factor)
        return _join(And, factors)

    def _factor(self) -> Node | None:
        negations = 0
        while (kind := self._kind()) == "NOT":
            negations += 1
            self._at += 1
        if kind in ("", ")", "AND", "OR"):
            self._repairs.append("NOT with nothing after it is ignored")
            return None
        node = self._group() if kind == "(" else self._leaf()
        if node is None or negations % 2 == 0:
            return node
        return node.child if isinstance(node, Not) else Not(node)

    def _group(self) -> Node | None:
        self._at += 1
        inner = self.disjunction()
        while self._kind() not in (")", ""):
            self._at += 1
        self._at += 1
        return inner

    def _leaf(self) -> Node | None:
        token = self._tokens[self._at]
        self._at += 1
        if self._leaves == MAX_LEAVES:
            self._repairs.append(f"only the first {MAX_LEAVES} words are searched")
            return None
        leaf = (
            _phrase_leaf(token, self._repairs) if token.kind == "phrase" else _literal_leaf(token.text, self._repairs)
        )
        self._leaves += leaf is not None
        return leaf

    def _kind(self) -> str:
        return self._tokens[self._at].kind if self._at < len(self._tokens) else ""


def _join(kind: type[And] | type[Or], nodes: list[Node]) -> Node | None:
    flat: list[Node] = []
    for node in nodes:
        flat.extend(node.children if isinstance(node, kind) else (node,))
    flat = list(dict.fromkeys(flat))
    if len(flat) < 2:
        return flat[0] if flat else None
    return kind(tuple(flat))


def _phrase_leaf(token: _Token, repairs: list[str]) -> Leaf | None:
    text = " ".join(analyze.fold(token.text).split())
    words = tuple(analyze.words(token.text))
    if words:
        return _words_leaf(_shorten(words, repairs), text, prefix=token.prefix)
    if not text:
        repairs.append("an empty phrase is ignored")
        return None
    return Part(text)


def _literal_leaf(typed: str, repairs: list[str]) -> Leaf | None:
    """Parse a typed word, perhaps with stars at its ends."""
    inner = typed.strip("*")
    words = tuple(analyze.words(inner))
    if typed.startswith("*") and inner:
        if not typed.endswith("*"):
            repairs.append(f"{typed} is searched inside words")
        if part := analyze.fold_to_line(inner):
            return Part(part)
    if not words:
        repairs.append(f"{typed} has no letters or digits; to search for the characters, put them in quotes")
        return None
    return _words_leaf(_shorten(words, repairs), analyze.fold(inner), prefix=typed.endswith("*"))


def _shorten(words: tuple[str, ...], repairs: list[str]) -> tuple[str, ...]:
    if len(words) > MAX_WORDS:
        repairs.append(f"only the first {MAX_WORDS} words of a phrase are searched")
    return words[:MAX_WORDS]


def _words_leaf(words: tuple[str, ...], text: str, *, prefix: bool) -> Words:
    last = words[-1]
    if not analyze.is_unspaced(last[0]):
        return Words(words, text, prefix)
    # A run of an unspaced script also matches inside longer runs: one character may be the first of a pair.
    if len(last) > 1:
        return Words(words, text)
    return Words((analyze.character_word(last),), text) if len(words) == 1 else Words(words, text, prefix=True)
