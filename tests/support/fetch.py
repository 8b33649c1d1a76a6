"""Fetches what the tests need of the system before any of them runs: `python -m tests.support.fetch`.

Each test that needs something would fetch it too, but within the time that a test has. What cannot be had is told of
when the tests are over.
"""

from __future__ import annotations

import contextlib
import os

from tests.support import packages, shells
from tests.support.servers import KINDS


def main() -> None:
    """Fetch the servers that are not given, and the shells."""
    for kind in KINDS.values():
        if kind.variable not in os.environ:
            with contextlib.suppress(OSError):
                kind.find()
    if absent := shells.absent():
        packages.install(*absent)


if __name__ == "__main__":
    main()
