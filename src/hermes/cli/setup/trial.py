"""Trying a model before it is stored: the list of models, and one short message."""

from __future__ import annotations

from http import HTTPStatus

from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.model import Cancellation, Reply
from hermes.config import TimeoutsConfig
from hermes.errors import ModelError, ModelGarbled, ModelKeyRefused, ModelUnavailable

LIST_S = 10.0
MESSAGE = "Reply with the word OK."
_REACH = "start the server, or check the address and the network"
TIMEOUTS = TimeoutsConfig(connect_s=10.0, first_token_s=60.0, between_tokens_s=30.0, total_s=90.0)


def list_names(choice: ModelChoice) -> list[str]:
    """Return the models at an endpoint; none if it does not list them. Raise `ModelError` if it does not respond."""
    from hermes.agent.models.model_list import request_models

    found = request_models(choice, LIST_S, Cancellation())
    if found.status is None:
        raise ModelUnavailable(f"{choice.host} cannot be reached: {found.reason}; nothing was stored", hint=_REACH)
    if found.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        raise ModelKeyRefused(f"{choice.host} does not accept the key; nothing was stored", hint="copy it again")
    return found.names or []


def try_model(choice: ModelChoice) -> str | None:
    """Send a short message, which costs next to nothing; return the name with which the endpoint answers.

    Raise `ModelError` if the model does not answer.
    """
    from hermes.agent.models.http.endpoint import Endpoint
    from hermes.agent.models.http.retry import RetryPolicy

    endpoint = Endpoint(choice, timeouts=TIMEOUTS, policy=RetryPolicy(attempts=1))
    for event in endpoint.stream([{"role": "user", "content": MESSAGE}], (), Cancellation()):
        if isinstance(event, Reply):
            return event.model
    raise ModelGarbled("the endpoint sent no answer")


def hint_of(error: ModelError) -> str:
    """Return what the user can do; advice about settings does not apply, because nothing is stored."""
    return error.hint if "config.yaml" not in error.hint else "nothing was stored"
