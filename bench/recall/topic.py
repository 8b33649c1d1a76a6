"""Topics: what people talk about, as templates for the facts and for the questions about them."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

SAME, FORM, SYNONYM, TIME, SEVERAL, TECHNICAL = "same words", "word forms", "synonyms", "time", "several", "technical"
KINDS = (SAME, FORM, SYNONYM, TIME, SEVERAL, TECHNICAL)
"""How a question differs from the text that answers it.

`same words` repeats the important words, `word forms` has other forms of them, `synonyms` has other words for some of
them. A `time` question names a month or a day instead of the thing. A `several` question asks for everything that a
person did, so that each of several sessions is right. A `technical` question has commands, errors or versions.
"""


@dataclass(frozen=True, slots=True)
class Topic:
    """Facts of one sort.

    In the texts, {a} is a value as a fact has it and {b} is the same value in other words, {detail} is something that
    only the fact says, {who} is a person, {whose} is the genitive of {who}, and {month} and {date} say when.
    """

    values: tuple[str, ...]
    """Each is `a` or `a|b`."""
    details: tuple[str, ...]
    own: tuple[str, ...]
    """A person says it about themselves."""
    about_others: tuple[str, ...]
    """A person says it about {who}."""
    replies: tuple[str, ...]
    mentions: tuple[str, ...]
    """Texts of other sessions that share words with a fact and do not hold the answer."""
    questions: tuple[tuple[str, str], ...]
    """A kind and a text."""


@dataclass(frozen=True, slots=True)
class Language:
    """Everything that the dialogues of one language are made from."""

    name: str
    people: tuple[str, ...]
    topics: tuple[Topic, ...]
    small_talk: tuple[tuple[str, str], ...]
    """A text and its reply; {who} is a person, {thing} one of `things`."""
    things: tuple[str, ...]
    months: tuple[str, ...]
    day: str
    """A date, from {day} and {month}."""
    genitive: str
    """How {whose} is made of {who}."""
    me: str | None = None
    """How a person calls themselves in a question; None if the texts do not allow it."""
    my: str = ""
    borrowed: tuple[tuple[Topic, Language], ...] = ()
    """Topics of other languages, for dialogues that mix them."""

    def genitive_of(self, who: str) -> str:
        """How a question says that something is a person's."""
        return self.my if who == self.me else self.genitive.format(who=who)

    def month_of(self, moment: datetime) -> str:
        """The month as a question names it."""
        return self.months[moment.month - 1]

    def date_of(self, moment: datetime) -> str:
        """The day as a question names it."""
        return self.day.format(day=moment.day, month=self.month_of(moment))
