"""An operation of the store as an awaited method."""

from __future__ import annotations

import functools
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any, Concatenate, Generic, ParamSpec, Protocol, Self, TypeVar, overload

from hermes.state.operations import Operations

if TYPE_CHECKING:
    from hermes.state.row_types import ExportedSession

P = ParamSpec("P")
R = TypeVar("R")


class AsyncOperations(Protocol):
    """An object with awaited operations."""

    @property
    def _operations(self) -> Operations:
        """The synchronous operations."""
        ...

    async def _run(self, work: Callable[[], R], *, is_write: bool) -> R:
        """Run `work` on a thread, outside the event loop."""
        ...


class Operation(Generic[P, R]):
    """An operation of the store as an awaited method, with the same parameters and the same result."""

    def __init__(self, method: Callable[Concatenate[Any, P], R], *, is_write: bool) -> None:
        self.is_write = is_write
        self.__doc__ = method.__doc__
        self._method = method

    @overload
    def __get__(self, instance: None, owner: type[object]) -> Self: ...

    @overload
    def __get__(self, instance: AsyncOperations, owner: type[object]) -> Callable[P, Coroutine[Any, Any, R]]: ...

    def __get__(
        self, instance: AsyncOperations | None, owner: type[object]
    ) -> Self | Callable[P, Coroutine[Any, Any, R]]:
        if instance is None:
            return self

        @functools.wraps(self._method)
        async def call(*args: P.args, **kwargs: P.kwargs) -> R:
            # By name, so that a method that a store overrides is used.
            method: Callable[P, R] = getattr(instance._operations, self._method.__name__)
            return await instance._run(functools.partial(method, *args, **kwargs), is_write=self.is_write)

        return call


def read_operation(method: Callable[Concatenate[Any, P], R]) -> Operation[P, R]:
    """Wrap an operation that only reads."""
    return Operation(method, is_write=False)


def write_operation(method: Callable[Concatenate[Any, P], R]) -> Operation[P, R]:
    """Wrap an operation that writes."""
    return Operation(method, is_write=True)


async def iterate(awaited: AsyncOperations, rows: Iterator[ExportedSession]) -> AsyncIterator[ExportedSession]:
    """Yield rows that a thread reads, each when the caller asks for it."""
    while (row := await awaited._run(functools.partial(_next, rows), is_write=False)) is not None:
        yield row


def _next(rows: Iterator[ExportedSession]) -> ExportedSession | None:
    return next(rows, None)
