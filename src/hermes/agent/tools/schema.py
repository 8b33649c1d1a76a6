"""JSON schemas of functions, derived from their signatures."""

from __future__ import annotations

from collections.abc import Callable
from inspect import Parameter, signature
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, Union, get_args, get_origin, get_type_hints

Schema = dict[str, Any]

_PLAIN: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number"}


class _Peeled(NamedTuple):
    """A type without `Annotated` and `| None` around it."""

    core: Any
    description: str | None
    is_nullable: bool


def parameters_of(function: Callable[..., object], *, without: type) -> Schema:
    """Return the schema of the arguments of `function`, except for those of the type `without`.

    A parameter with a default is optional; `Annotated[str, "what it is"]` adds a description.
    """
    hints = get_type_hints(function, include_extras=True)
    properties: dict[str, Schema] = {}
    required = []
    for parameter in signature(function).parameters.values():
        hint = hints.get(parameter.name)
        if hint is without:
            continue
        if hint is None or parameter.kind not in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
            raise TypeError(f"{parameter.name} of {function.__name__} cannot be passed by name, or has no type")
        properties[parameter.name] = _property(hint, parameter.default)
        if parameter.default is Parameter.empty:
            required.append(parameter.name)
    return {"type": "object", "properties": properties, "required": required}


def _property(hint: Any, default: object) -> Schema:
    peeled = _peel(hint)
    # Omitting an optional argument and passing null mean the same, and fewer endpoints understand null.
    is_nullable = peeled.is_nullable and default is not None
    found = _of_core(peeled.core)
    if is_nullable:
        found["type"] = [found["type"], "null"]
    if peeled.description:
        found["description"] = peeled.description
    if default is not Parameter.empty and default is not None:
        found["default"] = default
    return found


def _of_core(core: Any) -> Schema:
    if core in _PLAIN:
        return {"type": _PLAIN[core]}
    origin, arguments = get_origin(core), get_args(core)
    if origin is Literal and len({type(each) for each in arguments}) == 1:
        return {"type": _PLAIN[type(arguments[0])], "enum": list(arguments)}
    if origin is list:
        return {"type": "array", "items": _property(arguments[0], Parameter.empty)}
    if core is dict:
        return {"type": "object"}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": _property(arguments[1], Parameter.empty)}
    raise TypeError(f"{core!r} is not supported in a schema; use str, int, float, bool, Literal, list[...] or dict")


def _peel(hint: Any) -> _Peeled:
    """Return the type inside `Annotated` and `| None`, in either order."""
    description, is_nullable = None, False
    while True:
        if get_origin(hint) is Annotated:
            hint, *notes = get_args(hint)
            description = description or next((note for note in notes if isinstance(note, str)), None)
        elif get_origin(hint) in (Union, UnionType) and NoneType in get_args(hint) and len(get_args(hint)) == 2:
            (hint,) = (arm for arm in get_args(hint) if arm is not NoneType)
            is_nullable = True
        else:
            return _Peeled(hint, description, is_nullable)
