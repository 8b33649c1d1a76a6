"""Model servers on this machine: looked for on their usual ports, and only when somebody wants one."""

from __future__ import annotations

from dataclasses import replace

from hermes.agent.models.choice import ANY_LOCAL, LOCAL, PROVIDERS, ModelChoice
from hermes.agent.models.model import Cancellation
from hermes.agent.models.model_list import list_models
from hermes.errors import NoModel

LIMIT_S = 1.5
"""A server on this machine answers at once or not at all."""


def find_local_model(choice: ModelChoice, limit_s: float = LIMIT_S) -> ModelChoice:
    """The choice with its address and its name filled in by the first server that answers and has a model."""
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
        raise NoModel(f"{empty[0]} answers, but has no model", hint=f"load one in {empty[0]}")
    raise NoModel(
        f"no model server answers on this machine ({_addresses(tried, choice)})",
        hint=f"start one of them, or set {choice.section}.base_url in config.yaml",
    )


def _addresses(tried: tuple[str, ...], choice: ModelChoice) -> str:
    hosts = {each: replace(choice, base_url=choice.base_url or PROVIDERS[each].base_url).host for each in tried}
    return ", ".join(f"{each} at {host}" for each, host in hosts.items())
