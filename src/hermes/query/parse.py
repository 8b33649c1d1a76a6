"""Parse a typed query into a tree. No input is an error: nonsense is repaired, and each repair is reported.

    words       all must match            "a phrase"  words in this order   (a OR b)  grouping
    prefix*     words that start with it  *part*      inside words          a NOT b, -b  without b

NOT binds tightest, then AND (implied between plain words), then OR. Everything else is literal text.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from unicodedata import category

from hermes.query import analyze
from hermes.query.tree import And, Node, Not, Or, Part, Words

MAX_CHARACTERS = 100_000
MAX_LEAVES = 128
MAX_DEPTH = 8
MAX_WORDS = 64
"""How many words of one phrase are searched."""

OPERATORS = ("AND", "OR", "NOT")
_MINUS = "-"
_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»"}
_space = re.compile(r"\s")
_punctuation = re.compile(r"[^\w\s'’‘\"]|_")
_machine_id = re.compile(
    r"(?=[^0-9]{0,80}[0-9])(?=[^A-Za-z]{0,80}[A-Za-z])(?:[A-Za-z0-9]{2,20}(?:[_-][A-Za-z0-9]{2,64}){1,4}|[A-Za-z0-9]{9,64})"
)
"""An id as programs make them: the index has those of tool calls as one word."""
_option = re.compile("[A-Za-z0-9]{1,2}")
"""An option of a command, as people paste it, without its minus."""
_COMMAND_WORDS, _PROSE_WORDS = 3, 6
"""In a row of so many words a minus before one or two letters is text; in a longer one, before every word."""


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query."""

    tree: Node | None
    """None if there is nothing to search for."""
    repairs: tuple[str, ...] = ()
    """Messages for the user: which parts of the input were changed, and how."""
    is_plain: bool = False
    """Whether it is nothing but words, without operators, quotes and stars: a sentence, perhaps."""
    has_operators: bool = False
    """Whether it has AND, OR, NOT or groups, and so means exactly what it says."""
    typed: str = ""
    """The text that was parsed."""
    literal: Node | None = None
    """The same text word by word, with every `not` and every minus as text: what it means if a message has it."""


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    """word, phrase, part, AND, OR, NOT, ( or )"""
    text: str = ""
    """The text of a word, a phrase or a part; of NOT, the minus that stands for it."""
    prefix: bool = False


def parse(typed: str) -> Query:
    """Parse a query; never raise."""
    repairs: list[str] = []
    if len(typed) > MAX_CHARACTERS:
        repairs.append(f"only the first {MAX_CHARACTERS} characters are used")
    typed = analyze.replace_unindexable(typed[:MAX_CHARACTERS])
    scanned = _without_options(_scan(typed, repairs), repairs)
    tokens = _drop_dangling(scanned, repairs)
    parser = _Parser(tokens, repairs)
    tree = parser.disjunction()
    if tree is None and typed.strip():
        # Only punctuation: search for the punctuation itself.
        repairs.clear()
        folded = analyze.fold_to_line(typed)
        words = tuple(analyze.words(folded))[:MAX_WORDS]
        tree = _words_leaf(words, folded, prefix=False) if words else (Part(folded) if folded else None)
    is_plain = all(token.kind == "word" and "*" not in token.text for token in tokens)
    has_operators = any(token.kind not in ("word", "phrase", "part") for token in tokens)
    literal = (
        _literal(typed, scanned) if len(tokens) < len(scanned) or "NOT" in {each.kind for each in scanned} else None
    )
    return Query(tree, tuple(dict.fromkeys(repairs)), is_plain, has_operators, typed, literal)


def _literal(typed: str, tokens: Sequence[_Token]) -> Node | None:
    """What a text means if its minus signs and small operators are text; None if it has other operators."""
    if not _has_only_words(tokens):
        return None
    words = tuple(analyze.words(typed))[:MAX_WORDS]
    if len(words) < 2:
        return None
    if any(token.kind == "NOT" for token in tokens):
        # A pasted command, if a message has it to the letter.
        text = analyze.fold_to_line(typed)
        return replace(_words_leaf(words, text, prefix=False), is_literal=True)
    return _Parser(list(tokens), []).disjunction()


def _has_only_words(tokens: Sequence[_Token]) -> bool:
    """Whether there are only words, with or without a minus; NOT in capitals is an operator."""
    return all(token.kind == "word" or (token.kind == "NOT" and token.text == _MINUS) for token in tokens)


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
        elif character == "-" and _is_negation(typed, at):
            tokens.append(_Token("NOT", _MINUS))
            at += 1
        elif typed.startswith('*"', at) and (end := typed.find('"', at + 2)) > 0:
            tokens.append(_Token("part", typed[at + 2 : end]))
            at = end + 1 + (typed[end + 1 : end + 2] == "*")
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


def _is_negation(typed: str, at: int) -> bool:
    """Whether a minus may mean NOT: it stands before a group, a phrase or a word."""
    following = typed[at + 1 : at + 2]
    return bool(following) and _space.match(following) is None and following not in "->)"


def _without_options(tokens: list[_Token], repairs: list[str]) -> list[_Token]:
    """The tokens of a pasted command: in a row of words, `-n` is an option of a program and not NOT."""
    words = [token for token in tokens if token.kind == "word"]
    if len(words) < _COMMAND_WORDS or not _has_only_words(tokens):
        return tokens
    kept: list[_Token] = []
    for token, following in zip(tokens, [*tokens[1:], None], strict=True):
        is_text = len(words) >= _PROSE_WORDS or (following is not None and _option.fullmatch(following.text))
        if token.kind == "NOT" and following is not None and following.kind == "word" and is_text:
            repairs.append(f"-{following.text} is read as text, not as NOT {following.text}")
        else:
            kept.append(token)
    return kept


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
        words = [token.text for token in tokens if token.kind == "word"]
        has_phrases = any(token.kind in ("phrase", "part") for token in tokens)
        self._has_only_punctuation = (
            len(tokens) > len(words) > 0 and not has_phrases and not any(map(analyze.words, words))
        )
        """Then the characters are what is looked for, as in `-> OR =>`."""

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
        leaf: Node | None
        token = self._tokens[self._at]
        self._at += 1
        if self._leaves == MAX_LEAVES:
            self._repairs.append(f"only the first {MAX_LEAVES} words are searched")
            return None
        if token.kind == "phrase":
            leaf = _phrase_leaf(token, self._repairs)
        elif token.kind == "part" or self._has_only_punctuation:
            characters = token.text.strip("*") if token.kind == "word" else ""
            leaf = Part(text) if (text := analyze.fold_to_line(characters or token.text)) else None
        else:
            leaf = _literal_leaf(token.text, self._repairs)
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


def _phrase_leaf(token: _Token, repairs: list[str]) -> Node | None:
    text = analyze.fold_to_line(token.text)
    forms = {tuple(analyze.words(token.text, is_joined=True)): None}
    if not all(map(analyze.is_unspaced, text.replace(" ", ""))):
        # Joined runs are indexed alone: next to other words they are as the message has them.
        forms[tuple(analyze.words(token.text))] = None
    if all(forms):
        # Quotes mean exactly this, with its punctuation; without any, the words say it all.
        is_literal = _has_punctuation(text)
        leaves = [_words_leaf(_shorten(words, repairs), text, prefix=token.prefix) for words in forms]
        ids = [_id_leaf(token.text, prefix=False)] if _machine_id.fullmatch(token.text) else []
        return _join(Or, [*(replace(leaf, is_literal=is_literal) for leaf in leaves), *ids])
    if not text:
        repairs.append("an empty phrase is ignored")
        return None
    return Part(text)


def _has_punctuation(text: str) -> bool:
    """Whether a folded text has punctuation; vowel signs and other marks belong to their words."""
    return any(category(each)[0] != "M" and not analyze.is_unspaced(each) for each in _punctuation.findall(text))


def _literal_leaf(typed: str, repairs: list[str]) -> Node | None:
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
    leaf = _words_leaf(_shorten(words, repairs), analyze.fold(inner), prefix=typed.endswith("*"))
    if _machine_id.fullmatch(inner):
        return Or((leaf, _id_leaf(inner, prefix=leaf.prefix)))
    return leaf


def _id_leaf(text: str, *, prefix: bool) -> Words:
    """Return the one word that the index has for an id."""
    return Words((analyze.machine_id_word(text).lower(),), analyze.fold(text), prefix)


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
