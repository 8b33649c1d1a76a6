"""Downloads and installs what the tests need before they run: `python -m tests.support.fetch`.

Each test that needs something would fetch it too, but within its own time limit. What cannot be fetched is reported at
the end of the test run.
"""

from __future__ import annotations

import contextlib
import os

from tests.support import chromium, crabline, emulate, packages, shells, synapse
from tests.support.servers import KINDS


def main() -> None:
    """Fetch the servers and the shells that are missing."""
    for kind in KINDS.values():
        if kind.variable not in os.environ:
            with contextlib.suppress(OSError):
                kind.find()
    with contextlib.suppress(OSError):
        crabline.find()
    with contextlib.suppress(OSError):
        emulate.find()
    with contextlib.suppress(OSError):
        synapse.find()
    with contextlib.suppress(OSError):
        chromium.find()
    if absent := shells.missing_shells():
        packages.install(*absent)


if __name__ == "__main__":
    main()
