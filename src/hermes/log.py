"""Log records, without the price of loading `logging` before there is one to write."""

from __future__ import annotations

from collections.abc import Callable

_prepare: Callable[[], None] | None = None


def before_first(prepare: Callable[[], None]) -> None:
    """Have something done, such as opening a log file, before the first record is written."""
    global _prepare
    _prepare = prepare


def make_ready() -> None:
    """Do now what is to be done before the first record, because other libraries are going to write records too."""
    global _prepare
    prepare, _prepare = _prepare, None
    if prepare is not None:
        prepare()


def warn(name: str, message: str, *details: object) -> None:
    """Say that something is not as it should be."""
    import logging

    make_ready()
    logging.getLogger(name).warning(message, *details)


def inform(name: str, message: str, *details: object) -> None:
    """Say what was done."""
    import logging

    make_ready()
    logging.getLogger(name).info(message, *details)
