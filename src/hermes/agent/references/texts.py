"""The text of attached context, as it is stored and as the model reads it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hermes.agent.history.attachments import INTRODUCTION
from hermes.agent.history.text_limits import valid_text
from hermes.agent.safety.visible_text import make_path_visible

if TYPE_CHECKING:
    from hermes.agent.history.images import Image

_FENCES = re.compile("`{3,}")
_MIN_FENCE = 3
_MAX_SHOWN_NAME = 200
_LANGUAGES = {
    **{name: name for name in ("css", "go", "html", "java", "json", "rs", "sh", "sql", "toml", "ts", "tsx", "jsx")},
    "py": "python",
    "pyi": "python",
    "js": "javascript",
    "md": "markdown",
    "yml": "yaml",
    "yaml": "yaml",
}


class NotAttached(Exception):
    """A reference was not attached; the text says why, in words that follow "not attached:"."""


@dataclass(frozen=True, slots=True)
class Block:
    """The content of one reference."""

    label: str
    """What the content is, in a few words."""
    content: str
    language: str = ""
    remark: str = ""
    """A sentence for the user about the content, if any."""
    image: Image | None = None
    """An image, which becomes a part of the message."""


def format_block(name: str, block: Block) -> str:
    """Return a block between fences that its content cannot close; of an image only what it is."""
    if block.image is not None:
        return f"{show_name(name)} ({block.label}, attached to the message)"
    content = valid_text(block.content)
    longest = max((len(each) for each in _FENCES.findall(content)), default=0)
    fence = "`" * max(_MIN_FENCE, longest + 1)
    end = "" if content.endswith("\n") or not content else "\n"
    return f"{show_name(name)} ({block.label})\n{fence}{block.language}\n{content}{end}{fence}"


def format_remark(name: str, reason: str) -> str:
    """Return a sentence about a reference that was not attached."""
    return f"{show_name(name)} was not attached: {reason}"


def format_attached(parts: Sequence[str]) -> str:
    """Return blocks and remarks as one text; empty if there are none."""
    return "\n\n".join([INTRODUCTION, *parts]) if parts else ""


def show_name(name: str) -> str:
    """Return a reference on one line, without characters that act on a terminal."""
    shown = make_path_visible(name)
    return shown if len(shown) <= _MAX_SHOWN_NAME else f"{shown[:_MAX_SHOWN_NAME]}..."


def language_of(name: str) -> str:
    """Return the language of a file for its fence, by the ending of its name."""
    return _LANGUAGES.get(name.rpartition(".")[2].lower(), "")
