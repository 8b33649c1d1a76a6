"""Arguments written by models: clear mistakes are repaired, others are explained."""

from __future__ import annotations

import json
from contextlib import suppress
from typing import Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.tools.arguments import parse_arguments, usage
from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.schema import parameters_of
from hermes.errors import InvalidValue


def work(
    path: str,
    count: int = 3,
    ratio: float = 0.5,
    deep: bool = False,
    order: Literal["newest", "oldest"] | None = None,
    names: list[str] | None = None,
    sizes: list[int] | None = None,
    limits: dict[str, int] | None = None,
) -> None: ...


def touch(path: str | None) -> None: ...


PARAMETERS = parameters_of(work, without=ToolContext)


def parse(text: str) -> dict[str, Any]:
    return parse_arguments(text, PARAMETERS)


def complaint(text: str) -> str:
    with pytest.raises(InvalidValue) as caught:
        parse(text)
    return caught.value.message


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('{"path": "a"}', {"path": "a"}),
        ('  {"path": "a"}\n', {"path": "a"}),
        ('```json\n{"path": "a"}\n```', {"path": "a"}),
        ('```\n{"path": "a"}```', {"path": "a"}),
        (json.dumps('{"path": "a"}'), {"path": "a"}),
        ('{"path": "two\nlines"}', {"path": "two\nlines"}),
        ('{"path": "a", "order": null, "count": null}', {"path": "a"}),
        ('{"path": 42}', {"path": "42"}),
        ('{"path": "a", "count": "7"}', {"path": "a", "count": 7}),
        ('{"path": "a", "count": " -7 "}', {"path": "a", "count": -7}),
        ('{"path": "a", "count": 7.0}', {"path": "a", "count": 7}),
        ('{"path": "a", "count": "7.0"}', {"path": "a", "count": 7}),
        ('{"path": "a", "ratio": 1}', {"path": "a", "ratio": 1}),
        ('{"path": "a", "ratio": "0.25"}', {"path": "a", "ratio": 0.25}),
        ('{"path": "a", "ratio": "1e2"}', {"path": "a", "ratio": 100.0}),
        ('{"path": "a", "deep": "true"}', {"path": "a", "deep": True}),
        ('{"path": "a", "deep": "False"}', {"path": "a", "deep": False}),
        ('{"path": "a", "order": "Newest "}', {"path": "a", "order": "newest"}),
        ('{"path": "a", "names": "one"}', {"path": "a", "names": ["one"]}),
        ('{"path": "a", "names": "[\\"one\\", \\"two\\"]"}', {"path": "a", "names": ["one", "two"]}),
        ('{"path": "a", "sizes": ["1", 2]}', {"path": "a", "sizes": [1, 2]}),
        ('{"path": "a", "limits": "{\\"cpu\\": \\"4\\"}"}', {"path": "a", "limits": {"cpu": 4}}),
        ('{"path": "first", "path": "second"}', {"path": "second"}),
    ],
)
def test_clear_mistakes_are_repaired(written: str, meant: dict[str, Any]) -> None:
    found = parse(written)
    assert found == meant
    assert {name: type(value) for name, value in found.items()} == {name: type(value) for name, value in meant.items()}


@pytest.mark.parametrize("written", ["", "  ", "null", "{}"])
def test_empty_text_is_an_empty_object(written: str) -> None:
    assert complaint(written) == "path is missing"


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        ('{"path": "a"', "not JSON: Expecting ',' delimiter at character 12"),
        ("path=a", "not JSON: Expecting value at character 0, near 'path=a'"),
        ('["a"]', 'must be a JSON object, not ["a"]'),
        ('"a"', 'must be a JSON object, not "a"'),
        ("7", "must be a JSON object, not 7"),
        ("[" * 100_000, "nested too deeply"),
        ('{"path": "a", "ratio": NaN}', "NaN is not a number"),
        ('{"path": "a", "count": 1' + "0" * 5_000 + "}", "not JSON"),
        ('{"path": null}', "path must be string, not null"),
        ('{"path": true}', "path must be string, not true"),
        ('{"path": 1.5}', "path must be string, not 1.5"),
        ('{"path": ["a"]}', 'path must be string, not ["a"]'),
        ('{"path": "a", "count": "many"}', 'count must be integer, not "many"'),
        ('{"path": "a", "count": 1.5}', "count must be integer, not 1.5"),
        ('{"path": "a", "count": true}', "count must be integer, not true"),
        ('{"path": "a", "ratio": "1/2"}', 'ratio must be number, not "1/2"'),
        ('{"path": "a", "ratio": "1e999"}', 'ratio must be number, not "1e999"'),
        ('{"path": "a", "deep": 1}', "deep must be boolean, not 1"),
        ('{"path": "a", "deep": "yes"}', 'deep must be boolean, not "yes"'),
        ('{"path": "a", "order": "best"}', 'order must be one of newest, oldest, not "best"'),
        ('{"path": "a", "sizes": [1, "x"]}', 'sizes[1] must be integer, not "x"'),
        ('{"path": "a", "sizes": "1"}', 'sizes must be array of integer, not "1"'),
        ('{"path": "a", "limits": {"cpu": "x"}}', 'limits.cpu must be integer, not "x"'),
        ('{"path": "a", "limits": []}', "limits must be object, not []"),
        ('{"pat": "a"}', 'there is no parameter "pat", did you mean path?; path is missing'),
        ('{"path": "a", "zzz": 1}', 'there is no parameter "zzz"'),
        ('{"count": "x", "deep": 2}', 'path is missing; count must be integer, not "x"; deep must be boolean, not 2'),
        (json.dumps({"path": "a", "count": "x" * 500}), "..."),
    ],
)
def test_mistakes_are_explained_exactly(written: str, expected: str) -> None:
    found = complaint(written)
    assert expected in found
    assert len(found) < 300


def test_null_is_accepted_for_a_required_nullable_argument() -> None:
    assert parse_arguments('{"path": null}', parameters_of(touch, without=ToolContext)) == {"path": None}


def test_usage_lists_all_parameters() -> None:
    assert usage("work", PARAMETERS) == (
        "work(path: string, count: integer = 3, ratio: number = 0.5, deep: boolean = false,"
        ' order?: "newest" or "oldest", names?: array of string, sizes?: array of integer, limits?: object)'
    )


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=5,
)


@given(
    st.text()
    | VALUES.map(json.dumps)
    | st.dictionaries(st.sampled_from([*PARAMETERS["properties"]]), VALUES).map(json.dumps)
)
def test_any_text_is_parsed_or_explained(written: str) -> None:
    with suppress(InvalidValue):
        assert parse(written)["path"] is not None
