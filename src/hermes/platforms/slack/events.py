"""Events of Slack: which are messages of people, for whom they are, and which chat they belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.platforms.slack.mrkdwn import mentions, to_plain
from hermes.platforms.slack.settings import SlackSettings

ChatKind = Literal["im", "mpim", "channel"]
_MESSAGES = frozenset({None, "", "file_share", "thread_broadcast", "me_message"})
"""The subtypes of messages that people write; edits, joins and topics are others."""
_MAX_FILES = 10


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
    team: str | None = None
    event_id: str | None = None
    is_mention: bool = False
    files: Sequence[Mapping[str, Any]] = field(default_factory=tuple)

    @property
    def is_reply(self) -> bool:
        """Whether the message is in a thread of another message."""
        return self.thread_ts is not None and self.thread_ts != self.ts


def read_event(payload: Mapping[str, Any], bot_user: str, bot_id: str = "") -> SlackMessage | None:
    """Return the message of an event; None if it is none, or not one of a person; raise ValueError if malformed."""
    if payload.get("type") != "event_callback":
        return None
    event = payload.get("event")
    if not isinstance(event, Mapping):
        raise ValueError("the event is missing")
    if event.get("type") not in ("message", "app_mention") or event.get("subtype") not in _MESSAGES:
        return None
    if event.get("bot_id") or event.get("bot_profile") or event.get("app_id") or event.get("hidden"):
        return None
    user = _word(event, "user")
    if user in (bot_user, bot_id, "USLACKBOT"):
        return None
    text, files = event.get("text") or "", event.get("files") or ()
    if not isinstance(text, str) or not isinstance(files, list | tuple):
        raise ValueError("the text or the files are malformed")
    thread = event.get("thread_ts")
    return SlackMessage(
        channel=_word(event, "channel"),
        ts=_word(event, "ts"),
        user=user,
        text=text,
        thread_ts=_word(event, "thread_ts") if thread is not None else None,
        parent_user=str(event.get("parent_user_id") or "") or None,
        channel_type=str(event.get("channel_type") or ""),
        team=str(payload.get("team_id") or "") or None,
        event_id=str(payload.get("event_id") or "") or None,
        is_mention=event.get("type") == "app_mention" or mentions(text, bot_user),
        files=tuple(each for each in files if isinstance(each, Mapping))[:_MAX_FILES],
    )


def read_command(form: Mapping[str, Any]) -> SlackMessage:
    """Return a slash command as a message: `/hermes new` and `/new` are both `/new`; raise ValueError if malformed."""
    name, words = _word(form, "command"), str(form.get("text") or "").strip()
    text = f"/{words.lstrip('/')}" if name == "/hermes" else f"{name} {words}".strip()
    channel, key = _word(form, "channel_id"), _word(form, "trigger_id")
    kind = "im" if channel.startswith("D") else "channel"
    user, team = _word(form, "user_id"), str(form.get("team_id") or "") or None
    return SlackMessage(channel, key, user, text, channel_type=kind, team=team, event_id=key, is_mention=True)


def kind_of(message: SlackMessage) -> ChatKind | None:
    """Return the kind of the chat; None if the event does not say it."""
    if message.channel_type in ("im", "app_home") or message.channel.startswith("D"):
        return "im"
    if message.channel_type == "mpim":
        return "mpim"
    return "channel" if message.channel_type else None


def is_clearly_addressed(message: SlackMessage, kind: ChatKind, bot_user: str, settings: SlackSettings) -> bool:
    """Return whether the message is for the bot, without a look at its thread."""
    if kind == "im" or message.is_mention or not settings.require_mention:
        return True
    return message.channel in settings.free_response_chats or (message.is_reply and message.parent_user == bot_user)


def thread_of(message: SlackMessage, kind: ChatKind, settings: SlackSettings) -> str | None:
    """Return the thread that the conversation is in; a message of a channel starts one if answers go into threads."""
    if message.is_reply:
        return message.thread_ts
    if message.ts.count(".") != 1:  # a slash command is no message in which a thread could start
        return None
    starts = settings.dm_top_level_threads_as_sessions if kind == "im" else settings.reply_in_thread
    return message.ts if starts else None


def source_of(
    message: SlackMessage,
    kind: ChatKind,
    settings: SlackSettings,
    *,
    user_name: str | None = None,
    chat_name: str | None = None,
) -> SessionSource:
    """Return the source: a direct message with several people is a group, because they share it."""
    return SessionSource(
        Platform.SLACK,
        message.channel,
        chat_name=chat_name,
        chat_type="dm" if kind == "im" else "group",
        user_id=message.user,
        user_name=user_name,
        thread_id=thread_of(message, kind, settings),
        guild_id=message.team,
        message_id=message.ts,
    )


def text_of(message: SlackMessage, bot_user: str) -> str:
    """Return the text without the mention of the bot."""
    return to_plain(message.text, bot_user)


def _word(data: Mapping[str, Any], name: str) -> str:
    value = data.get(name)
    if not isinstance(value, str) or not 0 < len(value) <= 200 or not value.isprintable():
        raise ValueError(f"{name} is missing or malformed")
    return value
