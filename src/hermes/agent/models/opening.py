"""Opens the model of a choice."""

from __future__ import annotations

from hermes.agent.models.choice import ANY_LOCAL, ModelChoice
from hermes.agent.models.model import Model
from hermes.config import ModelConfig


def open_model(choice: ModelChoice, settings: ModelConfig) -> Model:
    """Return the model of a choice; only an incomplete choice asks the local servers for their models."""
    if choice.is_offline:
        from hermes.agent.models.offline.model import OfflineModel

        return OfflineModel()
    # Imported late: loading the HTTP client takes longer than the rest of a short command.
    from hermes.agent.models.http.endpoint import Endpoint
    from hermes.agent.models.http.retry import RetryPolicy
    from hermes.agent.models.local_servers import find_local_model

    if not choice.name or choice.provider == ANY_LOCAL:
        choice = find_local_model(choice)
    return Endpoint(choice, timeouts=settings.timeouts, policy=RetryPolicy(attempts=settings.attempts))
