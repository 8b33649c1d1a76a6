"""Titles that come by themselves: a few words of what a conversation is about."""

from __future__ import annotations

import re
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
    from hermes.agent.agent import Agent
    from hermes.state.owner_view import OwnerView

MAX_CHARACTERS = 80
MIN_WORDS, MAX_WORDS = 3, 7

INSTRUCTIONS = (
    "You give conversations their titles. Answer with nothing but the title: three to seven words that tell what the"
    " conversation is about, in its own language, without quotation marks and without a full stop."
)
_MAX_SHOWN = 500
_FIRST_ROWS = 6

_THOUGHTS = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_LABEL = re.compile(r"^\W*(?:title|titel|titre|título|标题|タイトル)\s*[:：]\s*", re.IGNORECASE)
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)
_LINK = re.compile(r"\b[a-z]+://\S+", re.IGNORECASE)
_SENTENCE = re.compile(r"(?<=[.!?…。！？])\s+|\n+")
_LINEAGE = re.compile(r" #(?=[0-9]+$)")
_AROUND = "\"'`*_#“”„«»‘’「」『』 \t"
_AT_END = ".!?…,;:。！？，；： -–—"


def title_prompt(said: str, answered: str) -> list[Message]:
    """What a model is asked for a title."""
    shown = f"The person: {valid_text(said)[:_MAX_SHOWN]}\n\nThe answer: {valid_text(answered)[:_MAX_SHOWN]}"
    return single_prompt(INSTRUCTIONS, shown)


def clean_title(written: str) -> str | None:
    """What a model wrote as a title: without quotes, a label, an end mark, and anything that followed it."""
    lines = [line.strip() for line in _THOUGHTS.sub("", valid_text(written)).splitlines() if line.strip()]
    if not lines:
        return None
    text = _LABEL.sub("", lines[0]).strip(_AROUND)
    return _shorten_title(" ".join(text.rstrip(_AT_END).strip(_AROUND).split()))


def title_from_text(said: str) -> str | None:
    """A title without any model: the first words of what a person said that are about something; None if none are."""
    text = _LINK.sub(" ", _CODE.sub(" ", valid_text(said)))
    for sentence in _SENTENCE.split(text):
        if topic_of(sentence):
            title = " ".join(_telling_words(sentence.split())).strip(_AROUND).rstrip(_AT_END).strip(_AROUND)
            return _shorten_title(title[:1].upper() + title[1:])
    return None


def _telling_words(words: list[str]) -> list[str]:
    """A few words in a row that begin and end with one that says something, where that leaves enough of them."""
    about = [place for place, word in enumerate(words) if topic_of(word)]
    end = about[0] + MAX_WORDS
    last = max(place for place in about if place < end)
    for found in (words[about[0] : last + 1], words[about[0] : end]):
        if len(found) >= MIN_WORDS:
            return found
    return words[:MAX_WORDS]


def _shorten_title(title: str) -> str | None:
    if len(title) > MAX_CHARACTERS:
        # Words are kept whole, where there are any.
        title = title[:MAX_CHARACTERS].rpartition(" ")[0] or title[:MAX_CHARACTERS]
    # ` #2` at the end would say that this session continues another one.
    return _LINEAGE.sub(" ", title.rstrip(_AT_END)) or None


def give_title(agent: Agent, store: OwnerView, model: Model, session_id: str, said: str, answered: str) -> None:
    """Name a session after its first exchange, unless it has a name by then; a person's choice is never replaced.

    The auxiliary model makes the title, or `model`, which has answered, where there is no auxiliary one.
    """
    if store.get_session_title(session_id) is not None:
        return
    title = _ask_for_title(agent, store, agent.auxiliary or model, session_id, said, answered) or title_from_text(said)
    if title is not None:
        store.set_title_if_untitled(session_id, title)


def give_title_from_words(agent: Agent, store: OwnerView, session_id: str, *, only_unanswered: bool) -> None:
    """Name a session that is left without a name after its first words, so that it is found again.

    With `only_unanswered`, only one in which no model has said anything: nothing else is going to name it.
    """
    if not agent.config.agent.auto_title or store.get_session_title(session_id) is not None:
        return
    rows = store.get_messages(session_id, limit=_FIRST_ROWS)
    is_answered = any(row["role"] == "assistant" and row["content"] for row in rows)
    if is_answered and only_unanswered:
        return
    said = "\n".join(flatten_text(row["content"])[:_MAX_SHOWN] for row in rows if row["role"] == "user")
    title = title_from_text(said) or (None if is_answered else _first_words(said))
    if title is not None:
        store.set_title_if_untitled(session_id, title)


def _first_words(said: str) -> str | None:
    title = " ".join(valid_text(said).split()[:MAX_WORDS]).strip(_AROUND)
    return _shorten_title(title[:1].upper() + title[1:])


def _ask_for_title(
    agent: Agent, store: OwnerView, model: Model, session_id: str, said: str, answered: str
) -> str | None:
    """A title by a model, unless that understands nothing."""
    if model.provider == OFFLINE:
        return None
    asked = title_prompt(said, answered)
    try:
        reply = ask_once(model, asked, agent.config.auxiliary.title_timeout_s)
    except ModelError as error:
        warn(__name__, "%s gave no title for session %s: %s", model.name, session_id, error)
        return None
    if reply is None:
        return None
    agent.accounts.book(store, session_id, model, reply, asked)
    return clean_title(reply.text)
