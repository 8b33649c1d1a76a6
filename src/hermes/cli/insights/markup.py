"""Building well-formed, safe HTML: text is escaped in one place only."""

from __future__ import annotations

from html import escape

from hermes.cli.display.terminal import printable

VOID = ("meta",)


class Markup(str):
    """Text that is already HTML."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str | float) -> Markup:
    """Build an element; content that is not `Markup` is escaped. `class_` means class, `a_b` means a-b."""
    pairs = "".join(f' {_attribute_name(key)}="{_escape_text(f"{value}")}"' for key, value in attributes.items())
    start = f"<{name}{pairs}>"
    return Markup(start if name in VOID else f"{start}{join_markup(*content)}</{name}>")


def join_markup(*content: str) -> Markup:
    """Join text, which is escaped, and markup."""
    return Markup("".join(each if isinstance(each, Markup) else _escape_text(each) for each in content))


def _attribute_name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _escape_text(text: str) -> str:
    return escape(printable(text))
