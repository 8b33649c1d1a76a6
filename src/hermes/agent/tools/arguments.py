"""Parses the arguments that a model wrote: repairs clear mistakes and explains the others."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NoReturn

from hermes.errors import InvalidValue

Schema = Mapping[str, Any]

_FENCE = "```"
_WHOLE = re.compile(r"[+-]?[0-9]{1,18}(?:\.0+)?")
_NUMBER = re.compile(r"[+-]?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]{1,3})?")
_EXACT_FLOAT = 2**53
_MAX_QUOTED = 60


def parse_arguments(text: str, parameters: Schema) -> dict[str, Any]:
    """Return the arguments in `text`, in the types of the schema; raise `InvalidValue` with all mistakes."""
    arguments = _object(text)
    properties, required = parameters["properties"], parameters["required"]
    problems = [*_unknown(arguments, properties)]
    fitted: dict[str, Any] = {}
    for name, schema in properties.items():
        value = arguments.get(name)
        if name not in arguments or (value is None and name not in required):
            if name in required:
                problems.append(f"{name} is missing")
            continue
        try:
            fitted[name] = _fit(value, schema)
        except InvalidValue as wrong:
            problems.append(f"{name}{wrong.message}")
    if problems:
        raise InvalidValue("; ".join(problems))
    return fitted


def usage(name: str, parameters: Schema) -> str:
    """Return the signature of a tool: `read_file(path: string, start_line: integer = 1)`."""
    shown = []
    for each, schema in parameters["properties"].items():
        kind = " or ".join(json.dumps(choice) for choice in schema["enum"]) if "enum" in schema else _noun(schema)
        default = f" = {json.dumps(schema['default'])}" if "default" in schema else ""
        optional = "" if each in parameters["required"] or default else "?"
        shown.append(f"{each}{optional}: {kind}{default}")
    return f"{name}({', '.join(shown)})"


def _object(text: str) -> dict[str, Any]:
    """Parse the object in `text`; empty text is an empty object, and a string or fence around an object is ignored."""
    text = text.strip()
    value = _parse_json(_strip_fence(text)) if text else {}
    if isinstance(value, str) and value.lstrip().startswith("{"):
        value = _parse_json(value)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise InvalidValue(f"the arguments must be a JSON object, not {_quote(value)}")
    return value


def _strip_fence(text: str) -> str:
    """Return the text inside a code fence, if the whole text is in one."""
    first, is_broken, rest = text.partition("\n")
    if is_broken and rest.endswith(_FENCE) and first.rstrip() in (_FENCE, f"{_FENCE}json"):
        return rest.removesuffix(_FENCE).strip()
    return text


def _parse_json(text: str) -> Any:
    try:
        # Not strict: raw line breaks inside strings are clear enough.
        return json.loads(text, strict=False, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        near = text[max(0, error.pos - 20) : error.pos + 20]
        raise InvalidValue(f"the arguments are not JSON: {error.msg} at character {error.pos}, near {near!r}") from None
    except ValueError as error:
        raise InvalidValue(f"the arguments are not JSON: {error}") from None
    except RecursionError:
        raise InvalidValue("the arguments are nested too deeply") from None


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a number")


def _unknown(arguments: Mapping[str, Any], properties: Schema) -> Iterator[str]:
    for name in arguments:
        if name not in properties:
            from difflib import get_close_matches

            near = get_close_matches(name, properties, n=1)
            yield f"there is no parameter {_quote(name)}" + (f", did you mean {near[0]}?" if near else "")


def _fit(value: Any, schema: Schema) -> Any:
    """Return `value` in the type of the schema; raise `InvalidValue` with a message that follows the name."""
    kind = schema["type"]
    if isinstance(kind, list):
        if value is None:
            return None
        (kind,) = (each for each in kind if each != "null")
    found = _FITS[kind](value, schema)
    if found is None:
        raise InvalidValue(f" must be {_noun(schema)}, not {_quote(value)}")
    if "enum" in schema:
        return _match_choice(found, schema["enum"])
    return found


def _text(value: Any, _: Schema) -> str | None:
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    return value if isinstance(value, str) else None


def _whole(value: Any, _: Schema) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and _WHOLE.fullmatch(value.strip()):
        return int(value.strip().partition(".")[0])
    if isinstance(value, float) and value.is_integer() and abs(value) < _EXACT_FLOAT:
        return int(value)
    return value if isinstance(value, int) else None


def _number(value: Any, _: Schema) -> float | int | None:
    if isinstance(value, str) and _NUMBER.fullmatch(value.strip()):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    try:
        return value if math.isfinite(value) else None
    except OverflowError:
        return None


def _boolean(value: Any, _: Schema) -> bool | None:
    if isinstance(value, str):
        return {"true": True, "false": False}.get(value.strip().lower())
    return value if isinstance(value, bool) else None


def _list(value: Any, schema: Schema) -> list[Any] | None:
    if isinstance(value, str):
        # A list that was encoded twice, or a single text where a list of texts is expected.
        inner = _parse_inner(value, "[")
        value = inner if inner is not None else [value] if schema["items"].get("type") == "string" else None
    if not isinstance(value, list):
        return None
    return [_fit_part(f"[{place}]", each, schema["items"]) for place, each in enumerate(value)]


def _mapping(value: Any, schema: Schema) -> dict[str, Any] | None:
    if isinstance(value, str):
        value = _parse_inner(value, "{")
    if not isinstance(value, dict):
        return None
    inner = schema.get("additionalProperties")
    return value if inner is None else {name: _fit_part(f".{name}", each, inner) for name, each in value.items()}


def _parse_inner(text: str, opening: str) -> Any:
    """Parse a text that begins with `opening` as JSON; return None if it is not valid."""
    if not text.lstrip().startswith(opening):
        return None
    try:
        return _parse_json(text)
    except InvalidValue:
        return None


def _fit_part(place: str, value: Any, schema: Schema) -> Any:
    try:
        return _fit(value, schema)
    except InvalidValue as wrong:
        raise InvalidValue(f"{place}{wrong.message}") from None


def _match_choice(value: Any, choices: list[Any]) -> Any:
    if value in choices:
        return value
    if isinstance(value, str):
        near = [each for each in choices if each.lower() == value.strip().lower()]
        if len(near) == 1:
            return near[0]
    raise InvalidValue(f" must be one of {', '.join(map(str, choices))}, not {_quote(value)}")


def _noun(schema: Schema) -> str:
    kind = schema["type"]
    if isinstance(kind, list):
        return " or ".join(kind)
    return f"array of {_noun(schema['items'])}" if kind == "array" else str(kind)


def _quote(value: Any) -> str:
    text = json.dumps(value)
    return text if len(text) <= _MAX_QUOTED else f"{text[:_MAX_QUOTED]}..."


_FITS: dict[str, Callable[[Any, Schema], Any]] = {
    "string": _text,
    "integer": _whole,
    "number": _number,
    "boolean": _boolean,
    "array": _list,
    "object": _mapping,
}
