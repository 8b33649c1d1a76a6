"""Sessions as one self-contained HTML page, without scripts or network access."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from html import escape
from urllib.parse import quote

from hermes.cli.display.terminal import printable
from hermes.cli.transcripts.blocks import (
    Block,
    BlockKind,
    format_time,
    message_blocks,
    session_facts,
    session_title,
    speaker_name,
)
from hermes.phrases import plural
from hermes.state.import_export.session_reader import SessionExport
from hermes.state.rows import Row

STYLE = """
:root { color-scheme: light dark; --ink: #1d1d1f; --paper: #fff; --soft: #6b6b70; --line: #e2e2e6; --tint: #f5f5f7;
        --user: #0a6e4f; --assistant: #3a4fb8;
        --magenta: #8a2f96; --cyan: #0a6577; --green: #1a6b30; --red: #ad241c; }
@media (prefers-color-scheme: dark) {
  :root { --ink: #e6e6ea; --paper: #17171a; --soft: #9a9aa2; --line: #333338; --tint: #222226;
          --user: #5cc8a2; --assistant: #98a8ff;
          --magenta: #dc9be6; --cyan: #6fcadb; --green: #84d196; --red: #ff9d94; } }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 52rem; padding: 1.5rem 1rem 4rem; background: var(--paper); color: var(--ink);
       font: 16px/1.55 system-ui, sans-serif; }
h1 { font-size: 1.5rem; } h2 { font-size: 1.25rem; margin: 3rem 0 .5rem; padding-top: 1rem;
     border-top: 1px solid var(--line); overflow-wrap: anywhere; }
nav ol { padding-left: 1.5rem; } nav small, dl, h3 small { color: var(--soft); }
a { color: var(--assistant); text-decoration: none; } a:hover { text-decoration: underline; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: 0 1rem; font-size: .875rem; }
dd { margin: 0; overflow-wrap: anywhere; }
section { content-visibility: auto; contain-intrinsic-size: auto 40rem; }
h3 { margin: 1.5rem 0 .25rem; font-size: .9rem; } h3 small { font-weight: normal; }
.user h3 { color: var(--user); } .assistant h3 { color: var(--assistant); } .undone { opacity: .55; }
.text, pre { white-space: pre-wrap; overflow-wrap: anywhere; margin: .35rem 0; }
details { margin: .35rem 0; border: 1px solid var(--line); border-radius: .4rem; background: var(--tint); }
summary { padding: .25rem .6rem; cursor: pointer; color: var(--soft); font-size: .875rem; }
details > * + * { padding: 0 .6rem .4rem; } pre { font: .8125rem/1.5 ui-monospace, monospace; }
.md { margin: .35rem 0; overflow-wrap: anywhere; } .md p { margin: .5rem 0; }
.md :is(h4, h5, h6) { margin: 1rem 0 .25rem; font-size: 1rem; }
.md h4 { font-size: 1.1rem; text-decoration: underline; }
.md :is(ul, ol) { margin: .5rem 0; padding-left: 1.5rem; } .md :is(ul, ol) :is(ul, ol) { margin: 0; }
.md li > p { margin: .25rem 0; } .md hr { border: 0; border-top: 1px solid var(--line); margin: 1rem 0; }
.md blockquote { margin: .5rem 0; padding-left: .8rem; border-left: 3px solid var(--line); font-style: italic; }
.md code { font: .875em ui-monospace, monospace; color: var(--cyan); } .md a { text-decoration: underline; }
.md pre { padding: .6rem .8rem; border: 1px solid var(--line); border-radius: .4rem; background: var(--tint);
          white-space: pre; overflow-x: auto; overflow-wrap: normal; } .md pre code { font: inherit; color: inherit; }
.wide { overflow-x: auto; } .md table { border-collapse: collapse; font-size: .9375rem; overflow-wrap: normal; }
.md :is(th, td) { padding: .25rem .7rem; border-bottom: 1px solid var(--line); text-align: start; }
.md :is(th, td).right { text-align: right; } .md :is(th, td).center { text-align: center; }
.magenta { color: var(--magenta); } .cyan { color: var(--cyan); } .green { color: var(--green); }
.red { color: var(--red); } .b { font-weight: bold; } .i { font-style: italic; } .d { color: var(--soft); }
"""

HEAD = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>{style}</style>
</head>
<body>
"""


class Html:
    """One page for all sessions, starting with a table of contents."""

    def __init__(self, headings: Callable[[], Iterator[Row]], count: int) -> None:
        self._headings = headings
        self._count = count

    def begin(self) -> Iterator[bytes]:
        """Yield the head of the page and the table of contents."""
        title = plural(self._count, "session")
        yield _encode(HEAD.format(title=title, style=STYLE) + f"<h1>{title}</h1>\n<nav><ol>\n")
        for row in self._headings():
            about = (
                f"{row['source']}, {format_time(row['last_active'])}, {plural(row['message_count'] or 0, 'message')}"
            )
            link = f'<a href="#{_anchor(row)}" dir="auto">{escape(session_title(row))}</a>'
            yield _encode(f"<li>{link} <small>{escape(printable(about))}</small></li>\n")
        yield b"</ol></nav>\n<main>\n"

    def session(self, session: SessionExport) -> Iterator[bytes]:
        """Yield a session: its title, its facts and its messages."""
        facts = "".join(
            f"<dt>{escape(name)}</dt><dd>{escape(value)}</dd>" for name, value in session_facts(session.row)
        )
        yield _encode(
            f'<section id="{_anchor(session.row)}">\n<h2 dir="auto">{escape(session_title(session.row))}</h2>\n'
            f"<dl>{facts}</dl>\n"
        )
        speaker = ""
        for page in session.pages:
            for message in page:
                heading = ""
                if speaker_name(message) != speaker:
                    speaker = speaker_name(message)
                    heading = f"<h3>{escape(speaker)} <small>{format_time(message['timestamp'])}</small></h3>\n"
                kind = escape(speaker.split(" ")[0]) + ("" if message["active"] else " undone")
                is_markdown = message["role"] == "assistant"
                blocks = "".join(_block_html(each, is_markdown=is_markdown) for each in message_blocks(message))
                yield _encode(f'<div class="{kind}">\n{heading}{blocks}</div>\n')
        yield b"</section>\n"

    def end(self) -> Iterator[bytes]:
        """Yield the end of the page."""
        yield b"</main>\n</body>\n</html>\n"


def _block_html(block: Block, *, is_markdown: bool) -> str:
    """Return a block; only a model writes Markdown, as on the terminal."""
    if block.kind is BlockKind.TEXT and is_markdown:
        from hermes.cli.transcripts.markdown_html import render_markdown

        return f"{render_markdown(block.text)}\n"
    if block.kind is BlockKind.TEXT:
        return f'<div class="text" dir="auto">{escape(block.text)}</div>\n'
    inside = (
        f'<div class="text" dir="auto">{escape(block.text)}</div>'
        if block.kind is BlockKind.THOUGHT
        else f"<pre>{escape(block.text)}</pre>"
    )
    return f"<details><summary>{escape(block.summary)}</summary>{inside}</details>\n"


def _anchor(session: Row) -> str:
    return f"s-{quote(session['id'], safe='')}"


def _encode(text: str) -> bytes:
    return text.encode()
