"""`hermes gateway` as a group: help, summaries and late imports."""

from __future__ import annotations

import pytest

from hermes.cli.gateway.group import COMMANDS, QUEUE_COMMANDS
from tests.cli.conftest import Hermes
from tests.cli.test_command import imported_by


@pytest.mark.parametrize("commands", [COMMANDS, QUEUE_COMMANDS], ids=["gateway", "queue"])
def test_summary_equals_that_of_the_command(commands: dict[str, object]) -> None:
    lazy = {**COMMANDS, **QUEUE_COMMANDS}
    assert {name: lazy[name].load().get_short_help_str(limit=200) for name in commands} == {
        name: lazy[name].summary for name in commands
    }


@pytest.mark.parametrize("args", [("gateway",), ("gateway", "--help"), ("gateway", "queue"), ("--help",)])
def test_help_imports_no_part_of_a_gateway(hermes: Hermes, args: tuple[str, ...]) -> None:
    imported = imported_by(hermes, *args)
    assert {
        each for each in imported if each.startswith(("hermes.gateway", "hermes.platforms", "hermes.state"))
    } == set()


def test_list_of_letters_needs_no_agent_and_no_event_loop(hermes: Hermes) -> None:
    hermes.store(("a", "cli", None, "hello"))
    imported = imported_by(hermes, "gateway", "queue", "list")
    assert imported & {"asyncio", "hermes.agent", "hermes.gateway", "prompt_toolkit"} == set()


def test_group_alone_prints_its_help(hermes: Hermes) -> None:
    done = hermes("gateway")
    assert (done.returncode, done.stderr) == (0, "")
    assert all(f"\n  {name} " in done.stdout for name in COMMANDS)
