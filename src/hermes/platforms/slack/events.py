"""Events of Slack: which are messages of people, for whom they are, and which chat they belong to."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.platforms.slack.mrkdwn import mentions
from hermes.platforms.slack.settings import SlackSettings

ChatKind = Literal["im", "mpim", "channel"]
CHAT_TYPES: Mapping[ChatKind, str] = {"im": "dm", "mpim": "group", "channel": "channel"}
"""The types of chats in session keys: a direct message with several people is a group, because they share it."""
MAX_FILES = 10
_MESSAGES = ("", "file_share", "thread_broadcast", "me_message")
"""The subtypes of messages that people write; edits, joins and topics are others."""
_ID = re.compile(r"[A-Za-z0-9_-]{1,64}")
_TIME = re.compile(r"[0-9]{1,12}\.[0-9]{1,12}")
_MAX_SHARED, _MAX_SHARED_TEXT = 5, 4000


@dataclass(frozen=True, slots=True)
class Identity:
    """Who the bot is, and in which workspace."""

    user: str = ""
    bot: str = ""
    team: str = ""
    name: str = ""


@dataclass(frozen=True, slots=True)
class SlackMessage:
    """A message of a person."""

    channel: str
    ts: str
    user: str
    text: str
    thread_ts: str | None = None
    parent_user: str | None = None
    channel_type: str = ""
    event_id: str | None = None
    is_mention: bool = False
    is_command: bool = False
    files: Sequence[Mapping[str, Any]] = field(default_factory=tuple)
    shared: Sequence[str] = ()
    """The texts of other messages that this one shares."""

    @property
    def is_reply(self) -> bool:
        """Whether the message is in a thread of another message."""
        return self.thread_ts is not None and self.thread_ts != self.ts


def read_event(payload: Mapping[str, Any], me: Identity) -> SlackMessage | None:
    """Return the message of an event; None if it is none, or not one of a person; raise ValueError if malformed."""
    if payload.get("type") != "event_callback":
        return None
    _check_workspace(payload, me)
    event = payload.get("event")
    if not isinstance(event, Mapping):
        raise ValueError("the event is missing")
    subtype = event.get("subtype") or ""
    if event.get("type") not in ("message", "app_mention") or not isinstance(subtype, str) or subtype not in _MESSAGES:
        return None
    if event.get("bot_id") or event.get("bot_profile") or event.get("app_id") or event.get("hidden"):
        return None
    user = _word(event, "user", _ID)
    if user in (me.user, me.bot, "USLACKBOT"):
        return None
    text, files, shared = event.get("text") or "", event.get("files") or (), event.get("attachments") or ()
    if not isinstance(text, str) or not isinstance(files, list | tuple) or not isinstance(shared, list | tuple):
        raise ValueError("the text or the files are malformed")
    return SlackMessage(
        channel=_word(event, "channel", _ID),
        ts=_word(event, "ts", _TIME),
        user=user,
        text=text,
        thread_ts=_word(event, "thread_ts", _TIME) if event.get("thread_ts") is not None else None,
        parent_user=str(event.get("parent_user_id") or "") or None,
        channel_type=str(event.get("channel_type") or ""),
        event_id=_word(payload, "event_id", _ID),
        is_mention=event.get("type") == "app_mention" or mentions(text, me.user),
        files=tuple(each for each in files if isinstance(each, Mapping))[:MAX_FILES],
        shared=_shared_texts(shared),
    )


def read_command(form: Mapping[str, Any], me: Identity) -> SlackMessage:
    """Return a slash command as a message: `/hermes new` and `/new` are both `/new`; raise ValueError if malformed."""
    _check_workspace(form, me)
    name, words = form.get("command"), form.get("text") or ""
    if not isinstance(name, str) or not 1 < len(name) <= 64 or not name.startswith("/") or not isinstance(words, str):
        raise ValueError("the command is malformed")
    words = words.strip()
    text = f"/{words.lstrip('/') or 'help'}" if name == "/hermes" else f"{name} {words}".strip()
    channel, key = _word(form, "channel_id", _ID), form.get("trigger_id")
    if not isinstance(key, str) or not 0 < len(key) <= 200 or not key.isprintable():
        raise ValueError("trigger_id is missing or malformed")
    kind = "im" if channel.startswith("D") else ""
    user = _word(form, "user_id", _ID)
    return SlackMessage(channel, key, user, text, channel_type=kind, event_id=key, is_mention=True, is_command=True)


def kind_of(message: SlackMessage) -> ChatKind | None:
    """Return the kind of the chat; None if the event does not say it."""
    if message.channel_type in ("im", "app_home") or message.channel.startswith("D"):
        return "im"
    if message.channel_type == "mpim":
        return "mpim"
    return "channel" if message.channel_type else None


def is_clearly_addressed(message: SlackMessage, kind: ChatKind, me: Identity, settings: SlackSettings) -> bool:
    """Return whether the message is for the bot, without a look at its thread."""
    if kind == "im" or message.is_mention or not settings.require_mention:
        return True
    if message.channel in settings.free_response_chats:
        return True
    return message.is_reply and bool(me.user) and message.parent_user == me.user


def thread_of(message: SlackMessage, kind: ChatKind, settings: SlackSettings) -> str | None:
    """Return the thread that the conversation is in; a message of a channel starts one if answers go into threads."""
    if message.is_reply:
        return message.thread_ts
    if message.is_command:  # it is no message in which a thread could start
        return None
    starts = settings.dm_top_level_threads_as_sessions if kind == "im" else settings.reply_in_thread
    return message.ts if starts else None


def source_of(
    message: SlackMessage,
    kind: ChatKind,
    settings: SlackSettings,
    *,
    team: str = "",
    user_name: str | None = None,
    chat_name: str | None = None,
) -> SessionSource:
    """Return where a message comes from, as session keys need it."""
    return SessionSource(
        Platform.SLACK,
        message.channel,
        chat_name=chat_name,
        chat_type=CHAT_TYPES[kind],
        user_id=message.user,
        user_name=user_name,
        thread_id=thread_of(message, kind, settings),
        guild_id=team or None,
        message_id=message.ts,
    )


def _check_workspace(payload: Mapping[str, Any], me: Identity) -> None:
    """Raise ValueError for an event of another workspace, in which the same app is installed."""
    given = payload.get("authorizations")
    more = [each.get("team_id") for each in given if isinstance(each, Mapping)] if isinstance(given, list) else []
    if me.team and me.team not in [payload.get("team_id"), payload.get("context_team_id"), *more]:
        raise ValueError("it belongs to another workspace")


def _shared_texts(attachments: Sequence[object]) -> tuple[str, ...]:
    texts = [each.get("text") or each.get("fallback") for each in attachments if isinstance(each, Mapping)]
    return tuple(each[:_MAX_SHARED_TEXT] for each in texts if isinstance(each, str) and each.strip())[:_MAX_SHARED]


def _word(data: Mapping[str, Any], name: str, pattern: re.Pattern[str]) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not pattern.fullmatch(value):
        raise ValueError(f"{name} is missing or malformed")
    return value
