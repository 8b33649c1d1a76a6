"""Run `hermes`, or a program that uses it, at a chosen time.

    hermes_at.py SECONDS SEED hermes ARGUMENTS...
    hermes_at.py SECONDS SEED python FILE

The clock of the process stands still at SECONDS since 1970; only `time.monotonic` goes on. SEED decides the random part
of new ids. The transcripts in the documents are made this way, so that they are the same on every day.
"""

from __future__ import annotations

import os
import runpy
import sys
import time
from random import Random


def main(seconds: str, seed: str, program: str, *arguments: str) -> None:
    """Set the clock and the random numbers of this process, then run the program."""
    set_clock(float(seconds))
    vars(os)["urandom"] = Random(seed).randbytes  # noqa: S311 - ids for documents, not secrets
    if program == "python":
        runpy.run_path(arguments[0], run_name="__main__")
        return
    sys.argv = [program, *arguments]

    from hermes.cli.main import main as hermes

    hermes()


def set_clock(now: float) -> None:
    """Replace the functions of `time` that read the clock."""
    localtime, gmtime, strftime = time.localtime, time.gmtime, time.strftime
    vars(time).update(
        time=lambda: now,
        localtime=lambda at=None: localtime(now if at is None else at),
        gmtime=lambda at=None: gmtime(now if at is None else at),
        strftime=lambda form, at=None: strftime(form, localtime(now) if at is None else at),
    )


if __name__ == "__main__":
    main(*sys.argv[1:])
