"""Session keys: which lane a message belongs to, who shares it, and who owns its sessions."""

from __future__ import annotations

import hashlib
import unicodedata
from typing import Final

from hermes.errors import InvalidValue
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.gateway.whatsapp import (
    canonical_whatsapp_chat,
    canonical_whatsapp_identifier,
    normalize_whatsapp_identifier,
)
from hermes.state.owner import MAX_USER_CHARACTERS, Owner, owner_from_column, owner_of

_PREFIX: Final = "agent:main"
MAX_COMPONENT_CHARACTERS: Final = 128
_KEPT_CHARACTERS = 64
_HASH_CHARACTERS = 32


def build_session_key(
    source: SessionSource,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
) -> str:
    """Return the key of the lane of a message: `agent:main:<platform>:<chat type>[:<chat>][:<thread>][:<user>]`.

    A colon inside an id is encoded, so that different sources never share a key by accident. Every source has a key.
    """
    parts: list[str | None] = [source.platform.value, source.chat_type]
    if source.chat_type == "dm":
        parts += [_dm_chat(source) or _participant(source), source.thread_id]
    else:
        parts += [_group_chat(source), source.thread_id]
        if _isolates_users(source, group_sessions_per_user, thread_sessions_per_user):
            parts.append(_participant(source))
    return ":".join([_PREFIX, *(_encode(part) for part in parts if part)])


def is_shared_multi_user_session(
    source: SessionSource,
    *,
    group_sessions_per_user: bool = True,
    thread_sessions_per_user: bool = False,
) -> bool:
    """Return whether several users share the lane of a message: never a DM, otherwise when its key has no user."""
    if source.chat_type == "dm":
        return False
    return not _isolates_users(source, group_sessions_per_user, thread_sessions_per_user) or not _participant(source)


def lane_owner(source: SessionSource, session_key: str, *, is_shared: bool) -> Owner:
    """Return the owner of a lane's sessions: its user, or the lane itself if users share it or none is known."""
    user = None if is_shared else _owner_user(source)
    if user:
        try:
            return owner_of(source.platform.value, user)
        except InvalidValue:
            pass  # an id that cannot name a user: the lane, which only this id reaches, owns its sessions
    return owner_from_column(session_key)


def session_user(source: SessionSource) -> str | None:
    """Return the user id for the session's row; None if a database cannot store it."""
    user = source.user_id
    if not user or len(user) > MAX_USER_CHARACTERS or not user.isprintable():
        return None
    return user


def _isolates_users(source: SessionSource, group_sessions_per_user: bool, thread_sessions_per_user: bool) -> bool:
    return thread_sessions_per_user if source.thread_id else group_sessions_per_user


def _dm_chat(source: SessionSource) -> str | None:
    if source.platform is Platform.WHATSAPP and source.chat_id:
        return canonical_whatsapp_identifier(source.chat_id) or source.chat_id
    return source.chat_id


def _group_chat(source: SessionSource) -> str | None:
    if source.platform is Platform.WHATSAPP and source.chat_id:
        return canonical_whatsapp_chat(source.chat_id)
    return source.chat_id


def _participant(source: SessionSource) -> str | None:
    user = source.participant
    if user and source.platform is Platform.WHATSAPP:
        return canonical_whatsapp_identifier(user) or user
    return user


def _owner_user(source: SessionSource) -> str | None:
    """Return the user for the owner: on WhatsApp the alias, or the raw id, in which `@lid` is not a phone number."""
    user = source.participant
    if user and source.platform is Platform.WHATSAPP:
        canonical = canonical_whatsapp_identifier(user)
        return user if canonical in ("", normalize_whatsapp_identifier(user)) else canonical
    return user


def _encode(component: str) -> str:
    """Return a part of a key: without colons, blanks and invisible characters, and not longer than the store allows."""
    if component.isascii() and component.isalnum() and len(component) <= MAX_COMPONENT_CHARACTERS:
        return component
    encoded = "".join(each if _is_plain(each) else _percent(each) for each in component)
    if len(encoded) <= MAX_COMPONENT_CHARACTERS:
        return encoded
    digest = hashlib.sha256(component.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{encoded[:_KEPT_CHARACTERS]}%~{digest[:_HASH_CHARACTERS]}"


def _is_plain(character: str) -> bool:
    if character in "%:" or character.isspace():
        return False
    return (character.isascii() and character.isprintable()) or unicodedata.category(character)[0] in "LNPS"


def _percent(character: str) -> str:
    return "".join(f"%{byte:02X}" for byte in character.encode("utf-8", "surrogatepass"))
