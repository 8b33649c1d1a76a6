"""Accepts messages from adapters: a message is stored before the platform learns that it was received."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Protocol

from hermes.errors import HermesError, InvalidValue
from hermes.gateway.engine import texts
from hermes.gateway.engine.messages import encode_payload
from hermes.gateway.engine.ports import Admission, Inbound
from hermes.gateway.keys import build_session_key
from hermes.gateway.people.admission import UNAUTHORIZED
from hermes.gateway.source import SessionSource
from hermes.gateway.topics.texts import LOBBY
from hermes.log import warn
from hermes.state.lanes.types import MessageKind

if TYPE_CHECKING:
    from hermes.gateway.engine.parts import EngineParts


class ParsedCommand(Protocol):
    """A command and the text after it."""

    @property
    def name(self) -> str:
        """The name of the command, without aliases."""

    @property
    def args(self) -> str:
        """The text after the name."""


class Intake:
    """Stores inbound messages in the inbox of their lane."""

    def __init__(
        self,
        parts: EngineParts,
        parse: Callable[[str], ParsedCommand | None],
        refusal: Callable[[SessionSource], Awaitable[str | None]] | None = None,
    ) -> None:
        """Create it; `refusal` returns None for a user who may talk, else what the chat gets, perhaps nothing."""
        self._parts = parts
        self._parse = parse
        self._refusal = refusal
        self._full: set[str] = set()
        """Lanes that had too many waiting messages when the last one was stored; only there they are counted before."""

    async def receive(self, inbound: Inbound) -> Admission:
        """Store a message and return what became of it; one that was stored before is known."""
        parts = self._parts
        try:
            told = None if self._refusal is None else await self._refusal(inbound.source)
        except HermesError as error:
            warn(__name__, "a message was not accepted, because its sender could not be checked: %s", error)
            return self._refuse(error.code, texts.UNAVAILABLE)
        if told is not None:
            return self._refuse(UNAUTHORIZED, told)
        if not inbound.text.strip() and not inbound.media:
            return self._refuse("empty", "")
        most = parts.config.gateway.limits.message_characters
        if len(inbound.text) > most:
            return self._refuse("too_long", texts.too_long(len(inbound.text), most))
        config = parts.gateway_config
        try:
            if parts.topics is not None:
                command = self._parse(inbound.text)
                placed = await parts.topics.place(inbound, None if command is None else command.name)
                if placed is None:
                    return self._refuse("lobby", LOBBY)
                inbound = placed
            key = build_session_key(inbound.source, config.group_sessions_per_user, config.thread_sessions_per_user)
            kind, payload = self._classify(inbound)
            most = parts.settings.most_waiting(kind, payload.get("command") in parts.stops)
            if await self._is_full(key, inbound, most):
                return self._refuse("queue_full", texts.queue_full(most))
            accepted = await parts.db.inbox.accept(
                key,
                payload,
                platform=inbound.source.platform.value,
                chat_id=inbound.source.chat_id,
                message_id=inbound.message_id,
                account=inbound.account,
                delivery_id=inbound.delivery_id,
                kind=kind,
                node=parts.settings.holder,
            )
        except InvalidValue as error:
            return self._refuse(error.code, error.message)
        except HermesError as error:
            warn(__name__, "a message was not accepted: %s", error)
            return self._refuse(error.code, texts.UNAVAILABLE)
        if accepted.state == "accepted":
            parts.count("messages_accepted")
            is_quick = payload.get("command") in parts.bypass or payload.get("command") in parts.stops
            (parts.commanded if is_quick else parts.arrived)(key)
        else:
            parts.count("messages_known")
        if accepted.waiting >= parts.settings.max_waiting:
            self._full.add(key)
        else:
            self._full.discard(key)
        return Admission(accepted.state, uid=accepted.message["uid"])

    def _refuse(self, code: str, message: str) -> Admission:
        self._parts.count("messages_refused")
        return Admission("refused", code=code, message=message)

    def _classify(self, inbound: Inbound) -> tuple[MessageKind, dict[str, object]]:
        """Return the kind of a message and its payload; `/queue` and `/steer` with text are messages of a kind."""
        command = self._parse(inbound.text)
        if command is None:
            return "normal", encode_payload(inbound)
        if command.name == "queue" and command.args:
            return "queue", encode_payload(inbound, text=command.args)
        if command.name == "steer" and command.args:
            return "steer", encode_payload(inbound, text=command.args)
        return "command", encode_payload(inbound, command=command.name, args=command.args)

    async def _is_full(self, key: str, inbound: Inbound, most: int) -> bool:
        """Whether too many messages wait; one that was accepted before is still recognized."""
        if key not in self._full:
            return False
        inbox = self._parts.db.inbox
        if await inbox.depth(key) < most:
            return False
        if not inbound.message_id:
            return True
        platform, chat_id = inbound.source.platform.value, inbound.source.chat_id
        return not await inbox.find(inbound.message_id, platform=platform, chat_id=chat_id)
