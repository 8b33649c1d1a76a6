"""Attaches what the references in a message name; the message itself stays as the user typed it."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from hermes.agent.references.access import is_terminal
from hermes.agent.references.images import MAX_MESSAGE_BYTES, find_image_paths
from hermes.agent.references.limits import MAX_REFERENCES, MAX_SECONDS, Budget, TooMuchContext
from hermes.agent.references.parse import Reference, find_references
from hermes.agent.references.texts import Block, NotAttached, format_attached, format_block, format_remark
from hermes.agent.tools.context import ToolContext
from hermes.errors import HermesError
from hermes.phrases import plural

if TYPE_CHECKING:
    from hermes.agent.history.images import Image
    from hermes.web.fetch import Fetcher

FILES, WEB = "files", "web"
"""The toolsets that a chat needs for references."""


@dataclass(slots=True)
class Attached:
    """The context of one message."""

    text: str = ""
    """For the model; empty if the message has no reference."""
    count: int = 0
    """How many references are attached."""
    tokens: int = 0
    remarks: list[str] = field(default_factory=list)
    """Sentences for the user."""
    images: list[Image] = field(default_factory=list)
    """Images, which become parts of the message."""

    @property
    def summary(self) -> str:
        """One line about what is attached; empty if there is nothing."""
        return (
            f"[attached: {plural(self.count, 'reference')}, about {plural(self.tokens, 'token')}]" if self.count else ""
        )


class ReferenceReader:
    """Reads the references of the messages of one turn; together they have one limit."""

    def __init__(
        self,
        context: ToolContext,
        context_tokens: int | None,
        fetcher: Fetcher | None = None,
        *,
        seconds: float = MAX_SECONDS,
        why_no_images: str = "",
        budget: Budget | None = None,
    ) -> None:
        """`why_no_images` says why the model gets no images; empty if it sees them."""
        self._context = context
        self._budget = budget or Budget(context_tokens)
        self._fetcher = fetcher
        self._seconds = seconds
        self._why_no_images = why_no_images
        self._deadline = time.monotonic() + seconds

    def read(self, text: str) -> Attached:
        """Return the context of a message; raise `InvalidValue` if it is too much, so that nothing is sent."""
        references = [*find_references(text), *self._pasted_images(text)]
        attached = Attached()
        parts: list[str] = []
        try:
            for number, each in enumerate(references):
                parts.append(self._part(each, attached, is_late=number >= MAX_REFERENCES))
        except TooMuchContext:
            raise self._budget.refusal from None
        attached.text = format_attached(parts)
        if attached.count and (warning := self._budget.warning):
            attached.remarks.append(warning)
        return attached

    def _part(self, reference: Reference, attached: Attached, *, is_late: bool) -> str:
        """Return a block, or a remark why there is none, and note it in `attached`."""
        try:
            if is_late:
                raise NotAttached(f"a message can have {MAX_REFERENCES} references")
            block = self._block(reference)
            if block.image is not None:
                self._require_sight(block.image, attached)
        except NotAttached as error:
            reason = str(error)
        except HermesError as error:
            reason = error.message
        except OSError as error:
            reason = f"it cannot be read: {error.strerror}"
        else:
            part = format_block(reference.text, block)
            attached.tokens += self._budget.spend(part, images=block.image is not None)
            attached.count += 1
            if block.image is not None:
                attached.images.append(block.image)
            if block.remark:
                attached.remarks.append(block.remark)
            return part
        remark = format_remark(reference.text, reason)
        self._budget.spend(remark)
        attached.remarks.append(remark)
        return remark

    def _block(self, reference: Reference) -> Block:
        self._require_toolset(reference)
        if self._context.cancellation.is_cancelled:
            raise NotAttached("you stopped this turn")
        if time.monotonic() > self._deadline:
            raise NotAttached(f"reading the references took longer than {self._seconds:g} s")
        limit_bytes = self._budget.left_bytes
        if reference.kind == "file":
            from hermes.agent.references.files import read_file_block

            return read_file_block(self._context, reference.value, reference.lines, limit_bytes)
        if reference.kind == "folder":
            from hermes.agent.references.folders import read_folder_block

            return read_folder_block(self._context, reference.value)
        if reference.kind == "url":
            from hermes.agent.references.urls import read_url_block

            return read_url_block(self._context, reference.value, self._fetcher)
        from hermes.agent.references.git.changes import read_changes, read_commits

        if reference.kind == "git":
            return read_commits(self._context, reference.value, limit_bytes)
        return read_changes(self._context, limit_bytes, is_staged=reference.kind == "staged")

    def _pasted_images(self, text: str) -> list[Reference]:
        """Return the paths of images in a text of the terminal, as if they were references."""
        if not is_terminal(self._context):
            return []
        named = {each.value for each in find_references(text)}
        return [
            Reference("file", path, None, written)
            for written, path in find_image_paths(text)
            if path not in named and self._context.resolve_path(path).real.is_file()
        ]

    def _require_sight(self, image: Image, attached: Attached) -> None:
        """Raise `NotAttached` if the model cannot see an image, or the message has too much of them."""
        if self._why_no_images:
            raise NotAttached(self._why_no_images)
        if sum(len(each.data) for each in (*attached.images, image)) > MAX_MESSAGE_BYTES:
            raise NotAttached(f"the images of a message can have {MAX_MESSAGE_BYTES} bytes together")

    def _require_toolset(self, reference: Reference) -> None:
        """Raise `NotAttached` in a chat that has no tools for what a reference names."""
        if is_terminal(self._context):
            return
        needed = WEB if reference.kind == "url" else FILES
        if needed not in self._context.toolsets:
            raise NotAttached(f"this chat has no `{needed}` tools")
        if needed == FILES and self._context.working_directory is None:
            raise NotAttached("this chat has no directory of its own")
