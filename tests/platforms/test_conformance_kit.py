"""The conformance kit: the example of the guide passes, and adapters that break a rule do not."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from hermes.gateway.engine.ports import Inbound, MaybeSent, NotSent
from hermes.platforms.base import Part
from hermes.platforms.testing import CHECKS, Harness, Result, run_checks
from tests.platforms.pager import PagerHarness, code_of_the_page

BreakIt = Callable[[PagerHarness], None]


def results_of(break_it: BreakIt | None = None, names: tuple[str, ...] = ()) -> list[Result]:
    async def make() -> Harness:
        harness = await PagerHarness.start()
        if break_it is not None:
            break_it(harness)
        return harness

    chosen = [each for each in CHECKS if not names or getattr(each, "__name__", "") in names]
    return asyncio.run(run_checks(make, chosen))


def test_the_adapter_of_the_guide_passes_every_check() -> None:
    results = results_of()
    assert [each for each in results if each.problem] == []
    assert len(results) == len(CHECKS) == 10


def acknowledge_first(harness: PagerHarness) -> None:
    take = harness.adapter._take  # type: ignore[attr-defined]

    async def take_early(line: bytes) -> None:
        harness._acknowledged.add(1)
        await take(line)

    harness.adapter._take = take_early  # type: ignore[attr-defined]


def change_ids(harness: PagerHarness) -> None:
    adapter = harness.adapter
    start = adapter.start

    async def start_with_new_ids(receive: Callable[[Inbound], object]) -> None:
        count = 0

        async def renumber(inbound: Inbound) -> object:
            nonlocal count
            count += 1
            return await receive(Inbound(inbound.text, inbound.source, message_id=f"n{count}"))  # type: ignore[misc]

        await start(renumber)  # type: ignore[arg-type]

    adapter.start = start_with_new_ids  # type: ignore[method-assign]


def repeat_lost_messages(harness: PagerHarness) -> None:
    adapter = harness.adapter
    post = adapter.post

    async def post_twice(part: Part) -> str:
        try:
            return await post(part)
        except MaybeSent:
            while adapter._writer is None:  # type: ignore[attr-defined]
                await asyncio.sleep(0.01)
            return await post(part)

    adapter.post = post_twice  # type: ignore[method-assign]


def forget_the_pause(harness: PagerHarness) -> None:
    post = harness.adapter.post

    async def post_without_pause(part: Part) -> str:
        try:
            return await post(part)
        except NotSent as failure:
            raise NotSent(failure.reason) from None

    harness.adapter.post = post_without_pause  # type: ignore[method-assign]


def send_it_all(harness: PagerHarness) -> None:
    async def post_long(part: Part) -> str:
        harness._texts[part.key] = part.delivery.text
        return part.key

    harness.adapter.post = post_long  # type: ignore[method-assign]


@pytest.mark.parametrize(
    ("break_it", "name", "problem"),
    [
        (acknowledge_first, "stores_before_it_acknowledges", "acknowledged before it was stored"),
        (change_ids, "accepts_a_redelivered_message_once", "the gateway accepted"),
        (repeat_lost_messages, "never_repeats_what_may_have_arrived", "the platform shows"),
        (forget_the_pause, "respects_rate_limits", "is not passed on"),
        (send_it_all, "splits_long_texts", "longer than the limit"),
    ],
)
def test_an_adapter_that_breaks_a_rule_is_caught(break_it: BreakIt, name: str, problem: str) -> None:
    (result,) = results_of(break_it, (name,))
    assert problem in result.problem


def test_the_adapter_of_the_guide_registers_by_its_entry_point(tmp_path: Path) -> None:
    (tmp_path / "hermes_pager.py").write_text(code_of_the_page(), encoding="utf-8")
    info = tmp_path / "hermes_pager-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hermes-pager\nVersion: 1\n")
    (info / "entry_points.txt").write_text("[hermes.platforms]\npager = hermes_pager:make\n")
    program = (
        "from pathlib import Path\n"
        "from hermes.gateway.platform import Platform\n"
        "from hermes.gateway.platform_config import PlatformConfig\n"
        "from hermes.platforms.registry import make_adapters, platform_names\n"
        "config = PlatformConfig(enabled=True, extra={'base_url': '127.0.0.1:7070'})\n"
        "made = make_adapters({Platform.from_stored('pager'): config}, Path('.'))\n"
        "broken = make_adapters({Platform.from_stored('pager'): PlatformConfig(enabled=True)}, Path('.'))\n"
        "print(platform_names()[-1], made.adapters[0].describe(), made.problems, sorted(broken.problems))\n"
    )
    paths = f"{tmp_path}{os.pathsep}{Path(__file__).parents[2] / 'src'}"
    done = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "PYTHONPATH": paths},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stdout == "pager pager://127.0.0.1:7070 {} ['pager']\n", done.stderr
