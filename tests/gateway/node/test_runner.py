"""A whole node with the real agent and the offline model: start, stop, restart, and refusals."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from hermes.config import Config
from hermes.errors import ConfigError, Conflict, HermesError, StoreUnavailable
from hermes.gateway.node.node_lock import running_gateways
from hermes.gateway.node.recovery import CLEAN_SHUTDOWN, take_clean_mark, write_clean_mark
from hermes.gateway.node.runner import GatewayRunner
from hermes.gateway.upkeep.expiry import HOLDER_SUFFIX
from hermes.state.provider import SessionDBProvider
from hermes_state import SessionDB
from tests.gateway.node.fake_adapter import FakeAdapter
from tests.support.waiting import wait_until

LIMIT_S = 30.0


def make_runner(home: Path, node: str = "n1", adapter: FakeAdapter | None = None, **options: Any) -> GatewayRunner:
    config = options.pop("config", None) or offline()
    assert isinstance(config, Config)
    opener = options.pop("opener", None) or (lambda: SessionDB(home / "state.db"))
    return GatewayRunner(
        config,
        home,
        node=node,
        adapters=lambda _: [] if adapter is None else [adapter],
        opener=opener,
        variables={"HOME": str(home)},
    )


def offline(**changes: Any) -> Config:
    config = Config()
    return replace(
        config,
        model=replace(config.model, provider="offline"),
        agent=replace(config.agent, auto_title=False),
        gateway=replace(config.gateway, lease_seconds=2.0, **changes),
    )


async def until(is_so: Callable[[], bool], what: str) -> None:
    deadline = asyncio.get_running_loop().time() + LIMIT_S
    while not is_so():
        assert asyncio.get_running_loop().time() < deadline, f"waited in vain: {what}"
        await asyncio.sleep(0.01)


def our_threads() -> set[str]:
    return {each.name for each in threading.enumerate() if each.name.startswith("hermes")}


async def connected(adapter: FakeAdapter) -> None:
    await until(lambda: adapter.receive is not None, "the adapter is connected")


def test_a_node_answers_messages_and_commands_and_stops_cleanly(home: Path) -> None:
    async def main() -> None:
        adapter = FakeAdapter()
        runner = make_runner(home, adapter=adapter)
        await runner.start()
        await connected(adapter)
        assert (await adapter.say("Hello there")).state == "accepted"
        await until(lambda: len(adapter.sent) == 1, "a reply")
        await adapter.say("/status")
        await until(lambda: len(adapter.sent) == 2, "the status")
        assert "Node: n1" in adapter.texts[1]
        assert adapter.sent[0].answers
        assert await runner.stop()
        assert adapter.stops == 1
        assert (home / CLEAN_SHUTDOWN).exists()

    before = our_threads()
    asyncio.run(main())
    wait_until(lambda: our_threads() <= before, "all threads end")
    assert running_gateways(home) == []


def test_run_ends_after_a_stop_is_requested_and_a_second_stop_does_nothing(home: Path) -> None:
    async def main() -> None:
        runner = make_runner(home)
        task = asyncio.create_task(runner.run())
        await until(lambda: runner._is_started, "started")
        runner.request_stop()
        await asyncio.wait_for(task, LIMIT_S)
        assert not runner.wants_restart
        assert await runner.stop()

    asyncio.run(main())


def test_a_restart_is_requested_by_the_command_of_an_admin(home: Path) -> None:
    async def main() -> None:
        adapter = FakeAdapter()
        runner = make_runner(home, adapter=adapter, config=offline(admins=("telegram:7",)))
        task = asyncio.create_task(runner.run())
        await connected(adapter)
        await adapter.say("/restart")
        await asyncio.wait_for(task, LIMIT_S)
        assert runner.wants_restart

    asyncio.run(main())


@pytest.mark.parametrize("stop", [GatewayRunner.request_stop, GatewayRunner.expel])
def test_a_stop_that_is_requested_during_a_restart_is_the_end(
    home: Path, stop: Callable[[GatewayRunner], None]
) -> None:
    async def main() -> None:
        runner = make_runner(home)
        running = asyncio.create_task(runner.run())
        await until(lambda: runner.started_at > 0, "the start")
        runner.request_restart()
        stop(runner)
        await asyncio.wait_for(running, LIMIT_S)
        assert not runner.wants_restart

    asyncio.run(main())


def test_a_node_that_stops_cannot_start_turns_again(home: Path) -> None:
    async def main() -> None:
        runner = make_runner(home)
        await runner.start()
        runner.undrain()
        runner.request_stop()
        with pytest.raises(Conflict, match="is stopping"):
            runner.undrain()
        await runner.stop()
        with pytest.raises(Conflict, match="is stopping"):
            runner.undrain()

    asyncio.run(main())


def test_two_nodes_share_a_home_and_one_chat_is_served_by_one_at_a_time(home: Path) -> None:
    async def main() -> None:
        first, second = FakeAdapter(), FakeAdapter()
        nodes = [make_runner(home, "n1", first), make_runner(home, "n2", second)]
        for node in nodes:
            await node.start()
        await connected(first)
        await connected(second)
        for number in range(4):
            await (first, second)[number % 2].say(f"message {number}", user=str(number))
        await until(lambda: len(first.sent) + len(second.sent) == 4, "four replies")
        answered = [each.chat_id for each in (*first.sent, *second.sent)]
        assert sorted(answered) == ["0", "1", "2", "3"]
        for node in nodes:
            assert await node.stop()

    asyncio.run(main())


def test_a_second_process_of_the_same_node_is_refused_and_the_first_one_continues(home: Path) -> None:
    async def main() -> None:
        adapter = FakeAdapter()
        runner = make_runner(home, adapter=adapter)
        await runner.start()
        with pytest.raises(Conflict, match="is running with this home already"):
            await make_runner(home).run()
        await connected(adapter)
        await adapter.say("Hello")
        await until(lambda: len(adapter.sent) == 1, "a reply")
        assert await runner.stop()

    asyncio.run(main())


def refuse() -> SessionDBProvider:
    raise StoreUnavailable("the database cannot be reached")


def fail_late(home: Path) -> Callable[[], SessionDBProvider]:
    """A store that is opened, and fails when lanes are resumed."""

    class Broken(SessionDB):
        @property
        def lanes(self) -> object:  # type: ignore[override]
            raise StoreUnavailable("the database cannot be reached")

    return lambda: Broken(home / "state.db")


@pytest.mark.parametrize("fault", ["store", "late", "config", "toolset", "adapters"])
def test_a_start_that_fails_raises_and_leaves_no_thread_no_lock_and_no_file(home: Path, fault: str) -> None:
    async def main() -> None:
        options: dict[str, Any] = {}
        error: type[Exception] = StoreUnavailable
        if fault == "store":
            options["opener"] = refuse
        elif fault == "late":
            options["opener"] = fail_late(home)
        elif fault == "config":
            options["config"], error = offline(admins=("telegram:*",)), ConfigError
        elif fault == "toolset":
            options["config"], error = replace(offline(), tools={"telegram": ("memory", "termnal")}), ConfigError
        runner = make_runner(home, **options)
        if fault == "adapters":
            runner._make_adapters = lambda _: 1 / 0  # type: ignore[assignment, return-value]
            error = ZeroDivisionError
        with pytest.raises(error):
            await runner.start()
        assert await runner.stop()

    before = our_threads()
    asyncio.run(main())
    wait_until(lambda: our_threads() <= before, "all threads end")
    assert running_gateways(home) == []
    assert not (home / CLEAN_SHUTDOWN).exists()


def test_a_node_can_be_started_after_a_start_that_failed(home: Path) -> None:
    async def main() -> None:
        with pytest.raises(HermesError):
            await make_runner(home, opener=refuse).run()
        runner = make_runner(home)
        await runner.start()
        assert await runner.stop()

    asyncio.run(main())


def test_a_drained_node_accepts_messages_and_answers_them_after_undrain(home: Path) -> None:
    async def main() -> None:
        adapter = FakeAdapter()
        runner = make_runner(home, adapter=adapter)
        await runner.start()
        await connected(adapter)
        runner.drain()
        assert (await adapter.say("Hello")).state == "accepted"
        await asyncio.sleep(0.3)
        assert adapter.sent == []
        runner.undrain()
        await until(lambda: len(adapter.sent) == 1, "a reply")
        assert await runner.stop()

    asyncio.run(main())


def test_the_leases_of_the_last_process_of_a_node_end_when_the_node_starts_again(home: Path) -> None:
    async def main() -> None:
        adapter = FakeAdapter()
        runner = make_runner(home, adapter=adapter)
        await runner.start()
        await connected(adapter)
        runner.drain()
        await adapter.say("Hello")
        # As a process that dies: the lane is leased, and nothing is given back.
        claim = await runner.db.turns.claim_next(runner.settings.holder, 600.0)
        assert claim is not None
        await runner.db.turns.start(claim.lease, [row["id"] for row in claim.messages])
        runner.parts.expelled.set()
        await runner.stop()
        after = FakeAdapter()
        again = make_runner(home, adapter=after)
        await again.start()
        await until(lambda: len(after.sent) == 1, "the message is answered by the next process")
        assert await again.stop()

    asyncio.run(main())


def test_the_leases_of_the_last_process_end_also_if_a_start_in_between_has_failed(home: Path) -> None:
    def fail() -> SessionDBProvider:
        raise StoreUnavailable("the database is not up yet")

    async def main() -> None:
        runner = make_runner(home, adapter=FakeAdapter())
        await runner.start()
        # As a process that dies: the account is leased, and nothing is given back.
        assert await runner.db.connectors.acquire("connector:bot", runner.settings.holder, 600.0) is not None
        runner.parts.expelled.set()
        await runner.stop()
        for _ in range(2):
            with pytest.raises(StoreUnavailable):
                await make_runner(home, opener=fail).start()
        again = make_runner(home, adapter=FakeAdapter())
        await again.start()
        assert await again.db.connectors.holder("connector:bot") is None
        assert await again.stop()

    asyncio.run(main())


def test_a_chat_whose_session_was_ending_when_its_node_died_is_answered_when_the_node_starts_again(home: Path) -> None:
    async def main() -> None:
        adapter = FakeAdapter()
        runner = make_runner(home, adapter=adapter)
        await runner.start()
        await connected(adapter)
        runner.drain()
        await adapter.say("Hello")
        # As a process that dies while it ends the session: nothing is given back.
        assert await runner.db.turns.claim_next(runner.settings.holder + HOLDER_SUFFIX, 600.0) is not None
        runner.parts.expelled.set()
        await runner.stop()
        after = FakeAdapter()
        again = make_runner(home, adapter=after)
        await again.start()
        await until(lambda: len(after.sent) == 1, "the message is answered by the next process")
        assert await again.stop()

    asyncio.run(main())


def test_an_account_that_the_last_process_of_a_node_polled_is_free_when_the_node_starts_again(home: Path) -> None:
    async def main() -> None:
        runner = make_runner(home, adapter=FakeAdapter())
        await runner.start()
        # As a process that dies: the account is leased, and nothing is given back.
        assert await runner.db.connectors.acquire("connector:bot", runner.settings.holder, 600.0) is not None
        assert await runner.db.connectors.acquire("connector:other", "south/1", 600.0) is not None
        runner.parts.expelled.set()
        await runner.stop()
        again = make_runner(home, adapter=FakeAdapter())
        await again.start()
        assert await again.db.connectors.holder("connector:bot") is None
        assert await again.db.connectors.holder("connector:other") is not None
        assert await again.stop()

    asyncio.run(main())


def test_the_mark_of_a_clean_end_is_taken_once(tmp_path: Path) -> None:
    assert not take_clean_mark(tmp_path)
    write_clean_mark(tmp_path)
    assert take_clean_mark(tmp_path)
    assert not take_clean_mark(tmp_path)


def test_a_directory_instead_of_the_mark_stops_no_start_and_no_end(tmp_path: Path) -> None:
    (tmp_path / CLEAN_SHUTDOWN).mkdir()
    write_clean_mark(tmp_path)
    assert not take_clean_mark(tmp_path)


def test_hooks_see_the_start_and_the_end_of_a_node(home: Path) -> None:
    hooks = home / "hooks" / "noting"
    hooks.mkdir(parents=True)
    (hooks / "HOOK.yaml").write_text("name: noting\nevents: [gateway:startup, gateway:shutdown]\n")
    (hooks / "handler.py").write_text(
        "import pathlib\n"
        "async def handle(event, context):\n"
        f"    with open({str(home / 'noted')!r}, 'a') as file:\n"
        "        file.write(event + ' ' + context['node'] + '\\n')\n"
    )

    async def main() -> None:
        runner = make_runner(home)
        await runner.start()
        assert await runner.stop()

    asyncio.run(main())
    assert (home / "noted").read_text().splitlines() == ["gateway:startup n1", "gateway:shutdown n1"]
