"""The list of models at an endpoint."""

from __future__ import annotations

import json
import time
from dataclasses import dataclass
from difflib import get_close_matches
from http import HTTPStatus

from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http.http_call import ConnectionFailure, HttpCall, HttpRequest, ResponseEnd, ResponseHead
from hermes.agent.models.model import Cancellation

MAX_BYTES = 4 * 1024 * 1024
MAX_NAMES = 2_000
MAX_NAME_CHARACTERS = 200


@dataclass(frozen=True, slots=True)
class ModelList:
    """What an endpoint says about its models."""

    names: list[str] | None = None
    """In the endpoint's order; None if it does not list them."""
    status: int | None = None
    """The HTTP status; None if there was no response in time."""
    reason: str = ""
    """Why there was no response."""


def list_models(choice: ModelChoice, limit_s: float, cancellation: Cancellation) -> list[str] | None:
    """Return the names of the models, in the endpoint's order, or None if it does not list them in time."""
    return request_models(choice, limit_s, cancellation).names


def request_models(choice: ModelChoice, limit_s: float, cancellation: Cancellation) -> ModelList:
    """Ask an endpoint for its models."""
    deadline = time.monotonic() + limit_s
    url, headers = choice.url("/models"), choice.headers()
    request = HttpRequest("GET", url, headers, connect_s=limit_s, silence_s=limit_s, allow_http=choice.allow_http)
    call = HttpCall(request, cancellation)
    body, status = bytearray(), None
    try:
        while not isinstance(received := call.next(deadline), ResponseEnd):
            if isinstance(received, ResponseHead):
                status = received.status
                if status != HTTPStatus.OK or "content-encoding" in received.headers:
                    return ModelList(status=status)
            elif isinstance(received, bytes) and len(body) + len(received) <= MAX_BYTES:
                body += received
            else:
                reason = received.reason if isinstance(received, ConnectionFailure) else ""
                return ModelList(status=status, reason=reason)
    except TimeoutError:
        return ModelList(status=status, reason=f"no response within {limit_s:g} s")
    finally:
        call.leave()
    return ModelList(_names(bytes(body)), status)


def near_names(name: str, names: list[str]) -> list[str]:
    """Return the names most similar to `name`, also those with a vendor prefix."""
    bare = {each.rpartition("/")[2]: each for each in reversed(names)}
    found = get_close_matches(name, names, n=3) + get_close_matches(name.rpartition("/")[2], bare, n=3)
    return list(dict.fromkeys(bare.get(each, each) for each in found))[:3]


def _names(body: bytes) -> list[str] | None:
    try:
        answer = json.loads(body)
    except (ValueError, RecursionError):
        return None
    listed = answer.get("data") if isinstance(answer, dict) else None
    if not isinstance(listed, list):
        return None
    names = [each["id"] for each in listed if isinstance(each, dict) and isinstance(each.get("id"), str)]
    # A name is shown and typed: one with control characters would act on the terminal.
    return [name for name in names if len(name) <= MAX_NAME_CHARACTERS and name.isprintable()][:MAX_NAMES]
