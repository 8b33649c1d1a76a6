"""The check of `hermes doctor` for the endpoint of the model."""

from __future__ import annotations

from collections.abc import Mapping
from http import HTTPStatus

from hermes.agent.models.choice import ANY_LOCAL, ModelChoice, choose_model
from hermes.agent.models.model import Cancellation
from hermes.cli.display.terminal import printable
from hermes.config import Config
from hermes.errors import HermesError, NoModel
from hermes.state.maintenance.findings import CheckResult, error, note, ok, warning

LIMIT_S = 5.0
_KEY_REFUSED = (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN)


def check_endpoint(config: Config, variables: Mapping[str, str]) -> CheckResult:
    """Ask the endpoint for its models, within a few seconds and without any cost."""
    try:
        choice = choose_model(config.model, variables)
    except HermesError as exc:  # the check of the settings reports it
        return note(f"not asked: {exc.message}")
    if choice.is_offline:
        return ok(choice.describe(), model=choice.name, provider=choice.provider)
    if choice.provider != ANY_LOCAL:
        return _ask(choice)
    from hermes.agent.models.local_servers import find_local_model

    try:
        return _ask(find_local_model(choice))
    except NoModel as exc:
        return error(exc.message, exc.hint)


def _ask(choice: ModelChoice) -> CheckResult:
    from hermes.agent.models.model_list import near_names, request_models

    found = request_models(choice, LIMIT_S, Cancellation())
    seen = {"model": choice.name, "provider": choice.provider, "host": choice.host, "status": found.status}
    if found.status is None:
        return error(
            f"{choice.host} does not respond: {printable(found.reason) or 'the connection was cut'}",
            "check the network and model.base_url, or choose another model with `hermes setup`",
            **seen,
        )
    if found.status in _KEY_REFUSED:
        source = choice.key_source or "no key"
        return error(
            f"{choice.host} does not accept the key ({source})", "store a valid one with `hermes setup`", **seen
        )
    if found.names is None:
        what = f"status {found.status}" if found.status != HTTPStatus.OK else "no list"
        return note(f"{choice.host} responds, but does not list its models ({what})", **seen)
    if choice.name and choice.name not in found.names:
        near = near_names(choice.name, found.names)
        hint = f"such as {', '.join(map(printable, near))}" if near else "`/model` in a chat lists them"
        return warning(
            f"{choice.host} does not list {choice.name}", f"set model.default to one that it offers, {hint}", **seen
        )
    return ok(choice.describe(), **seen)
