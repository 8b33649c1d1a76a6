"""The models that the endpoint of a conversation offers."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from hermes.agent.models.model import Cancellation
from hermes.errors import HermesError

if TYPE_CHECKING:
    from hermes.agent.models.model import Model

LIMIT_S = 3.0
KEPT_S = 300.0
FAILED_S = 10.0
"""How long an endpoint that did not list its models is not asked again."""


class ModelNames:
    """Asks endpoints for their models, and keeps the lists for a few minutes."""

    def __init__(self) -> None:
        self._listed: dict[str, tuple[float, list[str] | None]] = {}
        """The names by the address of the endpoint, each with the time until which they are used again."""

    def names(self, model: Model) -> list[str] | None:
        """Return the names at the endpoint of a model, in its order; None if it does not list them in time."""
        from hermes.agent.models.http.endpoint import Endpoint

        if not isinstance(model, Endpoint):
            return None
        address = model.choice.base_url
        known = self._listed.get(address)
        if known is not None and time.monotonic() < known[0]:
            return known[1]
        from hermes.agent.models.model_list import list_models

        try:
            found = list_models(model.choice, LIMIT_S, Cancellation())
        except HermesError:  # the key must not be sent there, which the next message reports
            found = None
        self._listed[address] = time.monotonic() + (KEPT_S if found is not None else FAILED_S), found
        return found
