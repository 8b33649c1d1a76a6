"""Log records, without the price of loading `logging` before there is one to write."""

from __future__ import annotations


def warn(name: str, message: str, *details: object) -> None:
    """Say that something is not as it should be."""
    import logging

    logging.getLogger(name).warning(message, *details)


def inform(name: str, message: str, *details: object) -> None:
    """Say what was done."""
    import logging

    logging.getLogger(name).info(message, *details)
