"""English."""

from __future__ import annotations

from bench.recall.languages.english_leisure import LEISURE_TOPICS
from bench.recall.languages.english_life import LIFE_TOPICS
from bench.recall.languages.english_talk import PEOPLE, SMALL_TALK, THINGS
from bench.recall.languages.technical import TECHNICAL_TOPICS
from bench.recall.topic import Language

MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)

ENGLISH = Language(
    name="English",
    people=PEOPLE,
    topics=(*LIFE_TOPICS, *LEISURE_TOPICS, *TECHNICAL_TOPICS),
    small_talk=SMALL_TALK,
    things=THINGS,
    months=MONTHS,
    day="{day} {month}",
    genitive="{who}'s",
    me="I",
    my="my",
)
