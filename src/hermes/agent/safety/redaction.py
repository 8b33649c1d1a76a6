"""Error texts of tools without the secrets that they may quote."""

from __future__ import annotations

from collections.abc import Mapping

from hermes.agent.history.text_limits import limit_text
from hermes.agent.safety.environment import is_secret_name
from hermes.secrets import MASK, hide_keys

MAX_CHARACTERS = 16_000
"""Far more than is shown of an error, so that the limit cuts no secret in two where a part is shown."""

_MIN_SECRET_CHARACTERS = 8


def redact(text: str, environ: Mapping[str, str]) -> str:
    """Return `text` without the values of secret variables and without other secrets.

    Only the two ends of a long text are kept.
    """
    for value in _secrets(environ):
        text = text.replace(value, MASK)
    return hide_keys(limit_text(text, MAX_CHARACTERS, more="look at less at once"))


def _secrets(environ: Mapping[str, str]) -> list[str]:
    """The values to hide, the longest first, so that no part of one is left."""
    values = {value for name, value in environ.items() if is_secret_name(name) and len(value) >= _MIN_SECRET_CHARACTERS}
    return sorted(values, key=len, reverse=True)
