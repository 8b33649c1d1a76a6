"""Change one value of a YAML text, and leave its comments and other lines as they are; pure.

YAML's node tree says where a value is. The text between is copied, so what a person wrote by hand stays.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from yaml import MappingNode, Node

_STEP = 2
_NULL_TAG = "tag:yaml.org,2002:null"


class CannotEdit(Exception):
    """The text has a form in which this change is not possible line by line."""


def set_value(text: str, path: Sequence[str], value: object) -> str:
    """Return `text` with `value` at `path`, created if missing; raise `CannotEdit` if other values would change."""
    import yaml

    try:
        before = yaml.safe_load(text)
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        edited = _edit(text, root, list(path), value)
        after = yaml.safe_load(edited)
    except (yaml.YAMLError, RecursionError, ValueError) as error:
        raise CannotEdit("it is not valid YAML") from error
    if after != _with_value(before, list(path), value):
        raise CannotEdit("other values would change")
    return edited


def _with_value(data: object, path: list[str], value: object) -> object:
    """Return plain data with one value replaced, which is what the changed text must mean."""
    if not path:
        return list(value) if isinstance(value, tuple) else value
    if data is not None and not isinstance(data, dict):
        raise CannotEdit("a value is where settings by name are expected")
    known = data or {}
    key = next((each for each in known if str(each) == path[0]), path[0])
    return {**known, key: _with_value(known.get(key), path[1:], value)}


def _edit(text: str, root: Node | None, path: list[str], value: object) -> str:
    from yaml import MappingNode

    if root is None or root.tag == _NULL_TAG:
        return _append(text, _block(path, value, 0))
    node, parent_line, is_in_flow = root, -1, False
    while isinstance(node, MappingNode):
        is_in_flow = is_in_flow or bool(node.flow_style)
        found = next(((key, child) for key, child in node.value if key.value == path[0]), None)
        if found is None:
            return _insert(text, node, parent_line, path, value)
        parent_line, node = found[0].end_mark.line, found[1]
        path = path[1:]
        if not path:
            return _replace(text, node, value, is_in_flow=is_in_flow)
        if node.tag == _NULL_TAG and node.start_mark.index == node.end_mark.index:
            return _insert_lines(text, parent_line + 1, _block(path, value, found[0].start_mark.column + _STEP))
    if node.tag != _NULL_TAG:
        raise CannotEdit("a value is where settings by name are expected")
    return _replace(text, node, _nested(path, value), is_in_flow=is_in_flow)


def _replace(text: str, node: Any, value: object, *, is_in_flow: bool) -> str:
    """Put a value where a node is."""
    start, end = node.start_mark.index, node.end_mark.index
    written = _flow(value, is_in_flow=is_in_flow)
    if start == end:
        return f"{text[:start]} {written}{text[start:]}"
    if isinstance(node.value, str) or node.flow_style:
        old = text[start:end].rstrip()  # the end of a text on several lines is where the next value begins
        return f"{text[:start]}{written}{text[start + len(old) :]}"
    head = text[:start].rstrip()
    if not head.endswith(":"):
        raise CannotEdit("a comment or a mark is where the value begins")
    after = text.find("\n", _end_of_block(text, node))
    return f"{head} {written}{_line_end(text)}{'' if after < 0 else text[after + 1 :]}"


def _end_of_block(text: str, node: Any) -> int:
    """Return where the last value in a block ends; the mark of a block is later, after comments that follow."""
    while not isinstance(node.value, str) and not node.flow_style and node.value:
        last = node.value[-1]
        node = last[1] if isinstance(last, tuple) else last
    end = node.end_mark.index
    return len(text[:end].rstrip()) if end > node.start_mark.index else end


def _insert(text: str, node: MappingNode, parent_line: int, path: list[str], value: object) -> str:
    if node.flow_style:
        place = node.start_mark.index + 1
        separator = ", " if node.value else ""
        written = _flow(_nested(path[1:], value), is_in_flow=True)
        return f"{text[:place]}{_flow(path[0])}: {written}{separator}{text[place:]}"
    lines = _block(path, value, node.start_mark.column)
    return _append(text, lines) if parent_line < 0 else _insert_lines(text, parent_line + 1, lines)


def _insert_lines(text: str, line: int, lines: list[str]) -> str:
    before = text.splitlines(keepends=True)
    if line >= len(before):
        return _append(text, lines)
    end = _line_end(text)
    return "".join([*before[:line], *(f"{each}{end}" for each in lines), *before[line:]])


def _append(text: str, lines: list[str]) -> str:
    end = _line_end(text)
    gap = "" if not text or text.endswith(("\n", "\r")) else end
    return f"{text}{gap}{''.join(f'{each}{end}' for each in lines)}"


def _block(path: list[str], value: object, column: int) -> list[str]:
    """Return the lines that set a value below names that are not there yet."""
    lines = [f"{' ' * (column + _STEP * depth)}{_flow(name)}:" for depth, name in enumerate(path)]
    lines[-1] += f" {_flow(value)}"
    return lines


def _nested(path: list[str], value: object) -> object:
    for name in reversed(path):
        value = {name: value}
    return value


def _flow(value: object, *, is_in_flow: bool = False) -> str:
    """Return a value as YAML on one line; within braces, text with a brace or a comma needs quotes."""
    import yaml

    plain: Any = list(value) if isinstance(value, tuple) else value
    needs_quotes = isinstance(plain, str) and any(each in plain for each in ("\n\r,[]{}" if is_in_flow else "\n\r"))
    written: str = yaml.safe_dump(
        plain,
        default_flow_style=True,
        default_style='"' if needs_quotes else None,
        width=1_000_000,
        allow_unicode=True,
        sort_keys=False,
    )
    return written.removesuffix("\n").removesuffix("\n...").strip()


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"
