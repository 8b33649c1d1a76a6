"""Another program that uses the same file: `python -m tests.torture.peer state.db name`, run by its own interpreter.

It uses only the public calls of its own `SessionDB`, and reports to the journal as one writer once it is woken.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from itertools import count
from pathlib import Path
from typing import Any

from tests.torture.journal import SHARED, Message, Step, begun, done, failed, ready
from tests.torture.words import COMMON, nth_word


def main(path: Path, stream: str) -> None:
    """Append messages until this process is killed."""
    # The program's own output must not mix with the reports.
    reports, nowhere = os.dup(1), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 1)
    os.dup2(nowhere, 2)

    def report(line: str) -> None:
        os.write(reports, f"{line}\n".encode())

    db: Any = import_module("hermes_state").SessionDB(db_path=path)
    db.create_session(SHARED, "cli")
    report(ready(stream))
    os.read(0, 1)
    for number in count():
        word = nth_word(stream, number)
        report(begun(stream, Step("append", SHARED, (Message(word),))))
        try:
            db.append_message(SHARED, role="user", content=f"{word} {COMMON}")
            report(done(stream))
        except Exception as exc:  # noqa: BLE001 - any error means that the message is not acknowledged
            report(failed(stream, f"{type(exc).__name__}: {exc}"))


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2])
