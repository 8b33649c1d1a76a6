"""The choice of the model, from the configuration and the environment, without network access."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from urllib.parse import parse_qsl, unquote, urlsplit, urlunsplit

from hermes.agent.models.http.addresses import carries_secret, is_in_clear
from hermes.config import EndpointConfig, ModelConfig
from hermes.envfile import expand
from hermes.errors import ConfigError, NoModel

OFFLINE = "offline"


@dataclass(frozen=True, slots=True)
class Provider:
    """A company or a program that runs models."""

    base_url: str
    key_variable: str | None = None
    model: str | None = None
    """The default model; None where the server must be asked for its models."""
    auxiliary: str | None = None
    """A fast model for titles and summaries."""
    key_prefix: str = ""

    @property
    def is_local(self) -> bool:
        """Whether it is a program on this machine, which needs no key and costs nothing."""
        return self.key_variable is None


PROVIDERS = {
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", "gpt-5-mini", "gpt-5-nano", "sk-"),
    "openrouter": Provider(
        "https://openrouter.ai/api/v1", "OPENROUTER_API_KEY", "openai/gpt-5-mini", "openai/gpt-5-nano", "sk-or-"
    ),
    "anthropic": Provider(
        "https://api.anthropic.com/v1", "ANTHROPIC_API_KEY", "claude-sonnet-4-5", "claude-haiku-4-5", "sk-ant-"
    ),
    "ollama": Provider("http://127.0.0.1:11434/v1"),
    "lmstudio": Provider("http://127.0.0.1:1234/v1"),
    "llamacpp": Provider("http://127.0.0.1:8080/v1"),
}
"""The known providers, in the order in which their keys and ports are tried."""

LOCAL = tuple(name for name, each in PROVIDERS.items() if each.is_local)
ANY_LOCAL = "local"
FREE = frozenset((*LOCAL, ANY_LOCAL, OFFLINE))
"""The providers without costs."""

_MIN_SECRET = 8
"""A shorter value in the query of an address is a version or a switch, not a secret."""


@dataclass(frozen=True, slots=True)
class ModelChoice:
    """A model, its address, and the reason for choosing it."""

    provider: str
    name: str = ""
    """Empty means the first model of the server."""
    base_url: str = field(default="", repr=False)
    """Empty means the first local server that responds; always empty for the offline model."""
    api_key: str | None = field(default=None, repr=False)
    key_source: str | None = None
    section: str = "model"
    """The section of the configuration to change it in."""
    context_tokens: int | None = None
    """The size of its context window, if configured."""
    reason: str = ""
    allow_http: bool = False
    """Whether the configuration allows sending a key to a public address without encryption."""

    @property
    def is_offline(self) -> bool:
        """Whether it is the built-in offline model."""
        return self.provider == OFFLINE

    @property
    def host(self) -> str:
        """The host of the address, such as `api.openai.com` or `127.0.0.1:11434`."""
        return urlsplit(self.base_url).netloc.rpartition("@")[2]

    @property
    def display_url(self) -> str:
        """The address without user name, password and query, which may be secret."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, self.host, parts.path, "", ""))

    @property
    def secrets(self) -> tuple[str, ...]:
        """The texts that must never be displayed."""
        parts = urlsplit(self.base_url)
        password = parts.password or ""
        parameters = [value for _, value in parse_qsl(parts.query) if len(value) >= _MIN_SECRET]
        return tuple(each for each in (self.api_key, password, unquote(password), *parameters) if each)

    def url(self, path: str) -> str:
        """Return the address of a path at the endpoint, without user name and password."""
        parts = urlsplit(self.base_url)
        return urlunsplit((parts.scheme, self.host, parts.path + path, parts.query, ""))

    def headers(self) -> dict[str, str]:
        """Return the authorization header: the key, or else the user name and password of the address.

        Raises `ConfigError` if it would be sent unencrypted over a public network.
        """
        self.check_secrecy()
        if self.api_key:
            return {"Authorization": f"Bearer {self.api_key}"}
        parts = urlsplit(self.base_url)
        if parts.username is None:
            return {}
        credentials = f"{unquote(parts.username)}:{unquote(parts.password or '')}"
        return {"Authorization": f"Basic {b64encode(credentials.encode()).decode()}"}

    def check_secrecy(self) -> None:
        """Raise `ConfigError` if a key would go to a public address without encryption."""
        if self.allow_http or not (self.api_key or carries_secret(self.base_url)) or not is_in_clear(self.base_url):
            return
        source = self.key_source or f"{self.section}.base_url"
        raise ConfigError(
            f"the key from {source} would be sent to {self.host} over http, where others can read it",
            hint=f"set {self.section}.base_url in config.yaml to an address with https://,"
            f" or {self.section}.allow_http to true if you trust the network in between",
        )

    def describe(self) -> str:
        """Return a description for the user, such as `gpt-5-mini at api.openai.com, key from OPENAI_API_KEY`."""
        if self.is_offline:
            return f"the offline model, {self.reason}"
        name = self.name or "the first available model"
        host = self.host or "the first local server that responds"
        kind = f" ({self.provider})" if self.provider in LOCAL and self.host else ""
        return f"{name} at {host}{kind}, {f'key from {self.key_source}' if self.key_source else 'no key'}"


def choose_model(settings: ModelConfig, variables: Mapping[str, str], name: str | None = None) -> ModelChoice:
    """Return the model for conversations; `name` overrides `model.default`."""
    if name == OFFLINE:
        return ModelChoice(OFFLINE, OFFLINE, reason="as requested")
    if name and name != settings.default:
        return _choose_and_check(replace(settings, default=name), variables, "model")
    return replace(_choose_and_check(settings, variables, "model"), context_tokens=settings.context_tokens)


def choose_auxiliary_model(settings: ModelConfig, variables: Mapping[str, str], main: ModelChoice) -> ModelChoice:
    """Return the model for titles and summaries: as configured, or a fast one at the endpoint of the main model."""
    own = settings.auxiliary
    _refuse_references("model.auxiliary", own)
    if own.provider or own.base_url or own.api_key or own.default == OFFLINE:
        return _choose_and_check(own, variables, "model.auxiliary")
    if main.is_offline:
        return main
    provider = PROVIDERS.get(main.provider)
    is_own_address = provider is not None and main.base_url == provider.base_url
    usual = provider.auxiliary if provider and is_own_address else None
    name = own.default or usual or main.name
    return main if name == main.name else replace(main, name=name, context_tokens=None)


def _choose_and_check(settings: EndpointConfig, variables: Mapping[str, str], section: str) -> ModelChoice:
    choice = replace(_decide(settings, variables, section), allow_http=settings.allow_http)
    choice.check_secrecy()
    return choice


def _decide(settings: EndpointConfig, variables: Mapping[str, str], section: str) -> ModelChoice:
    _refuse_references(section, settings)
    base_url = _checked_url(settings.base_url, section)
    provider = settings.provider or _provider_of(base_url, settings.api_key)
    if provider == OFFLINE or (provider is None and settings.default == OFFLINE):
        return ModelChoice(OFFLINE, OFFLINE, section=section, reason="as configured")
    if provider is None:
        return _from_environment(settings, variables, section)
    if provider == ANY_LOCAL:
        return ModelChoice(provider, settings.default or "", base_url, section=section)
    return _choice_at(provider, replace(settings, base_url=base_url), variables, section)


def _from_environment(settings: EndpointConfig, variables: Mapping[str, str], section: str) -> ModelChoice:
    """Return the model of the first provider with a key; without any key, the offline model."""
    for provider, known in PROVIDERS.items():
        if known.key_variable and _strip_key(variables.get(known.key_variable)):
            return _choice_at(provider, settings, variables, section)
    if settings.default:
        raise NoModel(f"no provider is configured for the model {settings.default}")
    return ModelChoice(OFFLINE, OFFLINE, section=section, reason="because no other is configured")


def _choice_at(provider: str, settings: EndpointConfig, variables: Mapping[str, str], section: str) -> ModelChoice:
    """Return a model of a provider, with the key for that provider."""
    known = PROVIDERS.get(provider)
    base_url = settings.base_url or (known.base_url if known else "")
    if not base_url:
        raise ConfigError(
            f"{section}.provider is {provider}, but {section}.base_url is not set",
            hint=f"set {section}.base_url in config.yaml",
        )
    host = urlsplit(base_url).hostname
    api_key, key_source = _strip_key(settings.api_key), f"{section}.api_key"
    # The key of a provider is sent to its own address only.
    if not api_key and known and known.key_variable and _origin(base_url) == _origin(known.base_url):
        api_key, key_source = _strip_key(variables.get(known.key_variable)), known.key_variable
        if not api_key:
            raise NoModel(
                f"there is no key for {host}", hint=f"set {known.key_variable}, or {section}.api_key in config.yaml"
            )
    name = settings.default or (known.model if known else None) or ""
    if not name and not (known and known.is_local):
        raise ConfigError(f"no model is configured for {host}", hint=f"set {section}.default in config.yaml")
    if not api_key:
        return ModelChoice(provider, name, base_url, section=section)
    if not api_key.isascii() or not api_key.isprintable():
        raise ConfigError(f"the key from {key_source} has invalid characters", hint=f"set {key_source} again")
    return ModelChoice(provider, name, base_url, api_key, key_source, section)


def _provider_of(base_url: str, api_key: str | None) -> str | None:
    """Return the provider of an address or a key, or None if both are missing."""
    if base_url:
        return {_origin(each.base_url): name for name, each in PROVIDERS.items()}.get(_origin(base_url), "custom")
    if api_key:
        longest_first = sorted(PROVIDERS.items(), key=lambda each: len(each[1].key_prefix), reverse=True)
        return next((name for name, each in longest_first if api_key.startswith(each.key_prefix or " ")), "openai")
    return None


def _refuse_references(section: str, settings: EndpointConfig) -> None:
    """Raise `ConfigError` for an unset `${VAR}`, which must not be sent as a key or a name."""
    for name in ("default", "base_url", "api_key"):
        unset = expand(getattr(settings, name) or "", {}).unset
        if unset:
            raise ConfigError(
                f"{section}.{name} in config.yaml refers to {unset[0]}, which is not set",
                hint=f"set {unset[0]} in the environment or in .env",
            )


def _checked_url(base_url: str | None, section: str) -> str:
    """Return an address without trailing slash and fragment; raise `ConfigError` if it is invalid."""
    if not base_url:
        return ""
    try:
        parts = urlsplit(base_url.strip())
        is_sound = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        parts, is_sound = urlsplit(""), False
    if not is_sound:
        raise ConfigError(
            f"{section}.base_url in config.yaml is not the address of an endpoint",
            hint="write it as https://host/v1, or http://127.0.0.1:8000/v1 for a server on this machine",
        )
    path = parts.path.rstrip("/").removesuffix("/chat/completions")
    return urlunsplit((parts.scheme, parts.netloc, path, parts.query, ""))


def _strip_key(key: str | None) -> str:
    """Return a key without surrounding whitespace, or an empty string if there is none."""
    return (key or "").strip()


def _origin(base_url: str) -> tuple[str, str | None, int | None]:
    """The scheme, host and port of an address."""
    parts = urlsplit(base_url)
    host = "127.0.0.1" if parts.hostname in ("localhost", "::1") else parts.hostname
    return parts.scheme, host, parts.port
