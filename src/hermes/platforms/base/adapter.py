"""The base class of adapters."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from hermes.gateway.delivery.previews import IS_FULL
from hermes.gateway.delivery.receipts import FINISHED_IDS, MESSAGE_IDS, PartlySent
from hermes.gateway.engine.ports import Delivery, NotSent, Receipt, Receive
from hermes.platforms.base.media import MediaFile
from hermes.platforms.base.splitting import split_text


@dataclass(frozen=True, slots=True)
class Part:
    """One message of a delivery: a long text is sent in several."""

    delivery: Delivery
    text: str
    index: int = 0
    count: int = 1
    reply_to_mode: str = "first"

    @property
    def key(self) -> str:
        """The idempotency key of this message, the same at every attempt."""
        return self.delivery.key if self.index == 0 else f"{self.delivery.key}#{self.index + 1}"

    @property
    def reply_to(self) -> str | None:
        """The message that this one quotes: with the mode `first` only the first part does, with `all` every part."""
        quotes = self.reply_to_mode == "all" or (self.reply_to_mode == "first" and self.index == 0)
        return self.delivery.reply_to if quotes else None


class BaseAdapter:
    """An adapter with harmless defaults; a platform adds `post`, and `edit` if messages can be changed.

    Both raise `NotSent` or `MaybeSent`, as `send` does.
    """

    platform: str = ""
    account: str = ""
    delivers_itself: bool = False
    can_edit: bool = False
    needs_one_poller: bool = False
    text_limit: int = 4096
    """The longest text of one message, in the units of `length`."""
    length: Callable[[str], int] = staticmethod(len)
    reply_to_mode: str = "first"
    """Which parts of an answer quote the message that they answer: off, first or all."""

    def __init__(self) -> None:
        self.receive: Receive | None = None

    async def start(self, receive: Receive) -> None:
        """Remember where inbound messages go; a platform connects here."""
        self.receive = receive

    async def stop(self) -> None:
        """Disconnect."""
        self.receive = None

    def describe(self) -> str:
        """Return who is connected and where to talk to it, such as `@my_bot (https://t.me/my_bot)`; it may be empty."""
        return ""

    async def post(self, part: Part) -> str:
        """Send a new message and return the platform's id of it."""
        raise NotSent(f"{self.platform} cannot send messages", is_final=True)

    async def edit(self, message_id: str, part: Part) -> None:
        """Change the text of a message."""
        raise NotSent(f"{self.platform} cannot edit messages", is_final=True)

    async def delete(self, message_id: str, chat: Delivery) -> None:
        """Delete a message of the chat of a delivery."""
        raise NotSent(f"{self.platform} cannot delete messages", is_final=True)

    async def post_file(self, part: Part, file: MediaFile) -> str:
        """Send a file and return the platform's id of the message; the base tells the chat that it cannot."""
        return await self.post(replace(part, text=f"(The file {file.path.name} cannot be sent here.)"))

    async def find(self, delivery: Delivery) -> Receipt | None:
        """Return None: most platforms cannot say whether they have a message."""
        return None

    async def typing(self, chat_id: str, thread_id: str | None) -> None:
        """Do nothing: not every platform shows that an answer is being written."""

    async def send(self, delivery: Delivery) -> Receipt:
        """Send a text in as many messages as it needs; a preview becomes the first one of them.

        Parts that an earlier attempt has sent are not sent again.
        """
        texts = split_text(delivery.text, self.text_limit, self.length)
        shown = _ids(delivery.preview, MESSAGE_IDS) if self.can_edit else []
        if not delivery.is_final:
            return await self._show(self._part(delivery, texts[0]), shown, is_full=len(texts) > 1)
        ids = _ids(delivery.preview, FINISHED_IDS)
        for index in range(len(ids), len(texts)):
            part = self._part(delivery, texts[index], index, len(texts))
            try:
                if index < len(shown):
                    await self.edit(shown[index], part)
                    ids.append(shown[index])
                else:
                    ids.append(await self.post(part))
            except NotSent as failure:
                if ids:
                    raise PartlySent(failure, ids) from failure
                raise
        return Receipt(ids)

    def _part(self, delivery: Delivery, text: str, index: int = 0, count: int = 1) -> Part:
        return Part(delivery, text, index, count, self.reply_to_mode)

    async def _show(self, part: Part, shown: Sequence[str], *, is_full: bool) -> Receipt:
        """Send or change the message of a preview."""
        if shown:
            await self.edit(shown[0], part)
        ids = [shown[0]] if shown else [await self.post(part)]
        return Receipt(ids, {IS_FULL: True} if is_full else {})


def _ids(receipt: Mapping[str, Any] | None, name: str) -> list[str]:
    found = (receipt or {}).get(name)
    return [str(each) for each in found] if isinstance(found, list | tuple) else []
