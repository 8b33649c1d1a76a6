"""Automatic titles: a few words about the topic of a conversation."""

from __future__ import annotations

import re
from itertools import pairwise
from typing import TYPE_CHECKING

from hermes.agent.history.text_limits import valid_text
from hermes.agent.models.auxiliary import ask_once, single_prompt
from hermes.agent.models.choice import OFFLINE
from hermes.agent.models.model import Message, Model
from hermes.agent.models.offline.topic import topic_of
from hermes.errors import ModelError
from hermes.log import warn
from hermes.state.rows import flatten_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from hermes.agent.agent import Agent
    from hermes.agent.open_session import OpenSession
    from hermes.state.owner_view import OwnerView
    from hermes.state.rows import Row

TITLED_WITHIN = 2
"""A title is written after the first exchange, or after the second if the first has no topic, such as a greeting."""

MAX_CHARACTERS = 80
MIN_WORDS, MAX_WORDS = 3, 7

INSTRUCTIONS = (
    "You write titles for conversations. Answer with the title only: three to seven words about the topic of the"
    " conversation, in its own language, without quotation marks and without a full stop."
)
_EXCERPT_CHARACTERS = 500
_FIRST_ROWS = 6

_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(r"^\W*(?:title|titel|titre|título|标题|タイトル)\s*[:：]\s*", re.IGNORECASE)
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LINK = re.compile(r"\b[a-z]+://\S+", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_LINEAGE = re.compile(r" #(?=[0-9]+$)")
_DECORATION = "\"'`*_#“”„«»‘’「」『』 \t"
_AT_END = ".!?…,;:。！？，；： -–—"


def title_prompt(question: str, answer: str) -> list[Message]:
    """Return the messages that ask a model for a title."""
    first, second = (valid_text(text)[:_EXCERPT_CHARACTERS] for text in (question, answer))
    return single_prompt(INSTRUCTIONS, f"The user: {first}\n\nThe answer: {second}")


def clean_title(written: str) -> str | None:
    """Return a model's title without quotes, label, final punctuation and further lines."""
    lines = [line.strip() for line in _THOUGHTS.sub("", valid_text(written)).splitlines() if line.strip()]
    if not lines:
        return None
    text = _LABEL.sub("", lines[0]).strip(_DECORATION)
    return _shorten_title(" ".join(text.rstrip(_AT_END).strip(_DECORATION).split()))


def title_from_text(question: str) -> str | None:
    """Return a title without a model: the first meaningful words of the user's text, or None if there are none."""
    text = _LINK.sub(" ", _CODE.sub(" ", valid_text(question)))
    for sentence in _SENTENCE.split(text):
        if topic_of(sentence):
            title = " ".join(_topic_words(sentence.split())).strip(_DECORATION).rstrip(_AT_END).strip(_DECORATION)
            return _shorten_title(title[:1].upper() + title[1:])
    return None


def _topic_words(words: list[str]) -> list[str]:
    """Return a few consecutive words that begin and end with a meaningful one, if enough words remain."""
    about = [place for place, word in enumerate(words) if topic_of(word)]
    end = about[0] + MAX_WORDS
    last = max(place for place in about if place < end)
    for found in (words[about[0] : last + 1], words[about[0] : end]):
        if len(found) >= MIN_WORDS:
            return found
    return words[:MAX_WORDS]


def _shorten_title(title: str) -> str | None:
    if len(title) > MAX_CHARACTERS:
        # Cut between words, unless it is one long word.
        title = title[:MAX_CHARACTERS].rpartition(" ")[0] or title[:MAX_CHARACTERS]
    # ` #2` at the end would mean that this session continues another one.
    return _LINEAGE.sub(" ", title.rstrip(_AT_END)) or None


def request_title(session: OpenSession, messages: Sequence[Row], answer: str) -> None:
    """Have a title written in the background after a turn, if the session is young."""
    agent = session.agent
    if not agent.config.agent.auto_title or not answer or _count_exchanges(messages) > TITLED_WITHIN:
        return
    question = "\n".join(flatten_text(row["content"]) for row in messages if row["role"] == "user")
    # The turn is over, and so may be its lease: a title needs none.
    model, session_id, store = session.model, session.session_id, session.plain_store
    agent.background.submit(lambda: give_title(agent, store, model, session_id, question, answer))


def _count_exchanges(messages: Sequence[Row]) -> int:
    """Return how often the user wrote; messages in a row count once."""
    roles = ["", *(row["role"] for row in messages if row["role"] in ("user", "assistant"))]
    return sum(role == "user" != before for before, role in pairwise(roles))


def give_title(agent: Agent, store: OwnerView, model: Model, session_id: str, question: str, answer: str) -> None:
    """Title a session after its first exchange, unless it has a title; a title set by the user is never replaced.

    The auxiliary model writes the title; without one, `model` does, which wrote the answer. A question of nothing but
    common words, such as a greeting, gets no title: the next exchange may have a topic.
    """
    if store.get_session_title(session_id) is not None or not topic_of(question):
        return
    title = _ask_for_title(agent, store, agent.auxiliary or model, session_id, question, answer) or title_from_text(
        question
    )
    if title is not None:
        store.set_title_if_untitled(session_id, title)


def give_title_from_words(agent: Agent, store: OwnerView, session_id: str, *, only_unanswered: bool) -> None:
    """Title an untitled session by its first words when the chat is left, so that the user finds it again.

    With `only_unanswered`, only sessions without an answer get a title: nothing else will title them.
    """
    if not agent.config.agent.auto_title or store.get_session_title(session_id) is not None:
        return
    rows = store.get_messages(session_id, limit=_FIRST_ROWS)
    is_answered = any(row["role"] == "assistant" and row["content"] for row in rows)
    if is_answered and only_unanswered:
        return
    question = "\n".join(flatten_text(row["content"])[:_EXCERPT_CHARACTERS] for row in rows if row["role"] == "user")
    title = title_from_text(question) or (None if is_answered else _first_words(question))
    if title is not None:
        store.set_title_if_untitled(session_id, title)


def _first_words(question: str) -> str | None:
    title = " ".join(valid_text(question).split()[:MAX_WORDS]).strip(_DECORATION)
    return _shorten_title(title[:1].upper() + title[1:])


def _ask_for_title(
    agent: Agent, store: OwnerView, model: Model, session_id: str, question: str, answer: str
) -> str | None:
    """Return a title by a model; None for the offline model, which understands nothing."""
    if model.provider == OFFLINE:
        return None
    prompt = title_prompt(question, answer)
    try:
        reply = ask_once(model, prompt, agent.config.auxiliary.title_timeout_s)
    except ModelError as error:
        warn(__name__, "%s gave no title for session %s: %s", model.name, session_id, error)
        return None
    if reply is None:
        return None
    agent.accounts.book(store, session_id, model, reply, prompt)
    return clean_title(reply.text)
