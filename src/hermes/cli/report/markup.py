"""HTML that is well-formed and safe because of how it is made: text becomes markup in one place only."""

from __future__ import annotations

from html import escape

from hermes.cli.terminal import printable

VOID = ("meta",)


class Markup(str):
    """Text that is HTML already."""

    __slots__ = ()


def tag(name: str, /, *content: str, **attributes: str | float) -> Markup:
    """An element; what is not markup is text, whoever wrote it. `class_` is for class, `a_b` for a-b."""
    said = "".join(f' {_attribute(key)}="{_text(f"{value}")}"' for key, value in attributes.items())
    start = f"<{name}{said}>"
    return Markup(start if name in VOID else f"{start}{joined(*content)}</{name}>")


def joined(*content: str) -> Markup:
    """Several pieces of text and markup."""
    return Markup("".join(each if isinstance(each, Markup) else _text(each) for each in content))


def _attribute(name: str) -> str:
    return name.rstrip("_").replace("_", "-")


def _text(text: str) -> str:
    return escape(printable(text))
