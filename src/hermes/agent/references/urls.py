"""Reads the page of a reference, through the guard for addresses from outside."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.agent.references.texts import Block, NotAttached
from hermes.agent.safety.environment import holds_secret
from hermes.agent.safety.visible_text import make_path_visible
from hermes.agent.tools.context import ToolContext
from hermes.config import load_variables
from hermes.errors import HermesError

if TYPE_CHECKING:
    from hermes.web.fetch import Fetcher

MAX_TIMEOUT_S = 30.0

_FIRST_ERROR = 400


def read_url_block(context: ToolContext, url: str, fetcher: Fetcher | None = None) -> Block:
    """Return the text of a page; raise `NotAttached` if it is refused, cannot be read or has no text."""
    limits = context.web
    try:
        page = (fetcher or _make_fetcher(context)).fetch_text(
            url,
            limit_bytes=limits.max_bytes,
            timeout_s=min(limits.timeout_s, MAX_TIMEOUT_S),
            cancellation=context.cancellation,
        )
    except HermesError as error:
        raise NotAttached(error.message) from None
    if page.status >= _FIRST_ERROR:
        raise NotAttached(f"the server returned an error ({page.status})")
    if not page.text.strip():
        raise NotAttached("the page has no text")
    title = f"{make_path_visible(page.title)}, " if page.title else ""
    cut = "; only its beginning" if page.is_truncated else ""
    return Block(f"{title}{make_path_visible(page.url)}{cut}", page.text)


def _make_fetcher(context: ToolContext) -> Fetcher:
    """Return a fetcher with the settings of `web`; no secret of the environment may be part of an address."""
    from hermes.web.exchange import Network
    from hermes.web.fetch import Fetcher
    from hermes.web.guard import Guard

    variables = load_variables(context.home, environ=context.environ)
    secrets = [value for name, value in variables.items() if holds_secret(name, value)]
    return Fetcher(Guard(extra_ports=context.web.extra_ports, secrets=secrets), Network(proxy=context.web.proxy))
