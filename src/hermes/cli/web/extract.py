"""`hermes web extract`: reads a web page as text."""

from __future__ import annotations

from dataclasses import asdict

import click

from hermes.cli.display.terminal import heading, printable, printable_lines, write_json, write_stderr, write_stdout
from hermes.cli.options import AS_JSON
from hermes.cli.web.open_client import open_client
from hermes.cli.web.options import BACKEND
from hermes.config import WebBackend

SCHEMA = "hermes.web_page/1"


@click.command(
    epilog="""\b
Examples:
  hermes web extract https://www.sqlite.org/wal.html
  hermes web extract https://www.sqlite.org/wal.html --backend direct --json""",
)
@click.argument("url")
@BACKEND
@AS_JSON
def extract(url: str, backend: WebBackend | None, as_json: bool) -> None:
    """Read a web page as text.

    Addresses of this machine, of private networks and of the metadata services of clouds are refused.
    """
    page = open_client(as_json=as_json, backend=backend).extract(url)
    if as_json:
        write_json({"schema": SCHEMA, **asdict(page)})
        return
    if page.title:
        write_stdout(f"{heading(printable(page.title))}\n")
    write_stdout(printable_lines(page.text))
    cut = "; the page is longer than web.max_bytes, and the rest was not read" if page.is_truncated else ""
    write_stderr(f"{page.url}, read by {page.backend}{cut}")
