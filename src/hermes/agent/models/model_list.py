"""The models that an endpoint has, as far as it tells."""

from __future__ import annotations

import json
import time
from difflib import get_close_matches

from hermes.agent.models.choice import ModelChoice
from hermes.agent.models.http.http_call import HttpCall, HttpRequest, ResponseEnd, ResponseHead
from hermes.agent.models.model import Cancellation

MAX_BYTES = 4 * 1024 * 1024
MAX_NAMES = 2_000
MAX_NAME_CHARACTERS = 200


def list_models(choice: ModelChoice, limit_s: float, cancellation: Cancellation) -> list[str] | None:
    """The names of the models there, in its order; None when it does not say so within the limit."""
    deadline = time.monotonic() + limit_s
    url, headers = choice.url("/models"), choice.headers()
    request = HttpRequest("GET", url, headers, connect_s=limit_s, silence_s=limit_s, allow_http=choice.allow_http)
    exchange = HttpCall(request, cancellation)
    body = bytearray()
    try:
        while not isinstance(news := exchange.next(deadline), ResponseEnd):
            if isinstance(news, bytes) and len(body) + len(news) <= MAX_BYTES:
                body += news
            elif not isinstance(news, ResponseHead) or news.status != 200 or "content-encoding" in news.headers:
                return None
    except TimeoutError:
        return None
    finally:
        exchange.leave()
    return _names(bytes(body))


def near_names(name: str, names: list[str]) -> list[str]:
    """Those that may have been meant, also when they are listed with who offers them."""
    bare = {each.rpartition("/")[2]: each for each in reversed(names)}
    found = get_close_matches(name, names, n=3) + get_close_matches(name.rpartition("/")[2], bare, n=3)
    return list(dict.fromkeys(bare.get(each, each) for each in found))[:3]


def _names(body: bytes) -> list[str] | None:
    try:
        said = json.loads(body)
    except (ValueError, RecursionError):
        return None
    listed = said.get("data") if isinstance(said, dict) else None
    if not isinstance(listed, list):
        return None
    names = [each["id"] for each in listed if isinstance(each, dict) and isinstance(each.get("id"), str)]
    return [name for name in names if len(name) <= MAX_NAME_CHARACTERS][:MAX_NAMES]
