"""The platforms that a gateway can serve: the built-in ones, and those of installed packages."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import Any, Final

from hermes.errors import ConfigError, HermesError
from hermes.gateway.engine.ports import Adapter
from hermes.gateway.platform import Platform
from hermes.gateway.platform_config import PlatformConfig
from hermes.gateway.source import SessionSource
from hermes.platforms.base.context import AdapterContext, MakeAdapter, everyone_may_talk
from hermes.platforms.base.http import Routes
from hermes.platforms.base.media import MediaFolder

ENTRY_POINTS: Final = "hermes.platforms"
"""The group of entry points: the name of a platform, and its function `make`."""
BUILT_IN: Final[Mapping[str, str]] = {
    "telegram": "hermes.platforms.telegram.adapter:make",
    "discord": "hermes.platforms.discord.adapter:make",
    "slack": "hermes.platforms.slack.adapter:make",
    "whatsapp_cloud": "hermes.platforms.whatsapp.adapter:make",
    "matrix": "hermes.platforms.matrix.adapter:make",
}
_CLOUD_SETTINGS = ("phone_number_id", "phone_id")
"""A `whatsapp` section with one of these means the Cloud API, not a bridge."""
_SERVED_ELSEWHERE = frozenset({"local", "api_server", "webhook"})
"""Names of platforms that are no adapters of their own."""


@dataclass(slots=True)
class MadeAdapters:
    """The adapters that could be made, and for each other platform why it could not."""

    adapters: list[Adapter] = field(default_factory=list)
    problems: dict[str, str] = field(default_factory=dict)


def platform_names() -> list[str]:
    """Return the names of all platforms that can be served, built-in ones first."""
    return [*BUILT_IN, *sorted(name for name in _entry_points() if name not in BUILT_IN)]


def find_maker(name: str) -> MakeAdapter:
    """Return the function that makes the adapter of a platform; raise `ConfigError` if nothing serves it."""
    if name in BUILT_IN:
        return _load(name, BUILT_IN[name])
    entry = _entry_points().get(name)
    if entry is None:
        known = ", ".join(platform_names())
        raise ConfigError(f"no installed package serves the platform {name}", hint=f"known platforms: {known}")
    make: MakeAdapter = entry.load()
    if not Platform.is_name(name):  # its module may have registered it with settings of its own
        Platform.register(name)
    return make


def make_adapters(
    platforms: Mapping[Platform, PlatformConfig],
    home: Path,
    routes: Routes | None = None,
    may_talk: Callable[[SessionSource], Awaitable[bool]] = everyone_may_talk,
    find: Callable[[str], MakeAdapter] = find_maker,
) -> MadeAdapters:
    """Make the adapters of the enabled platforms; one that cannot be made does not keep the others from it."""
    made = MadeAdapters()
    for name, config in served(platforms):
        context = AdapterContext(
            config=config, home=home, media=MediaFolder(home, name), routes=routes, may_talk=may_talk
        )
        try:
            made.adapters.append(find(name)(context))
        except HermesError as error:
            made.problems[name] = f"{error.message}; {error.hint}" if error.hint else error.message
        except Exception as error:  # noqa: BLE001 - a broken package must not stop the others
            made.problems[name] = f"{type(error).__name__}: {error}"
    return made


def served(platforms: Mapping[Platform, PlatformConfig]) -> Iterator[tuple[str, PlatformConfig]]:
    """Yield the enabled platforms that need an adapter, each with the name of its adapter."""
    for platform, config in platforms.items():
        name = str(platform.value)
        if not config.enabled or name in _SERVED_ELSEWHERE:
            continue
        if name == "whatsapp" and any(config.extra.get(each) for each in _CLOUD_SETTINGS):
            name = "whatsapp_cloud"
        yield name, config


def _load(name: str, place: str) -> MakeAdapter:
    module, _, function = place.partition(":")
    try:
        make: MakeAdapter = getattr(import_module(module), function)
    except ModuleNotFoundError as error:
        if error.name and module.startswith(error.name):
            raise ConfigError(f"this version does not contain the platform {name}") from None
        extra = name.partition("_")[0]
        raise ConfigError(
            f"the platform {name} needs the package {error.name}", hint=f"pip install 'hermes-sessions[{extra}]'"
        ) from None
    return make


def _entry_points() -> dict[str, Any]:
    from importlib.metadata import entry_points  # late: it reads the metadata of every installed package

    return {entry.name: entry for entry in entry_points(group=ENTRY_POINTS)}
