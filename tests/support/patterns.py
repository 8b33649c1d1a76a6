"""Every regular expression of the project, the calls with it in the code, and texts that are bad for it."""

from __future__ import annotations

import ast
import importlib
import math
import pkgutil
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, is_dataclass
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import hermes
from tests.support.quickness import LIMIT_S, is_quick, seconds_of

codes: Any = importlib.import_module("re._constants")
parser: Any = importlib.import_module("re._parser")
"""The parser of `re`, which has no type annotations."""

SIZE = 100_000
"""The number of characters of an attack."""
FIRST, FURTHER = 60, 80
"""The number of attacks on one pattern."""
METHODS = frozenset({"search", "match", "fullmatch", "sub", "subn", "findall", "finditer", "split"})
SOURCES = Path(hermes.__file__).parent
_NOT_OURS = "\u2603"
"""A character at which nearly every pattern fails."""


@dataclass
class Known:
    """A pattern, where it is, and the methods it is used with."""

    name: str
    pattern: re.Pattern[Any]
    methods: set[str] = field(default_factory=set)


def modules() -> Iterator[ModuleType]:
    """All modules of the project."""
    for found in pkgutil.walk_packages(hermes.__path__, "hermes."):
        if not found.name.endswith("__main__"):
            yield importlib.import_module(found.name)


@cache
def patterns() -> dict[str, Known]:
    """The patterns of all modules, by name; one whose use is not visible in the code is used in every way."""
    known: dict[int, Known] = {}
    for module in modules():
        for name, value in list(vars(module).items()):
            for place, pattern in _inside(value, name):
                known.setdefault(id(pattern), Known(f"{module.__name__}.{place}", pattern))
    for module in modules():
        for name, method in _calls(module):
            used = vars(module).get(name)
            if isinstance(used, re.Pattern):
                known[id(used)].methods.add(method)
    for each in known.values():
        each.methods = _different(each.methods or METHODS)
    return {each.name: each for each in known.values()}


def _different(methods: Iterable[str]) -> set[str]:
    """One method of each kind: methods that continue after a match do the same work."""
    return {method if method in ("search", "match", "fullmatch") else "sub" for method in methods}


def _inside(value: object, name: str, depth: int = 0) -> Iterator[tuple[str, re.Pattern[Any]]]:
    """The patterns in a value, also inside of containers."""
    if isinstance(value, re.Pattern):
        yield name, value
    elif depth < 4 and isinstance(value, Mapping):
        for key, each in value.items():
            yield from _inside(each, f"{name}[{key!r}]", depth + 1)
    elif depth < 4 and isinstance(value, list | tuple | set | frozenset):
        for number, each in enumerate(value):
            yield from _inside(each, f"{name}[{number}]", depth + 1)
    elif depth < 4 and is_dataclass(value) and not isinstance(value, type):
        for key in value.__dataclass_fields__:
            yield from _inside(getattr(value, key, None), f"{name}.{key}", depth + 1)


def _calls(module: ModuleType) -> Iterator[tuple[str, str]]:
    """The names in a module on which a method of patterns is called."""
    for node in ast.walk(_tree(Path(str(module.__file__)))):
        if (
            isinstance(node, ast.Attribute)
            and node.attr in METHODS
            and isinstance(node.value, ast.Name)
            and node.value.id != "re"
        ):
            yield node.value.id, node.attr


@cache
def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


def unnamed() -> list[str]:
    """The places, as `module:function`, that use or create a pattern that is not a module constant."""
    found = []
    for path in sorted(SOURCES.rglob("*.py")):
        module = ".".join(path.relative_to(SOURCES.parent).with_suffix("").parts)
        found += [f"{module}:{function}" for function in _inline(_tree(path), "")]
    return sorted(set(found))


def _inline(node: ast.AST, function: str) -> Iterator[str]:
    for child in ast.iter_child_nodes(node):
        inside = child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        if isinstance(child, ast.ImportFrom) and child.module == "re":
            yield f"{function} imports from re"
        if isinstance(child, ast.Attribute) and isinstance(child.value, ast.Name) and child.value.id == "re":
            yield from [function] * (child.attr in METHODS or (child.attr == "compile" and bool(function)))
        yield from _inline(child, inside)


@dataclass(frozen=True)
class Attack:
    """A text that is bad for a pattern: a head, a unit that is repeated, and an end."""

    head: str
    unit: str
    end: str
    is_binary: bool

    def text(self, size: int = SIZE) -> str | bytes:
        """The attack with this many characters."""
        body = (self.unit * (size // len(self.unit) + 1))[: max(0, size - len(self.head))]
        whole = self.head + body + self.end
        return whole.encode("utf-8", "replace") if self.is_binary else whole


def attacks(pattern: re.Pattern[Any]) -> Iterator[Attack]:
    """Attacks made of the pattern's own beginnings and repeats, with and without an end at which it fails."""
    tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
    units = [unit for unit in dict.fromkeys(_units(tree)) if unit[1]]
    # Of very many, the simplest and then some of each kind.
    step = max(1, (len(units) - FIRST) // FURTHER)
    for head, unit in [*units[:FIRST], *units[FIRST::step]]:
        if unit:
            for end in ("", _NOT_OURS):
                yield Attack(head, unit, end, isinstance(pattern.pattern, bytes))


def _units(tree: Any) -> Iterator[tuple[str, str]]:
    """Pairs of a beginning and a text that is repeated after it."""
    for turn in range(_most_branches(tree)):
        for filler in _FILLERS:
            parts = [_sample([node], filler, turn) for node in tree]
            whole = "".join(parts)
            yield from (("", whole[:length]) for length in (1, 2, 3, len(whole) - 1, len(whole)))
            yield "", "".join(parts[:-1])
            yield "", "".join(parts[: len(parts) // 2])
        for before, inside in _repeats(tree, "", turn):
            for unit in dict.fromkeys(_sample(inside, filler, turn) for filler in (*_FILLERS, *_PAIRS)):
                yield before, unit
                yield "", before + unit
                yield "", before + unit * 20


def _most_branches(tree: Any) -> int:
    """The largest number of alternatives in one place."""
    most = 1
    for operation, argument in tree:
        if operation is codes.BRANCH:
            most = max(most, len(argument[1]), *map(_most_branches, argument[1]))
        elif inside := _contents(operation, argument):
            most = max(most, _most_branches(inside))
    return most


def _contents(operation: Any, argument: Any) -> Any:
    """The content of a group, a repeat or a lookaround; empty for anything else."""
    if operation in _REPEATS:
        return argument[2]
    if operation is codes.SUBPATTERN:
        return argument[3]
    if operation in (codes.ASSERT, codes.ASSERT_NOT):
        return argument[1]
    return argument if operation is codes.ATOMIC_GROUP else None


def _repeats(tree: Any, before: str, turn: int) -> Iterator[tuple[str, Any]]:
    """The text before each repeat of a pattern, and the repeated part."""
    for node in tree:
        operation, argument = node
        if operation in _REPEATS:
            yield before, argument[2]
        if operation is codes.BRANCH:
            yield from _repeats(argument[1][turn % len(argument[1])], before, turn)
        elif inside := _contents(operation, argument):
            yield from _repeats(inside, before, turn)
        before += _sample([node], "a", turn)


def _sample(tree: Any, filler: str, turn: int) -> str:
    """A text that matches a pattern, with the filler wherever possible and one alternative; lookarounds are left out.

    A filler of two characters fills a class with both, one after the other.
    """
    return "".join(_part(operation, argument, filler, turn) for operation, argument in tree)


def _part(operation: Any, argument: Any, filler: str, turn: int) -> str:
    if operation is codes.LITERAL:
        return chr(argument)
    if operation is codes.NOT_LITERAL:
        return filler if chr(argument) not in filler else "b"
    if operation is codes.ANY:
        return filler
    if operation is codes.IN:
        return _characters(argument, filler)
    if operation is codes.BRANCH:
        return _sample(argument[1][turn % len(argument[1])], filler, turn)
    if operation in _REPEATS:
        least: int = argument[0]
        return _sample(argument[2], filler, turn) * max(1, min(least, 64))
    if operation in (codes.SUBPATTERN, codes.ATOMIC_GROUP):
        return _sample(_contents(operation, argument), filler, turn)
    return ""


_REPEATS = (codes.MAX_REPEAT, codes.MIN_REPEAT, codes.POSSESSIVE_REPEAT)
_FILLERS = ("a", " ", "-", "0", ".")
_PAIRS = ("a-", "a.", "a0", "a ", "_-", "0.")
_CANDIDATES = "a0_- .:/@=\"'<>|\n\tZ{}()[]#*`,;+~\\é京\u3131"


def _characters(members: Any, filler: str) -> str:
    """The filler if it is in a class, else the first character of the class."""
    is_negated = members[0][0] is codes.NEGATE
    if all(_fits(each, members) != is_negated for each in filler):
        return filler
    own = [chr(value if kind is codes.LITERAL else value[0]) for kind, value in members if kind in _CHARACTERS]
    return next((each for each in [*_CANDIDATES, *own] if _fits(each, members) != is_negated), _NOT_OURS)


_CHARACTERS = (codes.LITERAL, codes.RANGE)


def _fits(character: str, members: Any) -> bool:
    for kind, value in members:
        if kind is codes.LITERAL and ord(character) == value:
            return True
        if kind is codes.RANGE and value[0] <= ord(character) <= value[1]:
            return True
        if kind is codes.CATEGORY and re.match(_CATEGORIES[value], character):
            return True
    return False


_CATEGORIES = {
    codes.CATEGORY_DIGIT: r"\d",
    codes.CATEGORY_NOT_DIGIT: r"\D",
    codes.CATEGORY_SPACE: r"\s",
    codes.CATEGORY_NOT_SPACE: r"\S",
    codes.CATEGORY_WORD: r"\w",
    codes.CATEGORY_NOT_WORD: r"\W",
}


def is_quick_on(pattern: re.Pattern[Any], method: str, attack: Attack) -> bool:
    """Whether a call on the whole attack stays within the limit; the whole is tried only if a tenth leaves a doubt.

    There is none when the whole would keep the limit even if its time grew with the cube of the size, nor when it
    would do so growing with the square and as fast as from a twentieth to a tenth.
    """
    tenth_s = _seconds(pattern, method, attack.text(SIZE // 10))
    if tenth_s <= LIMIT_S / 10**3 or tenth_s > 2 * LIMIT_S:
        return tenth_s <= LIMIT_S
    if tenth_s <= LIMIT_S / 10**2:
        twentieth_s = _seconds(pattern, method, attack.text(SIZE // 20))
        if tenth_s * 10 ** math.log2(tenth_s / twentieth_s) <= LIMIT_S:
            return True
    text = attack.text()
    return is_quick(lambda: use(pattern, method, text))


def _seconds(pattern: re.Pattern[Any], method: str, text: str | bytes) -> float:
    return seconds_of(lambda: use(pattern, method, text))


def use(pattern: re.Pattern[Any], method: str, text: str | bytes) -> None:
    """Call one method of a pattern on a text."""
    if method == "sub":
        pattern.sub(text[:0], text)
    else:
        getattr(pattern, method)(text)
