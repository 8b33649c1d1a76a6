"""The schema of a function for a model."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any, Literal

import pytest

from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.registry import tool
from hermes.agent.tools.schema import parameters_of


def properties(function: Callable[..., object]) -> dict[str, Any]:
    found = parameters_of(function, without=ToolContext)["properties"]
    assert isinstance(found, dict)
    return found


def text(value: str) -> None: ...
def whole(value: int) -> None: ...
def number(value: float) -> None: ...
def truth(value: bool) -> None: ...
def choice(value: Literal["a", "b"]) -> None: ...
def numbers(value: Literal[1, 2]) -> None: ...
def texts(value: list[str]) -> None: ...
def nested(value: list[list[int]]) -> None: ...
def anything(value: dict) -> None: ...  # type: ignore[type-arg]
def named(value: dict[str, float]) -> None: ...
def described(value: Annotated[str, "what it is"]) -> None: ...
def optional(value: str | None = None) -> None: ...
def nullable(value: str | None) -> None: ...
def nullable_with_default(value: int | None = 3) -> None: ...
def described_inside(value: Annotated[int, "how many"] | None = None) -> None: ...
def described_outside(value: Annotated[int | None, "how many"] = None) -> None: ...
def with_default(value: bool = False) -> None: ...
def with_described_items(value: list[Annotated[str, "a name"]]) -> None: ...


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (text, {"type": "string"}),
        (whole, {"type": "integer"}),
        (number, {"type": "number"}),
        (truth, {"type": "boolean"}),
        (choice, {"type": "string", "enum": ["a", "b"]}),
        (numbers, {"type": "integer", "enum": [1, 2]}),
        (texts, {"type": "array", "items": {"type": "string"}}),
        (nested, {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}}),
        (anything, {"type": "object"}),
        (named, {"type": "object", "additionalProperties": {"type": "number"}}),
        (described, {"type": "string", "description": "what it is"}),
        (optional, {"type": "string"}),
        (nullable, {"type": ["string", "null"]}),
        (nullable_with_default, {"type": ["integer", "null"], "default": 3}),
        (described_inside, {"type": "integer", "description": "how many"}),
        (described_outside, {"type": "integer", "description": "how many"}),
        (with_default, {"type": "boolean", "default": False}),
        (with_described_items, {"type": "array", "items": {"type": "string", "description": "a name"}}),
    ],
)
def test_type_becomes_a_schema(function: Callable[..., object], expected: dict[str, Any]) -> None:
    assert properties(function) == {"value": expected}


def test_only_parameters_without_default_are_required() -> None:
    def work(first: str, second: int = 2, *, third: float, fourth: str | None = None) -> None: ...

    assert parameters_of(work, without=ToolContext)["required"] == ["first", "third"]


def test_context_is_not_in_the_schema() -> None:
    def work(context: ToolContext, path: str) -> None: ...

    assert list(properties(work)) == ["path"]


def union(value: int | str) -> None: ...
def pair(value: tuple[int, int]) -> None: ...
def raw(value: object) -> None: ...
def several(*values: str) -> None: ...
def mixed(value: Literal["a", 1]) -> None: ...
def untyped(value) -> None: ...  # type: ignore[no-untyped-def]


@pytest.mark.parametrize("function", [union, pair, raw, several, mixed, untyped])
def test_unsupported_type_is_refused(function: Callable[..., object]) -> None:
    with pytest.raises(TypeError):
        parameters_of(function, without=ToolContext)


def test_tool_has_the_name_and_description_of_its_function() -> None:
    @tool(toolset="weather")
    def forecast(city: str) -> str:
        """Tell the weather
        of a city.

        This is for developers.
        """
        return city

    assert forecast.toolset == "weather"
    assert forecast.schema == {
        "type": "function",
        "function": {
            "name": "forecast",
            "description": "Tell the weather of a city.",
            "parameters": {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]},
        },
    }


def test_tool_without_a_docstring_is_refused() -> None:
    def forecast(city: str) -> str:
        return city

    with pytest.raises(TypeError, match="docstring"):
        tool(toolset="weather")(forecast)
