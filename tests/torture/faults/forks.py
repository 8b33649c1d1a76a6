"""Processes that fork while their threads write."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path
from random import Random

from hermes.clock import system_clock
from tests.torture.fault import Fault, Trial
from tests.torture.forked import Forked, Pipe
from tests.torture.outcome import Outcome
from tests.torture.supervisor import Supervisor
from tests.torture.words import letters
from tests.torture.writers import WriterThread, never

THREADS = 2
FORKS = 8
ACTS = 12
KILLED_AFTER_S = 0.03
LIMIT_S = 30
MANNERS = IN_ORDER, AT_ONCE, KILLED = "in order", "at once", "killed"


def fork_under_load(trial: Trial) -> Outcome:
    """Fork again and again while threads write; each child writes with the store it inherited, then exits."""
    seed = trial.random.getrandbits(32)
    with Supervisor(trial.store, trial.random) as supervisor:
        supervisor.add_process(Forked(lambda pipe: _write_and_fork(trial.store, Random(seed), pipe)))
        supervisor.finish()
        return supervisor.judge(FORKS)


def _write_and_fork(path: Path, random: Random, pipe: Pipe) -> None:
    over = threading.Event()
    writers = [
        WriterThread(path, letters(number, 4), Random(number), pipe.send_line, system_clock)
        for number in range(THREADS)
    ]
    threads = [threading.Thread(target=writer.run_and_close, args=(over.is_set,)) for writer in writers]
    for thread in threads:
        thread.start()
    for number in range(FORKS):
        inherited = WriterThread(path, letters(THREADS + number, 4), random, pipe.send_line, system_clock)
        child = os.fork()
        if child == 0:
            _write_in_child(inherited, pipe.after_fork().send_line, random.choice(MANNERS))
        inherited.close()
        code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        assert code in (0, -signal.SIGKILL), f"a child ended with {code}"
    over.set()
    for thread in threads:
        thread.join()


def _write_in_child(writer: WriterThread, report: Callable[[str], None], manner: str) -> None:
    """Write a little, within a time limit, and exit."""
    signal.alarm(LIMIT_S)
    left = iter(range(ACTS))
    writer.use_pipe(report)
    if manner == KILLED:
        threading.Timer(KILLED_AFTER_S, os.kill, (os.getpid(), signal.SIGKILL)).start()
        writer.run(never)
    writer.run(lambda: next(left, None) is None)
    if manner == IN_ORDER:
        writer.close()
    os._exit(0)


FAULTS = (Fault("forks", "forked while threads write; the children write too, and end somehow", fork_under_load, 6),)
