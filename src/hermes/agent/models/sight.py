"""Which models can see images: a list of names, and a setting for the others."""

from __future__ import annotations

import re
from collections.abc import Mapping

from hermes.agent.models.choice import OFFLINE
from hermes.agent.models.model import Model

_SEEING = re.compile(
    r"chatgpt-4o|gpt-4o|gpt-4\.[15]|gpt-4-(?:turbo|vision)|gpt-5|o[13](?!-mini|-preview)(?:-|\Z)|o4-mini"
    r"|claude-(?:3|opus|sonnet|haiku)|gemini|gemma-?3|grok-4|llama-?4|pixtral|mistral-(?:small-3|medium-3)"
    r"|llava|internvl|minicpm-v|moondream|vision|multimodal|(?:\b|[0-9.])vl(?:\b|-)|glm-4\.[0-9]v|nova-(?:lite|pro)"
)
_BLIND = re.compile(
    r"gpt-3\.5|gpt-oss|o1-mini|o1-preview|o3-mini|claude-(?:2|instant)|deepseek-(?:chat|reasoner|coder|[vr][0-9])"
    r"|codestral|mixtral|qwen3-coder|llama-?(?:2|3|3\.1|3\.3)(?:\b|-)|embed"
)


def sees_images(model: Model, own: Mapping[str, bool]) -> bool | None:
    """Whether a model can see images; None if that is not known. `own` settings, by name, take precedence."""
    for name, sees in own.items():
        if _bare(name) == _bare(model.name):
            return sees
    if model.provider == OFFLINE:
        return False
    name = _bare(model.name)
    if _SEEING.search(name):
        return True
    return False if _BLIND.search(name) else None


def why_no_images(model: Model, own: Mapping[str, bool]) -> str:
    """Return why an image is not sent to a model, for the user; empty if it is sent."""
    match sees_images(model, own):
        case True:
            return ""
        case False:
            return f"the model {model.name} cannot see images"
        case _:
            return (
                f"it is not known whether the model {model.name} can see images; if it can, set"
                f" `model.sees_images: {{{model.name}: true}}` in config.yaml"
            )


def _bare(name: str) -> str:
    """Return a name without its vendor, in lower case."""
    return name.rpartition("/")[2].casefold()
