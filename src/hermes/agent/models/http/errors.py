"""Errors of endpoints: status, text and headers of a response as one of our errors."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, assert_never

from hermes.agent.models.choice import LOCAL, ModelChoice
from hermes.agent.models.http.http_call import ConnectionFailure
from hermes.agent.models.http.retry import read_retry_after
from hermes.errors import (
    ContextTooLong,
    CreditSpent,
    ModelBusy,
    ModelError,
    ModelKeyRefused,
    ModelRefused,
    ModelTimeout,
    ModelUnavailable,
    UnknownModel,
)

MAX_QUOTED = 300
MAX_READ = 20 * MAX_QUOTED
"""The characters of an error text that are read; the rest is ignored."""

_TOO_LONG = re.compile(
    r"context_length_exceeded|exceed_context_size|string_above_max_length|maximum context length"
    r"|context (length|window|size|limit)|(prompt|input|request) is too long|too many (input )?tokens"
    r"|reduce the length|token count.{0,40} exceeds|exceeds the maximum number of (input )?tokens",
    re.IGNORECASE,
)
_NO_CREDIT = re.compile(r"insufficient_quota|credit balance|insufficient (credits|balance|funds)", re.IGNORECASE)
_NO_MODEL = re.compile(
    r"no (such )?model\b|(unknown|invalid) model\b|not a valid model|no endpoints found for|\bmodel: \S"
    r"|\bmodel\b.{0,120}\b(not found|(does )?not exist|is not loaded)",
    re.IGNORECASE,
)
_STATUS = re.compile("[45][0-9][0-9]")
_TITLE = re.compile(r"<title[^<>]{0,200}>([^<]{0,1000})</title>", re.IGNORECASE)
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2066-\u2069]+")

_BUSY = frozenset((429, 529))
_PASSING = frozenset((408, 409, 425, 500, 502, 503, 504))


@dataclass(frozen=True, slots=True)
class EndpointError:
    """The error that an endpoint sent instead of an answer."""

    status: int
    text: str
    """Its text, short and without secrets."""
    kinds: tuple[str, ...] = ()
    """Its own codes for what is wrong."""
    retry_after_s: float | None = None
    location: str | None = None

    def mentions(self, pattern: re.Pattern[str]) -> bool:
        """Whether its text or one of its codes matches a pattern."""
        return any(pattern.search(each) for each in (*self.kinds, self.text))

    def is_any(self, *kinds: str) -> bool:
        """Whether it has one of these codes."""
        return not set(kinds).isdisjoint(self.kinds)


def read_error_response(
    status: int, headers: Mapping[str, str], body: bytes, choice: ModelChoice, now: float
) -> EndpointError:
    """Parse a response with an error status; the names of headers are in lower case."""
    try:
        body_json = json.loads(body)
    except (ValueError, RecursionError):
        body_json = _readable_text(body.decode("utf-8", "replace"), headers.get("content-type", ""))
    retry_after_s = read_retry_after(headers, now)
    return _parse_error(body_json, status, choice, retry_after_s=retry_after_s, location=headers.get("location"))


def read_error_event(body_json: Any, choice: ModelChoice) -> EndpointError:
    """Parse an error that came instead of an answer; it has codes, but no status."""
    return _parse_error(body_json, 0, choice)


def to_model_error(refusal: EndpointError, choice: ModelChoice) -> ModelError:
    """Return the error for what an endpoint sent."""
    host, status, quoted = choice.host, refusal.status, f": {refusal.text}" if refusal.text else ""
    if 300 <= status < 400:
        return _redirect_error(refusal, choice)
    if status == 413 or (refusal.mentions(_TOO_LONG) and status not in _BUSY):
        return ContextTooLong(f"the conversation is longer than {choice.name} can read{quoted}")
    if status == 402 or refusal.mentions(_NO_CREDIT):
        return CreditSpent(f"the account at {host} has no credit left{quoted}")
    if refusal.is_any("model_not_found"):  # also, with another status, for a model that the user may not use
        return UnknownModel(f"{host} has no model {choice.name} for you{quoted}", hint=_other_model_hint(choice))
    if status in (401, 403) or refusal.is_any("invalid_api_key", "authentication_error"):
        return _key_error(refusal, choice)
    if status in _BUSY or refusal.is_any("rate_limit_exceeded", "rate_limit_error", "overloaded_error"):
        asked = refusal.retry_after_s
        hint = None if asked is None else f"try again in {asked:.0f} s"
        return ModelBusy(f"{host} is busy (rate limit){quoted}", hint=hint, retry_after_s=asked)
    if status in _PASSING or status >= 500:
        return ModelUnavailable(
            f"{host} failed (status {status}){quoted}",
            hint="try again later",
            retry_after_s=refusal.retry_after_s,
        )
    if refusal.mentions(_NO_MODEL):
        return UnknownModel(f"{host} has no model {choice.name}{quoted}", hint=_other_model_hint(choice))
    if status in (404, 405):
        return ModelRefused(
            f"there is no /chat/completions at {choice.display_url}{quoted}",
            hint=f"correct {choice.section}.base_url in config.yaml; it usually ends with /v1",
        )
    if status == 0 and not refusal.is_any("invalid_request_error"):
        return ModelUnavailable(f"{host} failed during its answer{quoted}", hint="try again later")
    return ModelRefused(f"{host} does not accept the request{quoted}")


def to_connection_error(broken: ConnectionFailure, choice: ModelChoice) -> ModelError:
    """Return the error for a connection that failed."""
    host, reason = choice.host, quote_safely(broken.reason, choice)
    match broken.how:
        case "unconnected":
            hint = (
                f"start {choice.provider}, or set {choice.section} in config.yaml" if choice.provider in LOCAL else None
            )
            return ModelUnavailable(f"no connection to {host}: {reason}", hint=hint)
        case "untrusted":
            return ModelRefused(
                f"the certificate of {host} is not trusted: {reason}",
                hint=f"check {choice.section}.base_url, or name the certificates to trust in SSL_CERT_FILE",
            )
        case "silent":
            return ModelTimeout(f"{host} does not respond any more")
        case "impossible":
            return ModelRefused(f"the request to {host} cannot be sent: {reason}")
        case "cut":
            return ModelUnavailable(f"the connection to {host} broke: {reason}")
        case _:
            assert_never(broken.how)


def quote_safely(text: str, choice: ModelChoice) -> str:
    """Return a text without secrets, on one line, and not long."""
    from hermes.secrets import MASK, hide_keys  # late: only errors need it

    for secret in choice.secrets:
        text = text.replace(secret, MASK)
    text = text[:MAX_READ]  # far more than is shown, so that no key is cut in two where a part is shown
    text = " ".join(_CONTROL.sub(" ", hide_keys(text)).split())
    return text if len(text) <= MAX_QUOTED else f"{text[:MAX_QUOTED]}..."


def _parse_error(
    body_json: Any, status: int, choice: ModelChoice, *, retry_after_s: float | None = None, location: str | None = None
) -> EndpointError:
    if isinstance(body_json, list) and body_json:
        body_json = body_json[0]
    error = body_json.get("error", body_json) if isinstance(body_json, dict) else body_json
    kinds: list[object] = []
    text = error
    if isinstance(error, dict):
        kinds = [error.get("code"), error.get("type"), error.get("status")]
        text = error.get("message") or error.get("detail") or error.get("error") or ""
    code = str(kinds[0]) if kinds else ""
    return EndpointError(
        # Some endpoints send the status only as a code in the text.
        status=int(code) if status < 300 and _STATUS.fullmatch(code) else status,
        text=quote_safely(text if isinstance(text, str) else json.dumps(text), choice),
        kinds=tuple(each for each in kinds if isinstance(each, str)),
        retry_after_s=retry_after_s,
        location=location,
    )


def _readable_text(text: str, content_type: str) -> str:
    """Return the text of a response that is not JSON: the title of an HTML page, if it has one."""
    if "html" not in content_type and not text.lstrip().startswith("<"):
        return text
    title = _TITLE.search(text)
    return title[1] if title else ""


def _redirect_error(refusal: EndpointError, choice: ModelChoice) -> ModelRefused:
    to = quote_safely(refusal.location or "", choice).split("?")[0].removesuffix("/chat/completions")
    return ModelRefused(
        f"{choice.display_url} redirects to another address; the key is not sent there",
        hint=f"if that address is right, set {choice.section}.base_url in config.yaml to {to or 'that address'}",
    )


def _key_error(refusal: EndpointError, choice: ModelChoice) -> ModelKeyRefused:
    if choice.key_source is None:
        return ModelKeyRefused(
            f"{choice.host} requires a key, and none is set", hint=f"set {choice.section}.api_key in config.yaml"
        )
    # A 401 is about the key and may quote it; a 403 may have other reasons, such as the country or missing permission.
    quoted = f": {refusal.text}" if refusal.status == 403 and refusal.text else ""
    return ModelKeyRefused(
        f"{choice.host} does not accept the key from {choice.key_source}{quoted}",
        hint=f"set {choice.key_source} to a key that is valid there",
    )


def _other_model_hint(choice: ModelChoice) -> str:
    return (
        f"set {choice.section}.default in config.yaml to a model that the provider has, or {choice.section}.provider to"
        " another one"
    )
