"""HTML that is well-formed and safe because of how it is made: text becomes markup in one place only."""

from __future__ import annotations

from html import escape

from hermes.cli.display.terminal import printable

VOID = ("meta",)


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str | float) -> Markup:
    """An element; what is not markup is text, whoever wrote it. `class_` is for class, `a_b` for a-b."""
    said = "".join(f' {_attribute_name(key)}="{_escape_text(f"{value}")}"' for key, value in attributes.items())
    start = f"<{name}{said}>"
    return Markup(start if name in VOID else f"{start}{join_markup(*content)}</{name}>")


def join_markup(*content: str) -> Markup:
    """Several pieces of text and markup."""
    return Markup("".join(each if isinstance(each, Markup) else _escape_text(each) for each in content))


def _attribute_name(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _escape_text(text: str) -> str:
    return escape(printable(text))
