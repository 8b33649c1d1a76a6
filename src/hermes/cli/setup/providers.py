"""The providers that `hermes setup` offers, and what each needs."""

from __future__ import annotations

from dataclasses import dataclass

from hermes.agent.models.choice import OFFLINE, PROVIDERS

CUSTOM = "custom"
CUSTOM_VARIABLE = "HERMES_MODEL_API_KEY"
"""The same as for `hermes config set model.api_key`, so that a new key replaces the old one."""


@dataclass(frozen=True, slots=True)
class Offer:
    """A provider in the list."""

    provider: str
    label: str
    key_variable: str | None = None
    """The variable that gets the key; None if it needs none."""

    @property
    def is_own_address(self) -> bool:
        """Whether the user has to name the address."""
        return self.provider == CUSTOM


_LABELS = {
    "openai": "OpenAI",
    "openrouter": "OpenRouter",
    "anthropic": "Anthropic",
    "ollama": "Ollama on this machine",
    "lmstudio": "LM Studio on this machine",
    "llamacpp": "llama.cpp on this machine",
}

OFFERS = (
    *(Offer(name, _LABELS[name], known.key_variable) for name, known in PROVIDERS.items()),
    Offer(CUSTOM, "another OpenAI-compatible endpoint", CUSTOM_VARIABLE),
    Offer(OFFLINE, "no model: the built-in offline model, which only searches past sessions"),
)
NAMES = tuple(each.provider for each in OFFERS)


def find_offer(answer: str) -> Offer | None:
    """Return the offer with a number or a name."""
    answer = answer.strip().lower()
    if answer.isdecimal() and answer.isascii() and len(answer) < 3:
        return OFFERS[int(answer) - 1] if 1 <= int(answer) <= len(OFFERS) else None
    return next((each for each in OFFERS if each.provider == answer), None)
