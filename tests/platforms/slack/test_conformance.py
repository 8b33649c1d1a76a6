"""The adapter of Slack keeps the rules of adapters."""

from __future__ import annotations

import asyncio

import pytest

from hermes.platforms.testing import CHECKS, Harness, run_checks
from hermes.platforms.testing.checks import Check
from tests.platforms.slack.adapters import SlackHarness


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_adapter_passes(check: Check) -> None:
    async def make() -> Harness:
        return SlackHarness()

    (result,) = asyncio.run(run_checks(make, (check,)))
    assert result.problem == ""
