"""The models of a configuration, made ready to be asked."""

from __future__ import annotations

from hermes.agent.model import Model
from hermes.agent.models.choice import ANY_LOCAL, Choice
from hermes.config import ModelConfig


def open_model(choice: Choice, settings: ModelConfig) -> Model:
    """The model of a choice; only a choice that leaves something open asks the local servers what there is."""
    if choice.is_offline:
        from hermes.agent.models.offline import OfflineModel

        return OfflineModel()
    # Loading what talks over the network takes longer than all the rest of a short command.
    from hermes.agent.models.endpoint import Endpoint
    from hermes.agent.models.local import find_local
    from hermes.agent.models.retry import RetryPolicy

    if not choice.name or choice.provider == ANY_LOCAL:
        choice = find_local(choice)
    return Endpoint(choice, timeouts=settings.timeouts, policy=RetryPolicy(attempts=settings.attempts))
