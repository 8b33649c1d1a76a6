"""The choice of a backend, from the configuration and the environment, without network access."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from urllib.parse import urlsplit

from hermes.config import WebConfig
from hermes.errors import ConfigError, NoWebBackend, UnsafeUrl
from hermes.web.addresses import refusal_of
from hermes.web.urls import parse_url

DIRECT = "direct"
SEARCH, EXTRACT = "search", "extract"
MODES = ("fast", "one-shot", "agentic")
DEFAULT_MODE = "agentic"


@dataclass(frozen=True, slots=True)
class BackendKind:
    """What is known about a backend."""

    capabilities: frozenset[str]
    base_url: str = ""
    key_variable: str = ""
    url_variable: str = ""
    """The variable with the address of a server of your own, which needs no key."""


BACKENDS = {
    "firecrawl": BackendKind(
        frozenset((SEARCH, EXTRACT)), "https://api.firecrawl.dev", "FIRECRAWL_API_KEY", "FIRECRAWL_API_URL"
    ),
    "parallel": BackendKind(frozenset((SEARCH, EXTRACT)), "https://api.parallel.ai", "PARALLEL_API_KEY"),
    "tavily": BackendKind(frozenset((SEARCH, EXTRACT)), "https://api.tavily.com", "TAVILY_API_KEY"),
    DIRECT: BackendKind(frozenset((EXTRACT,))),
}
"""The backends, in the order in which their keys are looked for; without any key Hermes reads pages itself."""

KEYS = tuple(kind.key_variable for kind in BACKENDS.values() if kind.key_variable)


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """A backend, its address and its key."""

    name: str
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    key_variable: str = ""
    mode: str = DEFAULT_MODE
    """How Parallel searches."""

    @property
    def host(self) -> str:
        """The host of the address."""
        return urlsplit(self.base_url).netloc


def choose_backend(config: WebConfig, variables: Mapping[str, str], capability: str) -> BackendChoice:
    """Return the backend for searching or reading; raises `NoWebBackend`, and never takes another one instead."""
    name = config.backend or _detect(config, variables)
    kind = BACKENDS[name]
    if capability not in kind.capabilities:
        raise _incapable(name, capability, is_configured=config.backend is not None)
    if name == DIRECT:
        return BackendChoice(DIRECT)
    own_url = _own_url(name, config, variables)
    choice = BackendChoice(
        name,
        base_url=_check_url(own_url or kind.base_url, name),
        api_key=_check_key(variables.get(kind.key_variable, ""), kind.key_variable),
        key_variable=kind.key_variable,
        mode=_mode(config, variables) if name == "parallel" else DEFAULT_MODE,
    )
    if not choice.api_key and not (own_url and kind.url_variable):
        raise NoWebBackend(
            f"the web backend is {name}, but {kind.key_variable} is not set",
            hint=f"set {kind.key_variable} in .env, or web.backend in config.yaml to another backend",
        )
    if choice.api_key:
        _check_secrecy(choice)
    return choice


def _detect(config: WebConfig, variables: Mapping[str, str]) -> str:
    """Return the first backend with a key, or with a server of your own; else `direct`."""
    for name, kind in BACKENDS.items():
        has_server = kind.url_variable and _own_url(name, config, variables)
        if variables.get(kind.key_variable, "").strip() or has_server:
            return name
    return DIRECT


def _own_url(name: str, config: WebConfig, variables: Mapping[str, str]) -> str:
    configured = {"firecrawl": config.firecrawl_url, "parallel": config.parallel_url, "tavily": config.tavily_url}
    return (configured.get(name) or variables.get(BACKENDS[name].url_variable, "")).strip()


def _mode(config: WebConfig, variables: Mapping[str, str]) -> str:
    mode = config.parallel_mode or variables.get("PARALLEL_SEARCH_MODE", "").strip() or DEFAULT_MODE
    if mode not in MODES:
        raise ConfigError("PARALLEL_SEARCH_MODE has an unknown value", hint=f"set it to {', '.join(MODES)}")
    return mode


def _incapable(name: str, capability: str, *, is_configured: bool) -> NoWebBackend:
    able = ", ".join(each for each, kind in BACKENDS.items() if capability in kind.capabilities)
    what = "search the web" if capability == SEARCH else "read pages"
    if is_configured:
        return NoWebBackend(f"the web backend {name} cannot {what}", hint=f"set web.backend to one that can: {able}")
    return NoWebBackend(
        f"no backend that can {what} is configured", hint=f"set one of {', '.join(KEYS)} or FIRECRAWL_API_URL in .env"
    )


def _check_key(key: str, variable: str) -> str:
    key = key.strip()
    if not (key.isascii() and key.isprintable()) or " " in key:
        raise ConfigError(
            f"the key in {variable} contains a blank, or a character that no key has", hint="set it again"
        )
    return key


def _check_url(url: str, name: str) -> str:
    """Return the address of an endpoint without a slash at its end; the operator may name any host."""
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid or "@" in url or "?" in url or "#" in url or not (url.isascii() and url.isprintable()):
        raise ConfigError(
            f"the address of {name} is not valid", hint="write it as https://host/path, without a password"
        )
    return url.rstrip("/")


def _check_secrecy(choice: BackendChoice) -> None:
    """Raise `ConfigError` if a key would go to a public address without encryption."""
    parts = urlsplit(choice.base_url)
    if parts.scheme == "https" or is_near(parts.hostname or ""):
        return
    raise ConfigError(
        f"the key in {choice.key_variable} would be sent to {choice.host} over http, where others can read it",
        hint="use an address with https://",
    )


def is_near(host: str) -> bool:
    """Whether a host is this machine or in a private network, by its address or its name alone."""
    if host == "localhost" or host.endswith((".localhost", ".local")):
        return True
    bracketed = f"[{host}]" if ":" in host else host
    try:
        address = parse_url(f"http://{bracketed}/").address
    except UnsafeUrl:
        return False
    return address is not None and refusal_of(address) is not None
