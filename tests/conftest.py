"""What all tests of a run share: the database servers, which are started when a test asks for one."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support import servers

_place = pytest.StashKey[Path]()


def pytest_configure(config: pytest.Config) -> None:
    """Begin a run; workers find it by its name in the environment."""
    if not hasattr(config, "workerinput"):
        config.stash[_place] = servers.begin_run()


def pytest_unconfigure(config: pytest.Config) -> None:
    """End it, also after an interrupt."""
    if (place := config.stash.get(_place, None)) is not None:
        servers.end_run(place)


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    """Say which servers were asked for in vain."""
    if (place := config.stash.get(_place, None)) is not None:
        for line in servers.missing(place):
            terminalreporter.write_line(line, yellow=True)
