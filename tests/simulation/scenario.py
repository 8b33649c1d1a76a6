"""A simulated story: people write, nodes crash, freeze and restart, the platform loses connections; then all heals."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

from hermes.gateway.engine.ports import Inbound
from hermes.state.provider import SessionDBProvider
from tests.simulation.world import LEASE_S, Faults, Node, World, source_of

STORY_S = 60.0
HEALING_S = 900
NODES = ("north", "south", "west")
CHATS = (("d1", ("alice",)), ("d2", ("bob",)), ("g1", ("alice", "bob", "carol")))
TEXTS = ("hello", "and then?", "/queue task", "/queue more", "/new", "/stop", "/status", "/steer left", "/undo nothing")
WEIGHTS = (8, 6, 4, 3, 1, 1, 1, 2, 0)


async def run_story(seed: int, provider: SessionDBProvider, directory: Path) -> World:
    """Run the story of a seed to its healed end."""
    rng = random.Random(seed)
    world = World(
        provider=provider,
        directory=directory,
        rng=rng,
        mode=rng.choice(("interrupt", "interrupt", "queue", "steer", "collect")),
        faults=Faults(
            not_sent=rng.choice((0.0, 0.2)),
            maybe_sent=rng.choice((0.0, 0.1)),
            can_tell=rng.random() < 0.5,
            turn_errors=rng.choice((0.0, 0.1)),
            brain_bugs=rng.choice((0.0, 0.05)),
        ),
        prefix=f"s{seed}-",
    )
    try:
        await _tell(world, rng)
    finally:
        world.end()
    return world


async def _tell(world: World, rng: random.Random) -> None:
    names = NODES[: rng.choice((1, 1, 2, 3))]
    for name in names:
        world.start_node(name, skew_s=rng.choice((0.0, 0.0, 90.0, -90.0)))
    people = [asyncio.create_task(_write(world, rng, number)) for number in range(rng.randrange(4, 14))]
    troubles = [asyncio.create_task(_trouble(world, rng, names)) for _ in range(rng.randrange(0, 5))]
    await asyncio.gather(*people, *troubles)
    await _heal(world, names)


async def _write(world: World, rng: random.Random, number: int) -> None:
    """Write a message, and deliver it until a node has it; platforms deliver some messages twice."""
    await asyncio.sleep(rng.random() * STORY_S * rng.choice((0.05, 1.0)))
    chat, users = rng.choice(CHATS)
    user = rng.choice(users)
    text = rng.choices(TEXTS, WEIGHTS)[0]
    text = text if text.startswith(("/new", "/stop", "/status")) else f"{text} {chat} {user} {number}"
    await deliver(world, rng, chat, user, text, f"{world.prefix}m{number}", copies=rng.choice((1, 1, 1, 2)))


async def deliver(
    world: World, rng: random.Random, chat: str, user: str, text: str, message_id: str, copies: int = 1
) -> None:
    """Deliver a message as a platform does: again after a while if no node has confirmed it."""
    inbound = Inbound(text=text, source=source_of(world.prefix, chat, user), message_id=message_id)
    done = 0
    while done < copies:
        node = rng.choice(list(world.nodes.values()))
        try:
            admission = await asyncio.wait_for(node.receive(inbound), 5.0)
        except TimeoutError:
            continue
        if admission.state == "refused":
            await asyncio.sleep(1.0)
            continue
        world.accepted[message_id] = inbound
        done += 1


async def _trouble(world: World, rng: random.Random, names: tuple[str, ...]) -> None:
    """Let a node have trouble at some time."""
    await asyncio.sleep(rng.random() * STORY_S)
    name = rng.choice(names)
    node = world.nodes[name]
    match rng.choice(("crash", "crash", "crash op", "freeze", "restart", "cut off")):
        case "crash":
            node.crash()
            await asyncio.sleep(rng.choice((0.1, 3.0, LEASE_S * 2)))
            _start_again(world, name, node)
        case "crash op":
            node.host.crash_at = node.host.op_count + rng.randrange(1, 60)
            await asyncio.sleep(10.0)
            node.crash()
            _start_again(world, name, node)
        case "freeze":
            node.host.frozen_until = asyncio.get_running_loop().time() + LEASE_S * rng.choice((0.5, 1.5, 4.0))
        case "restart":
            if not node.host.is_dead:
                await asyncio.wait({asyncio.create_task(node.stop())}, timeout=60.0)
                node.crash()
                _start_again(world, name, node)
        case "cut off":
            node.host.is_cut_off = True
            await asyncio.sleep(rng.choice((0.5, 5.0, LEASE_S * 2)))
            node.host.is_cut_off = False


def _start_again(world: World, name: str, node: Node) -> None:
    if world.nodes[name] is node:
        world.start_node(name)


async def _heal(world: World, names: tuple[str, ...]) -> None:
    """Let everything work again, write once more in each chat, and wait until nothing is left to do."""
    world.faults.not_sent = world.faults.maybe_sent = world.faults.turn_errors = world.faults.brain_bugs = 0.0
    for name in names:
        node = world.nodes[name]
        node.host.is_cut_off, node.host.frozen_until, node.host.crash_at = False, 0.0, None
        if node.host.is_dead:
            world.start_node(name)
    await _wait_for_quiet(world)
    for number, (chat, users) in enumerate(CHATS):
        await deliver(world, world.rng, chat, users[0], f"the end {chat} {users[0]}", f"{world.prefix}end{number}")
    await _wait_for_quiet(world)


async def _wait_for_quiet(world: World) -> None:
    left: list[object] = []
    for _ in range(HEALING_S):
        await asyncio.sleep(1.0)
        left = _left_to_do(world)
        if not left:
            return
    raise AssertionError(f"not quiet after {HEALING_S} s: {left}")


def _left_to_do(world: World) -> list[object]:
    """Return what is not finished: lanes that nodes have, messages that wait, and replies that were not sent."""
    store = world.provider
    if (totals := store.inbox.totals()).leased:
        return [totals, *store.turns.running()]
    rows = [store.inbox.find(message_id)[0] for message_id in world.accepted]
    waiting = [each for each in rows if each["state"] in ("accepted", "running")]
    return [*waiting, *store.outbox.pending(limit=3)]
