"""The body of a response as text: its type, its character set, and what is readable of it."""

from __future__ import annotations

import codecs
import re

from hermes.errors import WebGarbled
from hermes.web.clean_text import clean_text
from hermes.web.html_text import PageText, read_html

_HTML_TYPES = frozenset(("text/html", "application/xhtml+xml"))
_TEXT_TYPES = frozenset(
    (
        *("application/json", "application/xml", "application/yaml", "application/x-yaml", "application/toml"),
        *("application/javascript", "application/x-ndjson", "application/rss+xml", "application/atom+xml"),
    )
)
_CHARSET = re.compile(r"charset\s*=\s*[\"']?([\w.:-]{1,40})", re.IGNORECASE)
_TYPE = re.compile(r"[\w!#$&^.+-]{1,80}/[\w!#$&^.+-]{1,80}")
_SNIFFED_BYTES = 2_048
_CHARSETS = frozenset(
    (
        *("ascii", "utf-8", "utf-16", "utf-16-le", "utf-16-be", "big5", "gb2312", "gbk", "gb18030", "shift_jis"),
        *("euc_jp", "iso2022_jp", "euc_kr", "cp949", "cp932", "koi8-r", "koi8-u", "cp866", "cp874", "mac-roman"),
        *(f"iso8859-{number}" for number in range(1, 17)),
        *(f"cp{number}" for number in range(1250, 1259)),
    )
)
"""The character sets of the web; Python knows others that are no character sets."""


def read_body(body: bytes, content_type: str) -> PageText:
    """Return the readable text of a body; raises `WebGarbled` if it is not text."""
    kind = content_type.partition(";")[0].strip().lower()
    if not kind:
        kind = "text/html" if body.lstrip()[:1] == b"<" else "text/plain"
    is_text = kind.startswith("text/") or kind in _TEXT_TYPES | _HTML_TYPES or kind.endswith(("+json", "+xml"))
    if not is_text:
        shown = kind if _TYPE.fullmatch(kind) else "of an unknown type"
        raise WebGarbled(f"the page is {shown}, not text", hint="only text and HTML can be read")
    text = _decode(body, content_type)
    if "\0" in text[:_SNIFFED_BYTES]:
        raise WebGarbled("the page is binary data, not text", hint="only text and HTML can be read")
    return read_html(text) if kind in _HTML_TYPES else PageText("", clean_text(text).strip())


def _decode(body: bytes, content_type: str) -> str:
    for mark, charset in (
        (codecs.BOM_UTF8, "utf-8-sig"),
        (codecs.BOM_UTF16_LE, "utf-16"),
        (codecs.BOM_UTF16_BE, "utf-16"),
    ):
        if body.startswith(mark):
            return body.decode(charset, "replace")
    named = _CHARSET.search(content_type) or _CHARSET.search(body[:_SNIFFED_BYTES].decode("latin-1"))
    return body.decode((_known_charset(named[1]) if named else None) or "utf-8", "replace")


def _known_charset(name: str) -> str | None:
    try:
        found = codecs.lookup(name).name
    except (LookupError, ValueError):
        return None
    if found in ("ascii", "iso8859-1"):
        return "cp1252"  # as browsers read it
    return found if found in _CHARSETS else None
