"""Model servers on this machine: searched on their usual ports, only when the configuration asks for one."""

from __future__ import annotations

from dataclasses import replace

from hermes.agent.models.choice import ANY_LOCAL, LOCAL, PROVIDERS, ModelChoice
from hermes.agent.models.model import Cancellation
from hermes.agent.models.model_list import list_models
from hermes.errors import NoModel

LIMIT_S = 1.5
"""A server on this machine responds at once or not at all."""


def find_local_model(choice: ModelChoice, limit_s: float = LIMIT_S) -> ModelChoice:
    """Return the choice with the address and the model of the first server that responds and has a model."""
    tried = LOCAL if choice.provider == ANY_LOCAL and not choice.base_url else (choice.provider,)
    empty = []
    for provider in tried:
        base_url = choice.base_url or PROVIDERS[provider].base_url
        candidate = replace(choice, provider=provider, base_url=base_url)
        names = list_models(candidate, limit_s, Cancellation())
        if names is None:
            continue
        if choice.name or names:
            return replace(candidate, name=choice.name or names[0])
        empty.append(provider)
    if empty:
        raise NoModel(f"{empty[0]} is running, but has no model", hint=f"load one in {empty[0]}")
    raise NoModel(
        f"no model server is running on this machine ({_addresses(tried, choice)})",
        hint=f"start one of them, or set {choice.section}.base_url in config.yaml",
    )


def _addresses(tried: tuple[str, ...], choice: ModelChoice) -> str:
    hosts = {each: replace(choice, base_url=choice.base_url or PROVIDERS[each].base_url).host for each in tried}
    return ", ".join(f"{each} at {host}" for each, host in hosts.items())
