"""The Markdown of models as the HTML that programs of Matrix show; pure."""

from __future__ import annotations

import html
from functools import cache

from markdown_it import MarkdownIt

FORMAT = "org.matrix.custom.html"


def to_html(text: str) -> str | None:
    """Return a text as HTML; None if that says no more than the text itself.

    Tags in the text are shown as they are written, and pictures of other servers are links: a program that fetched them
    would tell these servers who reads the answer.
    """
    rendered = _renderer().render(text).strip()
    as_written = html.escape(text.strip(), quote=False).replace('"', "&quot;").replace("\n", "<br />\n")
    return None if rendered == f"<p>{as_written}</p>" else rendered


@cache
def _renderer() -> MarkdownIt:
    options = {"html": False, "linkify": False, "breaks": True}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"]).disable("image")
