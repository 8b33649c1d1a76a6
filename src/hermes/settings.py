"""Read settings from YAML into sections; the types of the fields decide what may be in the file.

The reader walks YAML's node tree. So every error can name its line, no object is ever constructed from a tag, and an
alias costs nothing, because only nodes that a section declares are visited.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import MISSING, Field, dataclass, field
from pathlib import Path
from types import NoneType
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, get_args, get_origin, get_type_hints

from hermes.envfile import Expansion, expand
from hermes.errors import ConfigError
from hermes.section import Section, setting_fields

if TYPE_CHECKING:
    from yaml import Node, ScalarNode

S = TypeVar("S", bound=Section)
Scalar = bool | int | float | str

_NULL_TAG = "tag:yaml.org,2002:null"
_TEXT_TAG = "tag:yaml.org,2002:str"
_MAX_QUOTED_CHARS = 60
_NOUNS = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
_QUOTED = re.compile(r"'[^']*'|\"[^\"]*\"")


def read_settings(
    section: type[S], text: str, *, file: Path, variables: Mapping[str, str]
) -> tuple[S, tuple[str, ...]]:
    """Return the settings in `text`, and a warning for each entry without effect. Errors name `file` and the line."""
    root = _compose(text, file) if text.strip() else None
    if root is None or root.tag == _NULL_TAG:
        return section(), ()
    reader = _Reader(file, variables)
    return reader.read_section(section, root, ""), tuple(reader.warnings)


@dataclass(frozen=True, slots=True)
class _Rule:
    """The values that a key accepts."""

    key: str
    kind: type[Scalar]
    choices: tuple[str, ...]
    above: float | None
    at_least: float | None
    at_most: float | None
    is_secret: bool
    is_id: bool
    check: Callable[[str], bool] | None
    noun: str
    default: object
    hint: str = ""

    @classmethod
    def of(cls, key: str, hint: Any, declared: Field[Any]) -> _Rule:
        hint = _without_none(hint)
        choices = get_args(hint) if get_origin(hint) is Literal else ()
        return cls(
            key=key,
            kind=str if choices else hint,
            choices=choices,
            above=declared.metadata.get("above"),
            at_least=declared.metadata.get("at_least"),
            at_most=declared.metadata.get("at_most"),
            is_secret=declared.metadata.get("secret", False),
            is_id=declared.metadata.get("is_id", False),
            check=declared.metadata.get("check"),
            noun=declared.metadata.get("expected", ""),
            default=None if declared.default is MISSING else declared.default,
            hint=declared.metadata.get("hint", ""),
        )

    @property
    def expected(self) -> str:
        if self.choices:
            return f"one of {', '.join(self.choices)}"
        if self.noun:
            return self.noun
        if self.above is not None:
            return f"{_NOUNS[self.kind]} above {self.above:g}"
        if self.at_least is not None and self.at_most is not None:
            return f"{_NOUNS[self.kind]} from {self.at_least:g} to {self.at_most:g}"
        if self.at_least is not None:
            return f"{_NOUNS[self.kind]} of at least {self.at_least:g}"
        return _NOUNS[self.kind]

    def accept(self, value: object) -> Scalar | None:
        """Return `value` in the type of the field, or None if the field does not accept it."""
        if self.kind is float and type(value) is int:
            value = _int_to_float(value)
        if type(value) is not self.kind or not isinstance(value, bool | int | float | str):
            return None
        if isinstance(value, str):
            is_accepted = not self.choices or value in self.choices
            return value if is_accepted and (self.check is None or self.check(value)) else None
        is_within = (
            math.isfinite(value)
            and (self.above is None or value > self.above)
            and (self.at_least is None or value >= self.at_least)
            and (self.at_most is None or value <= self.at_most)
        )
        return value if is_within else None


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads one file."""

    file: Path
    variables: Mapping[str, str]
    warnings: list[str] = field(default_factory=list)

    def read_section(self, section: type[S], node: Node, key: str) -> S:
        hints = get_type_hints(section)
        declared = setting_fields(section)
        values: dict[str, Any] = {}
        for name, child in self._entries(node, key, declared):
            dotted = _join(key, name)
            if child.tag == _NULL_TAG:
                continue
            value = self._read_any(dotted, hints[name], declared[name], child)
            if value is not None:
                values[name] = value
        return section(**values)

    def _read_any(self, key: str, hint: Any, declared: Field[Any], node: Node) -> Any:
        """Return the value at a key in its declared type; None for the default."""
        hint = _without_none(hint)
        if isinstance(hint, type) and issubclass(hint, Section):
            return self.read_section(hint, node, key)
        if get_origin(hint) is Mapping:
            named = {
                name: self._read_any(_join(key, name), get_args(hint)[1], declared, child)
                for name, child in self._entries(node, key, None)
            }
            return {name: value for name, value in named.items() if value is not None}
        if hint is Any:  # a setting of a platform: text, or a list of texts
            from yaml import SequenceNode

            is_list = isinstance(node, SequenceNode)
            return self._read_any(key, tuple[str, ...] if is_list else str, declared, node)
        if get_origin(hint) is tuple:
            return self._read_list(key, get_args(hint)[0], declared, node)
        return self._read_value(_Rule.of(key, hint, declared), node)

    def _read_list(self, key: str, hint: Any, declared: Field[Any], node: Node) -> tuple[Any, ...]:
        from yaml import SequenceNode

        if not isinstance(node, SequenceNode):
            self._fail(node, f"{key} is {_describe(node)}, expected a list", hint=f"write `{key}: [...]`")
        return tuple(
            self._read_any(f"{key}[{place}]", hint, declared, child) for place, child in enumerate(node.value, start=1)
        )

    def _entries(self, node: Node, key: str, known: Mapping[str, object] | None) -> Iterator[tuple[str, Node]]:
        """Yield the entries of a mapping; with `known` names, warn about others and skip them."""
        from yaml import MappingNode, ScalarNode

        if not isinstance(node, MappingNode):
            self._fail(
                node,
                f"{key or 'the file'} is {_describe(node)}, expected settings by name",
                hint=f"write one setting per line, such as `{next(iter(known)) if known else 'name'}: ...`",
            )
        first_lines: dict[str, int] = {}
        for key_node, child in node.value:
            name = key_node.value if isinstance(key_node, ScalarNode) else _describe(key_node)
            if known is not None and name not in known:
                self._warn(key_node, f"unknown key {_join(key, name)}{_nearest(name, known, key)}")
                continue
            if name in first_lines:
                self._fail(
                    key_node,
                    f"{_join(key, name)} is set twice; the first is on line {first_lines[name]}",
                    hint="keep one of them",
                )
            first_lines[name] = _line(key_node)
            yield name, child

    def _read_value(self, rule: _Rule, node: Node) -> Scalar | None:
        """Return the value at a key, or None for the default."""
        from yaml import ScalarNode

        if not isinstance(node, ScalarNode):
            self._reject(rule, node, _describe(node))
        if node.tag == _TEXT_TAG or rule.is_id:
            return self._read_text(rule, node)
        value = rule.accept(_construct(node))
        if value is None:
            self._reject(rule, node, _shorten(node.value))
        return value

    def _read_text(self, rule: _Rule, node: ScalarNode) -> Scalar | None:
        expansion = expand(node.value, self.variables)
        if expansion.names and not expansion.text:
            return None
        if expansion.unset and rule.kind is str and not rule.choices:
            self._warn(node, f"{rule.key}: {_and(expansion.unset)} is not set, so the reference stays as written")
        is_converted = bool(expansion.names) and rule.kind is not str
        value = rule.accept(_construct_plain(expansion.text) if is_converted else expansion.text)
        if value is None:
            self._reject(rule, node, _describe_value(_shorten(node.value), expansion))
        return value

    def _reject(self, rule: _Rule, node: Node, found: str) -> NoReturn:
        verb = "has a wrong value (not shown, it may be a secret)" if rule.is_secret else f"is {found}"
        default = "" if rule.default is None else f", {_as_yaml(rule.default)}"
        self._fail(
            node,
            f"{rule.key} {verb}; expected {rule.expected}",
            hint=rule.hint or f"correct it, or remove the line to use the default{default}",
        )

    def _fail(self, node: Node, problem: str, *, hint: str) -> NoReturn:
        raise ConfigError(f"{self.file}, line {_line(node)}: {problem}", hint=hint)

    def _warn(self, node: Node, problem: str) -> None:
        self.warnings.append(f"{self.file}, line {_line(node)}: {problem}")


def _without_none(hint: Any) -> Any:
    """Return X for `X | None`, and any other type unchanged."""
    if NoneType not in get_args(hint):
        return hint
    (hint,) = (arm for arm in get_args(hint) if arm is not NoneType)
    return hint


def _compose(text: str, file: Path) -> Node | None:
    import yaml

    try:
        root: Node | None = yaml.compose(text, Loader=yaml.SafeLoader)
    except yaml.MarkedYAMLError as error:
        # The error's own text quotes the file, and with it perhaps a secret.
        mark = error.problem_mark or error.context_mark
        line = f", line {mark.line + 1}" if mark else ""
        problem = _QUOTED.sub(_hide_word, error.problem or "it cannot be read")
        raise ConfigError(f"{file}{line}: not valid YAML: {problem}", hint="check indentation and quotes") from None
    except yaml.reader.ReaderError as error:
        line = f", line {text.count(chr(10), 0, error.position) + 1}"
        raise ConfigError(f"{file}{line}: not valid YAML: it has a control character", hint="remove it") from None
    except RecursionError:
        raise ConfigError(f"{file}: not valid YAML: it is nested too deeply") from None
    return root


def _hide_word(quoted: re.Match[str]) -> str:
    """Keep characters such as ',' and kinds such as '<scalar>' of YAML; hide a word of the file."""
    text = quoted[0][1:-1]
    return quoted[0] if len(text) < 3 or text.startswith("<") else "a word"


def _construct(node: ScalarNode) -> object:
    """Return the plain value of a scalar, or None if it has none."""
    from yaml.constructor import ConstructorError, SafeConstructor

    try:
        value: object = SafeConstructor().construct_object(node)
    except (ConstructorError, ValueError, OverflowError):
        return None
    return value


def _construct_plain(text: str) -> object:
    """Return the value that YAML gives to an unquoted `text`."""
    from yaml import ScalarNode
    from yaml.resolver import Resolver

    tag = Resolver().resolve(ScalarNode, text, (True, False))  # type: ignore[no-untyped-call]
    return _construct(ScalarNode(tag, text))


def _int_to_float(value: int) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def _nearest(name: str, known: Mapping[str, object], key: str) -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, n=1)
    return f", did you mean {_join(key, near[0])}?" if near else f"; known are {', '.join(known)}"


def _describe(node: Node) -> str:
    from yaml import MappingNode, SequenceNode

    if isinstance(node, MappingNode):
        return "a mapping"
    return "a list" if isinstance(node, SequenceNode) else "a single value"


def _describe_value(shortened: str, expansion: Expansion) -> str:
    """Describe the value as it is written in the file; the values of variables are never shown."""
    if expansion.unset:
        return f"{shortened}, but {_and(expansion.unset)} is not set"
    if expansion.names:
        return f"{shortened}, but the value of {_and(expansion.names)} does not fit"
    return f'"{shortened}"'


def _shorten(text: str) -> str:
    from hermes.secrets import hide_login  # late: only errors need it

    safe = hide_login(text)
    return safe if len(safe) <= _MAX_QUOTED_CHARS else f"{safe[:_MAX_QUOTED_CHARS]}..."


def _as_yaml(value: object) -> str:
    return str(value).lower() if isinstance(value, bool) else f"{value}"


def _and(names: tuple[str, ...]) -> str:
    return " and ".join(dict.fromkeys(names))


def _join(key: str, name: str) -> str:
    return f"{key}.{name}" if key else name


def _line(node: Node) -> int:
    return int(node.start_mark.line) + 1
