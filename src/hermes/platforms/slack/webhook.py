"""Requests of Slack's Events API: only signed and recent ones are read."""

from __future__ import annotations

import hashlib
import hmac
import json
from collections.abc import Mapping
from typing import Any
from urllib.parse import parse_qsl

from hermes.platforms.base.http import HttpRequest, HttpResponse

PATH = "/webhooks/slack"
MAX_AGE_S = 300
MAX_BYTES = 1024 * 1024


def is_genuine(request: HttpRequest, secret: str, now: float) -> bool:
    """Return whether Slack has signed the request within the last five minutes."""
    stamp = request.headers.get("x-slack-request-timestamp", "")
    if (
        not secret
        or not (stamp.isascii() and stamp.isdigit() and len(stamp) <= 12)
        or abs(now - int(stamp)) > MAX_AGE_S
    ):
        return False
    given = request.headers.get("x-slack-signature", "").encode("utf-8", "replace")
    text = b"v0:" + stamp.encode() + b":" + request.body
    expected = "v0=" + hmac.new(secret.encode(), text, hashlib.sha256).hexdigest()
    return hmac.compare_digest(given, expected.encode())


def read_body(request: HttpRequest) -> Mapping[str, Any]:
    """Return the payload of an event, or the form of a slash command; raise ValueError for anything else."""
    if len(request.body) > MAX_BYTES:
        raise ValueError("the body is too large")
    if request.headers.get("content-type", "").lower().startswith("application/x-www-form-urlencoded"):
        return dict(parse_qsl(request.body.decode("utf-8"), max_num_fields=50))
    try:
        data = json.loads(request.body)
    except RecursionError:
        raise ValueError("the body is nested too deeply") from None
    if not isinstance(data, dict):
        raise ValueError("the body is not an object")
    return data


def challenge_response(payload: Mapping[str, Any]) -> HttpResponse | None:
    """Return the response to the question with which Slack checks the address; None for other requests."""
    if payload.get("type") != "url_verification":
        return None
    challenge = str(payload.get("challenge") or "")[:1000]
    return HttpResponse(200, challenge.encode("utf-8", "replace"), {"content-type": "text/plain; charset=utf-8"})
