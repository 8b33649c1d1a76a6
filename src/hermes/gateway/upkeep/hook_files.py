"""Hooks as people install them: directories in the Hermes home, and entry points of Python packages."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from threading import Thread
from types import ModuleType
from typing import Any

from hermes.errors import ConfigError
from hermes.home import read_plain_file
from hermes.log import warn
from hermes.trust import refuse_settings_of_others

DIRECTORY = "hooks"
SETTINGS_FILE = "HOOK.yaml"
CODE_FILE = "handler.py"
FUNCTION = "handle"
TIMEOUT_S = 10.0
MAX_TIMEOUT_S = 600.0
LOAD_S = 10.0
"""How long the code of a hook may take to load."""
MAX_BYTES = 256 * 1024

EVENTS = (
    "session:start",
    "session:end",
    "session:reset",
    "agent:start",
    "agent:end",
    "on_session_finalize",
    "gateway:startup",
    "gateway:shutdown",
)
FINALIZE = "on_session_finalize"
FINALIZE_ALIAS = "session:finalize"
"""Another name of the same event, which `session:*` covers."""
ALL = "*"


@dataclass(frozen=True, slots=True)
class Handler:
    """A function that is called for events."""

    name: str
    events: tuple[str, ...]
    """Names of events, or beginnings of names with `*` at the end."""
    function: Callable[[str, dict[str, Any]], Any]
    timeout_s: float = TIMEOUT_S

    def event_for(self, event: str) -> str | None:
        """Return the name under which the handler gets an event; None if it does not want the event."""
        names = (FINALIZE, FINALIZE_ALIAS) if event in (FINALIZE, FINALIZE_ALIAS) else (event,)
        for name in names:
            if name in self.events:
                return name
        patterns = [each[:-1] for each in self.events if each.endswith(ALL)]
        return names[0] if any(name.startswith(each) for name in names for each in patterns) else None


def find_handlers(home: Path, entry_point_group: str) -> list[Handler]:
    """Return the handlers of both kinds; one that cannot be used is logged and left out."""
    handlers: list[Handler] = []
    for name, load in (*_directories(home), *_entry_points(entry_point_group)):
        try:
            handlers.append(_load_within(LOAD_S, load))
        except ConfigError as error:
            warn(__name__, "the hook %s is not used: %s", name, error)
        except Exception:  # noqa: BLE001  the code of a hook can fail in any way
            warn(__name__, "the hook %s is not used:\n%s", name, traceback.format_exc())
    return handlers


def _directories(home: Path) -> Iterator[tuple[str, Callable[[], Handler]]]:
    folder = home / DIRECTORY
    try:
        refuse_settings_of_others(folder)
        names = sorted(each for each in folder.iterdir() if each.is_dir() and not each.name.startswith((".", "_")))
    except (FileNotFoundError, NotADirectoryError):
        return
    except (ConfigError, OSError) as error:
        warn(__name__, "the hooks in %s are not used: %s", folder, error)
        return
    for each in names:
        yield each.name, lambda each=each: _load_directory(each)  # type: ignore[misc]


def _load_directory(folder: Path) -> Handler:
    """Load the handler of a directory; raise `ConfigError` if it cannot be trusted or understood."""
    refuse_settings_of_others(folder)
    settings = _read_settings(folder / SETTINGS_FILE)
    events = _events_of(settings.get("events"), folder / SETTINGS_FILE)
    timeout_s = _timeout_of(settings.get("timeout_s"), folder / SETTINGS_FILE)
    code = folder / CODE_FILE
    module = ModuleType(f"hermes_hook_{folder.name}")
    module.__file__ = str(code)
    # Compiled from the text that was checked: a cached file next to it is neither read nor written.
    exec(compile(_read_file(code), str(code), "exec"), vars(module))  # noqa: S102  code of the operator
    function = getattr(module, FUNCTION, None)
    if not callable(function):
        raise ConfigError(f"{code} has no function {FUNCTION}(event, context)")
    return Handler(folder.name, events, function, timeout_s)


def _entry_points(group: str) -> Iterator[tuple[str, Callable[[], Handler]]]:
    for each in sorted(entry_points(group=group), key=lambda each: (each.name, each.value)):
        yield each.name, lambda each=each: _load_entry_point(each)  # type: ignore[misc]


def _load_entry_point(point: EntryPoint) -> Handler:
    function = point.load()
    if not callable(function):
        raise ConfigError(f"the entry point {point.value} is not a function")
    is_event = point.name in (*EVENTS, FINALIZE_ALIAS)
    events = getattr(function, "events", None) or [point.name if is_event else ALL]
    timeout_s = _timeout_of(getattr(function, "timeout_s", None), point.value)
    return Handler(point.name, _events_of(events, point.value), function, timeout_s)


def _read_settings(file: Path) -> dict[str, Any]:
    import yaml  # late: most homes have no hooks

    try:
        settings = yaml.safe_load(_read_file(file))
    except yaml.YAMLError as error:
        raise ConfigError(f"{file} is not YAML: {error}") from None
    if not isinstance(settings, dict):
        raise ConfigError(f"{file} has no key `events`")
    return settings


def _read_file(file: Path) -> bytes:
    """Return the content of a file that only this user can change."""
    refuse_settings_of_others(file)
    try:
        data = read_plain_file(file)
    except OSError as error:
        raise ConfigError(f"cannot read {file}: {error.strerror}") from error
    if len(data) > MAX_BYTES:
        raise ConfigError(f"{file} has {len(data)} bytes; the limit is {MAX_BYTES}")
    return data


def _events_of(value: Any, where: object) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list | tuple | set | frozenset) or not names:
        raise ConfigError(f"{where}: `events` should be a list of events such as {EVENTS[0]}")
    if not all(isinstance(each, str) and each.strip() for each in names):
        raise ConfigError(f"{where}: `events` should contain only names of events")
    events = tuple(each.strip() for each in names)
    known = (*EVENTS, FINALIZE_ALIAS)
    for each in events:
        if not (each in known or (each.endswith(ALL) and any(name.startswith(each[:-1]) for name in known))):
            warn(__name__, "%s: there is no event %s; there are %s", where, each, ", ".join(EVENTS))
    return events


def _timeout_of(value: Any, where: object) -> float:
    if value is None:
        return TIMEOUT_S
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value <= MAX_TIMEOUT_S:
        raise ConfigError(f"{where}: timeout_s is {value!r}, expected seconds above 0, at most {MAX_TIMEOUT_S:.0f}")
    return float(value)


def _load_within(seconds: float, load: Callable[[], Handler]) -> Handler:
    """Load a hook on a thread, because its code may never return; raise what it raises."""
    loaded: list[Handler] = []
    failed: list[BaseException] = []

    def run() -> None:
        try:
            loaded.append(load())
        except BaseException as error:  # noqa: BLE001  also SystemExit, which must not end the gateway
            failed.append(error)

    thread = Thread(target=run, name="hermes-hook-load", daemon=True)
    thread.start()
    thread.join(seconds)
    if loaded:
        return loaded[0]
    if not failed:
        raise ConfigError(f"its code did not load within {seconds:.0f} seconds")
    if isinstance(failed[0], Exception):
        raise failed[0]
    raise ConfigError(f"its code raised {type(failed[0]).__name__}")
