"""Hooks: which handlers are called for an event, and that none of them can do harm."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from hermes.gateway.upkeep import hook_files
from hermes.gateway.upkeep.hooks import EVENTS, Handler, Hooks

CONTEXT = {"session_key": "agent:main:telegram:dm:1", "session_id": "s1", "platform": "telegram", "reason": "test"}

WRITES = """
import json, pathlib
def handle(event, context):
    with open(pathlib.Path(__file__).parent / "seen", "a") as file:
        file.write(json.dumps([event, context]) + "\\n")
"""
WRITES_LATER = """
import asyncio, json, pathlib
async def handle(event, context):
    await asyncio.sleep(0)
    (pathlib.Path(__file__).parent / "seen").write_text(json.dumps([event, context]) + "\\n")
"""


def install(home: Path, name: str, code: str, settings: str = "events: ['*']\n") -> Path:
    """Write the files of a hook, as an operator does."""
    folder = home / "hooks" / name
    folder.mkdir(parents=True, mode=0o700)
    os.chmod(folder.parent, 0o700)
    for file, text in (("HOOK.yaml", settings), ("handler.py", code)):
        (folder / file).write_text(text)
        os.chmod(folder / file, 0o600)
    return folder


def seen(folder: Path) -> list[Any]:
    file = folder / "seen"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


def emit(hooks: Hooks, *events: str, context: dict[str, Any] | None = None) -> None:
    async def run() -> None:
        for event in events:
            await hooks.emit(event, CONTEXT if context is None else context)

    asyncio.run(run())


def test_a_handler_gets_the_events_that_it_names(home: Path) -> None:
    folder = install(home, "log", WRITES, "events: [session:start, agent:end]\n")
    hooks = Hooks.load(home)
    emit(hooks, *EVENTS)
    assert seen(folder) == [["session:start", CONTEXT], ["agent:end", CONTEXT]]
    assert hooks.failures == {}
    assert sorted(each.name for each in folder.iterdir()) == ["HOOK.yaml", "handler.py", "seen"]


def test_an_async_handler_is_awaited(home: Path) -> None:
    folder = install(home, "log", WRITES_LATER)
    emit(Hooks.load(home), "gateway:startup")
    assert seen(folder) == [["gateway:startup", CONTEXT]]


@pytest.mark.parametrize(
    ("events", "names"),
    [
        ("session:*", ["session:start", "session:end", "session:reset", "on_session_finalize"]),
        ("'*'", list(EVENTS)),
        ("session:finalize", ["session:finalize"]),
        ("on_session_finalize", ["on_session_finalize"]),
        ("[agent:*, gateway:shutdown]", ["agent:start", "agent:end", "gateway:shutdown"]),
    ],
)
def test_patterns_and_the_second_name_of_an_event(home: Path, events: str, names: list[str]) -> None:
    folder = install(home, "log", WRITES, f"events: {events}\n")
    emit(Hooks.load(home), *EVENTS)
    assert [event for event, _ in seen(folder)] == names


def test_entry_points_are_handlers_too(home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    package = tmp_path / "site"
    info = package / "hooked-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: hooked\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        "[hermes.hooks]\nsession:end = hooked:one\nlog = hooked:two\nall = hooked:three\nbad = hooked:missing\n"
    )
    (package / "hooked.py").write_text(
        "calls = []\n"
        "def one(event, context): calls.append(('one', event))\n"
        "def two(event, context): calls.append(('two', event))\n"
        "two.events = ['agent:*']\n"
        "two.timeout_s = 3\n"
        "def three(event, context): calls.append(('three', event))\n"
    )
    monkeypatch.syspath_prepend(str(package))
    hooks = Hooks.load(home)
    assert sorted(each.name for each in hooks.handlers) == ["all", "log", "session:end"]
    emit(hooks, "session:end", "agent:start")
    import hooked  # type: ignore[import-not-found]

    assert sorted(hooked.calls) == [
        *(("one", "session:end"), ("three", "agent:start"), ("three", "session:end"), ("two", "agent:start")),
    ]


def test_a_home_without_hooks_has_none(home: Path) -> None:
    assert Hooks.load(home, "hermes.no.such.group").handlers == ()
    emit(Hooks(), "session:start")


@pytest.mark.parametrize(
    ("code", "settings", "why"),
    [
        ("def handle(event, context): pass", "", "no key `events`"),
        ("def handle(event, context): pass", "events: []", "a list of events"),
        ("def handle(event, context): pass", "events: [1]", "only names of events"),
        ("def handle(event, context): pass", "events: [", "is not YAML"),
        ("def handle(event, context): pass", "events: ['*']\ntimeout_s: no", "timeout_s is False"),
        ("def other(): pass", "events: ['*']", "has no function handle"),
        ("def handle(:", "events: ['*']", "SyntaxError"),
        ("raise SystemExit(3)", "events: ['*']", "SystemExit"),
        ("1 / 0", "events: ['*']", "ZeroDivisionError"),
    ],
)
def test_a_hook_that_cannot_be_loaded_is_left_out(
    home: Path, code: str, settings: str, why: str, caplog: pytest.LogCaptureFixture
) -> None:
    install(home, "bad", code, settings)
    good = install(home, "good", WRITES)
    hooks = Hooks.load(home)
    assert [each.name for each in hooks.handlers] == ["good"]
    assert why in caplog.text
    emit(hooks, "session:start")
    assert len(seen(good)) == 1


def test_a_hook_that_does_not_load_in_time_is_left_out(
    home: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hook_files, "LOAD_S", 0.2)
    install(home, "slow", "import time\ntime.sleep(60)\ndef handle(event, context): pass")
    assert Hooks.load(home).handlers == ()
    assert "did not load within" in caplog.text


@pytest.mark.parametrize("place", ["hooks", "hooks/log", "hooks/log/HOOK.yaml", "hooks/log/handler.py"])
def test_hooks_that_others_can_write_are_refused(home: Path, place: str, caplog: pytest.LogCaptureFixture) -> None:
    folder = install(home, "log", WRITES)
    os.chmod(home / place, 0o777 if (home / place).is_dir() else 0o666)
    assert Hooks.load(home).handlers == ()
    assert "other users can write" in caplog.text
    assert seen(folder) == []


@pytest.mark.skipif(os.name != "posix" or os.geteuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("place", ["hooks", "hooks/log", "hooks/log/HOOK.yaml", "hooks/log/handler.py"])
def test_hooks_of_others_are_refused(home: Path, place: str, caplog: pytest.LogCaptureFixture) -> None:
    install(home, "log", WRITES)
    os.chown(home / place, 65534, 65534)
    assert Hooks.load(home).handlers == ()
    assert "belongs to" in caplog.text


def test_failures_are_logged_once_and_counted(caplog: pytest.LogCaptureFixture) -> None:
    def fail(event: str, context: dict[str, Any]) -> None:
        raise ValueError("a mistake in a hook")

    called: list[str] = []
    hooks = Hooks([Handler("bad", ("*",), fail), Handler("good", ("*",), lambda event, _: called.append(event))])
    emit(hooks, "session:start", "session:start", "session:end")
    assert hooks.failures == {"bad session:start": 2, "bad session:end": 1}
    assert caplog.text.count("ValueError: a mistake in a hook") == 2
    assert called == ["session:start", "session:start", "session:end"]


def test_an_async_failure_is_counted_too() -> None:
    async def fail(event: str, context: dict[str, Any]) -> None:
        raise SystemExit(1)

    hooks = Hooks([Handler("bad", ("*",), fail)])
    emit(hooks, "session:start")
    assert hooks.failures == {"bad session:start": 1}


def test_a_hanging_handler_blocks_nothing_and_is_left_out_until_it_ends(caplog: pytest.LogCaptureFixture) -> None:
    may_end, calls, called = threading.Event(), list[str](), list[str]()

    def hang(event: str, context: dict[str, Any]) -> None:
        calls.append(event)
        may_end.wait(60)

    handlers = [Handler("hangs", ("*",), hang, timeout_s=0.2)]
    handlers.append(Handler("good", ("*",), lambda event, _: called.append(event)))
    hooks = Hooks(handlers, threads=1)

    async def run() -> None:
        ticks = 0

        async def tick() -> None:
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0.01)

        ticking = asyncio.create_task(tick())
        await hooks.emit("session:start", {})
        assert ticks > 5
        await hooks.emit("session:end", {})
        assert (calls, called[-1]) == (["session:start"], "session:end")
        may_end.set()
        while len(calls) < 2:
            await hooks.emit("session:reset", {})
            await asyncio.sleep(0.01)
        ticking.cancel()

    asyncio.run(run())
    assert hooks.failures["hangs session:start"] == 1
    assert hooks.failures["hangs session:end"] == 1
    assert "it took longer than 0.2 s" in caplog.text


def test_a_slow_async_handler_is_stopped() -> None:
    stopped = threading.Event()

    async def slow(event: str, context: dict[str, Any]) -> None:
        try:
            await asyncio.sleep(60)
        finally:
            stopped.set()

    hooks = Hooks([Handler("slow", ("*",), slow, timeout_s=0.1)])
    emit(hooks, "session:start")
    assert stopped.wait(20)
    assert hooks.failures == {"slow session:start": 1}


def test_a_hanging_handler_does_not_keep_the_process(home: Path) -> None:
    hangs = "import threading\ndef handle(event, context): threading.Event().wait()"
    install(home, "hangs", hangs, "events: ['*']\ntimeout_s: 0.1\n")
    code = (
        "import asyncio, pathlib, sys; from hermes.gateway.upkeep.hooks import Hooks;"
        "hooks = Hooks.load(pathlib.Path(sys.argv[1])); asyncio.run(hooks.emit('gateway:shutdown', {})); print('end')"
    )
    ended = subprocess.run(
        [sys.executable, "-c", code, str(home)], capture_output=True, text=True, timeout=60, check=False
    )
    assert (ended.returncode, ended.stdout) == (0, "end\n")


def test_handlers_get_copies_with_plain_values() -> None:
    got: list[dict[str, Any]] = []

    def keep(event: str, context: dict[str, Any]) -> None:
        got.append(context)
        context["session_id"] = "changed"
        context["list"].append(3)

    class Store:
        def __str__(self) -> str:
            return "<a store>"

    mine = {"session_id": "s1", "list": [1, 2], "path": Path("/x"), "store": Store()}
    emit(Hooks([Handler("one", ("*",), keep), Handler("two", ("*",), keep)]), "agent:end", context=mine)
    assert mine["list"] == [1, 2]
    assert mine["session_id"] == "s1"
    assert got[0] == got[1] == {"session_id": "changed", "list": [1, 2, 3], "path": "/x", "store": "<a store>"}


def test_a_context_without_text_calls_no_handler(caplog: pytest.LogCaptureFixture) -> None:
    class Odd:
        def __str__(self) -> str:
            raise RuntimeError("no text")

    called: list[str] = []
    hooks = Hooks([Handler("one", ("*",), lambda event, _: called.append(event))])
    emit(hooks, "agent:end", context={"odd": Odd()})
    assert called == []
    assert "no hook was called" in caplog.text


def test_a_closed_hooks_object_calls_none() -> None:
    called: list[str] = []
    hooks = Hooks([Handler("one", ("*",), lambda event, _: called.append(event))])
    hooks.close()
    emit(hooks, "agent:end")
    assert called == []


def test_an_unknown_event_is_warned_about(home: Path, caplog: pytest.LogCaptureFixture) -> None:
    install(home, "log", WRITES, "events: [session:begin, session:start]\n")
    assert len(Hooks.load(home).handlers) == 1
    assert "there is no event session:begin" in caplog.text
