"""Any argument of any operation raises only errors of Hermes; new operations are checked automatically."""

from __future__ import annotations

import inspect
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from hermes.errors import HermesError, InvalidValue
from hermes.state.provider import SessionDBProvider
from hermes.state.row_types import StartFields
from hermes_state import SessionDB
from tests.support.calls import READS, WRITES, Call, Sample, fill
from tests.support.conversations import session_of, start

CALLS: dict[str, Call] = {**READS, **WRITES}


class Text(str):
    """A string subclass."""

    __slots__ = ()


WRONG: list[Any] = [
    None,
    True,
    -5,
    1.5,
    math.nan,
    math.inf,
    2**70,
    10**400,
    "",
    "\ud800",
    "a\0b",
    Text("s"),
    b"x",
    [None],
    [["x"]],
    {1: 2},
    {"a": object()},
    object(),
]


class Recorder:
    """A stand-in for a store that records each call and its arguments."""

    def __init__(self) -> None:
        self.called: tuple[str, tuple[Any, ...], dict[str, Any]] = ("", (), {})

    def __getattr__(self, name: str) -> Any:
        def note(*args: Any, **kwargs: Any) -> dict[str, bool]:
            self.called = (name, args, kwargs)
            return {"ok": True}

        return note


@pytest.fixture
def sample(store: SessionDBProvider, tmp_path: Path) -> Sample:
    """Create a store with rows in every table."""
    with SessionDB(tmp_path / "other.db") as other:
        return fill(store, other, tmp_path / "other.db")


def wrong_calls(call: Call, sample: Sample) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the arguments of an operation, each one replaced in turn by an invalid value."""
    recorder = Recorder()
    call(recorder, sample)  # type: ignore[arg-type]
    name, args, kwargs = recorder.called
    signature = inspect.signature(getattr(SessionDBProvider, name))
    bound = signature.bind(None, *args, **kwargs)
    right = {key: value for key, value in bound.arguments.items() if key not in ("self", "fields")}
    parameters = [key for key in signature.parameters if key not in ("self", "fields")]
    if "fields" in signature.parameters:
        parameters += [key for key in StartFields.__annotations__ if key not in parameters]
    for parameter in parameters:
        for wrong in WRONG:
            yield name, {**right, parameter: wrong}


@pytest.mark.parametrize("operation", CALLS)
def test_only_errors_of_hermes_come_out(store: SessionDBProvider, sample: Sample, operation: str) -> None:
    escaped = []
    for name, arguments in wrong_calls(CALLS[operation], sample):
        try:
            answer = getattr(store, name)(**arguments)
            if name == "iter_export":
                list(answer)
        except HermesError:
            continue
        except Exception as error:  # noqa: BLE001 - whatever escapes is what this looks for
            escaped.append(f"{arguments!a:.200}: {error!r:.200}")
    assert escaped == []


@pytest.mark.parametrize(
    "field",
    [
        "input_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "api_call_count",
        "estimated_cost_usd",
        "actual_cost_usd",
    ],
)
@pytest.mark.parametrize("absolute", [False, True])
def test_tokens_and_costs_are_not_negative(store: SessionDBProvider, field: str, absolute: bool) -> None:
    start(store, "s")
    store.update_token_counts("s", absolute=True, **{field: 5})  # type: ignore[arg-type]
    with pytest.raises(InvalidValue, match=field):
        store.update_token_counts("s", absolute=absolute, **{field: -1})  # type: ignore[arg-type]
    assert session_of(store, "s")[field] == 5


def test_the_tokens_of_a_message_are_not_negative(store: SessionDBProvider) -> None:
    start(store, "s")
    with pytest.raises(InvalidValue, match="token_count"):
        store.append_message("s", "user", "x", token_count=-1)
    with pytest.raises(InvalidValue, match="token_count"):
        store.append_messages("s", [{"role": "user", "content": "x", "token_count": -1}])
    assert store.message_count("s") == 0


def test_an_absolute_count_may_be_lower_than_before(store: SessionDBProvider) -> None:
    start(store, "s")
    store.update_token_counts("s", input_tokens=5)
    store.update_token_counts("s", input_tokens=3, absolute=True)
    assert session_of(store, "s")["input_tokens"] == 3


@pytest.mark.parametrize("path", ["", "\0", "a\0b", "\ud800", ":memory:", "file:x", b"x", 5, None])
def test_invalid_path_is_refused(store: SessionDBProvider, path: Any) -> None:
    with pytest.raises(InvalidValue):
        store.import_database(path)
