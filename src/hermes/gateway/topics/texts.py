"""What users learn about topics."""

from __future__ import annotations

from collections.abc import Sequence

from hermes.phrases import plural

LOBBY = (
    "Each topic of this chat is a conversation of its own. Please write in a topic, or create one;"
    " /topic lists what there is, /topic off ends this."
)
ONLY_PRIVATE = "/topic is for private chats on Telegram."
NOT_ALLOWED = (
    "This bot has no topics yet. Its owner turns them on in @BotFather (Bot Settings, Threaded Mode); then send /topic."
)
ENABLED = (
    "Each topic of this chat is a conversation of its own now. Create a topic and write in it; /topic ID in a topic"
    " continues an earlier conversation there, and /topic off ends this. Outside of topics, only commands are answered."
)
DISABLED = "This chat is one conversation again. The conversations of its topics are kept: /resume continues them."
NOT_ENABLED = "Topics are off in this chat. /topic on gives each topic a conversation of its own."
IN_A_TOPIC = "Send this in the topic in which the conversation is to be continued."
ELSEWHERE = "That conversation is continued in another topic already."
HELP = (
    "/topic on: each topic of this chat is a conversation of its own.\n"
    "/topic: what this topic continues, and which conversations are in no topic.\n"
    "/topic ID (in a topic): continue an earlier conversation there; a title or a number of /sessions works too.\n"
    "/topic off: the chat is one conversation again."
)


def overview(topics: int, unlinked: Sequence[str]) -> str:
    """Return the reply to `/topic` outside of topics."""
    lines = [f"Topics are on: {plural(topics, 'topic')} with a conversation."]
    if unlinked:
        lines += [
            "Conversations in no topic:",
            *unlinked,
            "/topic ID continues one of them in the topic where you send it.",
        ]
    return "\n".join(lines)


def listed(session_id: str, title: str) -> str:
    """Return a conversation of the list."""
    return f"- {title} ({session_id})" if title else f"- {session_id}"


def linked(shown: str) -> str:
    """Return the reply to `/topic` in a topic that has a conversation."""
    return f"This topic continues {shown}."


NOTHING_LINKED = "This topic has no conversation yet; your next message starts one."
