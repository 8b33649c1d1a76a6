"""The entry point of the `hermes` program, written to start and end fast."""

from __future__ import annotations

import gc
import os
import signal
import sys
from typing import NoReturn


def main() -> NoReturn:
    """Run the command line of this process and exit.

    The garbage collector is off during imports and at exit, where it finds nothing but would take a sixth of the time
    of a short command. `Lazy.load` turns it on while a command runs.
    """
    gc.disable()
    _replace_closed_streams()
    try:
        from hermes.cli.app import run

        exit_code = run(sys.argv[1:])
    except KeyboardInterrupt:
        exit_code = 130
    signal.signal(signal.SIGINT, signal.SIG_DFL)  # another Ctrl-C ends the process without a traceback
    gc.freeze()
    sys.exit(exit_code)


def _replace_closed_streams() -> None:
    """Replace standard streams that the shell closed (`<&-`, `>&-`), which Python sets to None, by the null device."""
    if sys.stdin is None:
        sys.stdin = os.fdopen(os.open(os.devnull, os.O_RDONLY), encoding="utf-8")
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_WRONLY), "w", encoding="utf-8"))


if __name__ == "__main__":
    main()
