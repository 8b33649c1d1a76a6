"""What all tests of a run share: ample time, and the servers and shells that are had when a test asks for one."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.state.recall import discovery
from hermes.state.search import finder
from hermes.state.sqlite.search import index_state
from hermes.state.sqlite.store import indexer
from tests.support import servers, shells
from tests.support.temporary_directory import choose_temporary_directory

AMPLE_S = 30.0

_place = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin a run; workers find it by its name in the environment."""
    # A run in the background of a shell is started deaf to Ctrl-C, and so would everything be that it starts.
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
    choose_temporary_directory()
    if not hasattr(config, "workerinput"):
        config.stash[_place] = servers.begin_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End it, also after an interrupt."""
    if (place := config.stash.get(_place, None)) is not None:
        servers.end_run(place)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which servers and shells were asked for in vain."""
    if (place := config.stash.get(_place, None)) is not None:
        for line in (*servers.missing(place), *shells.missing(place)):
            terminalreporter.write_line(line, yellow=True)


@pytest.fixture(scope="session", autouse=True)
def ample_time() -> Iterator[None]:
    """Searches that end when they are done: what is found must not depend on how busy the machine is."""
    with pytest.MonkeyPatch.context() as patch:
        for module, name in ((finder, "BUDGET_S"), (finder, "PART_BUDGET_S"), (discovery, "BUDGET_S")):
            patch.setattr(module, name, AMPLE_S)
        yield


@pytest.fixture(scope="session", autouse=True)
def indexing_without_pauses() -> Iterator[None]:
    """Stores that index most messages in the calls that store them, and the rest on close.

    So the content of the index does not depend on the timing of a thread, and tests search it, not only the rows.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(indexer, "MANY", index_state.DUE)
        patch.setattr(indexer, "FEW", 1)
        patch.setattr(indexer, "CLOSE_S", AMPLE_S)
        yield
