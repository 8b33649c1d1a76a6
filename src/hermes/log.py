"""Write log records, and load `logging` only when the first one is written."""

from __future__ import annotations

from collections.abc import Callable

_prepare: Callable[[], None] | None = None


def before_first(prepare: Callable[[], None]) -> None:
    """Register a function, such as one that opens a log file, to run before the first record is written."""
    global _prepare
    _prepare = prepare


def make_ready() -> None:
    """Run the registered function now, because other libraries may write records too."""
    global _prepare
    prepare, _prepare = _prepare, None
    if prepare is not None:
        prepare()


def warn(name: str, message: str, *details: object) -> None:
    """Write a warning."""
    import logging

    make_ready()
    logging.getLogger(name).warning(message, *details)


def inform(name: str, message: str, *details: object) -> None:
    """Write an info record."""
    import logging

    make_ready()
    logging.getLogger(name).info(message, *details)
