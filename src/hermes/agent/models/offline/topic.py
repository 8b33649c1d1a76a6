"""The topic of a question: its words without common ones."""

from __future__ import annotations

import re

_WORD = re.compile(r"\S+")
_ENDS = "\"'`.,;:!?()[]{}<>…“”„‘’«»¿¡、。？！-"

_SMALL = frozenset(
    _WORD.findall(
        """a about above after again all also am an and any anything are as at be because been before but by can could
        did do does doing don't find for from get give got had has have he her here him his how i i'd i'm if in into is
        it it's its just know let's like look me more my no not of off ok okay on once one only or other our out please
        regarding said say search see she should show so some something tell than that that's the their them then there
        these they this those to too up us use used very want was we were what what's when where which while who whom
        why will with would yes you your"""
    )
)
_PAST = frozenset(
    _WORD.findall(
        """ago chat chats conversation conversations discuss discussed earlier history last latest list mention
        mentioned past previous previously recall recent recently remember session sessions talk talked time today
        yesterday"""
    )
)
_POLITE = frozenset(_WORD.findall("bye day evening good goodbye hello help hey hi morning thank thanks welcome"))


def topic_of(question: str) -> list[str]:
    """The meaningful words of a question, spelled as in the question."""
    return [word for word in _words(question) if word.casefold() not in _SMALL | _PAST | _POLITE]


def is_about_the_past(question: str) -> bool:
    """Whether a question asks for earlier sessions in general."""
    return any(word.casefold() in _PAST for word in _words(question))


def _words(text: str) -> list[str]:
    return [word for each in text.split() if (word := each.strip(_ENDS))]
