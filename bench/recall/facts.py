"""Facts: who did what, and in which session that stands."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from random import Random

from bench.recall.dialogue import Question
from bench.recall.topic import SEVERAL, Language, Topic


@dataclass(frozen=True, slots=True)
class Fact:
    """Something that a dialogue says exactly once."""

    topic: Topic
    language: Language
    who: str
    value: str
    detail: str
    session: int

    def fill(self, template: str, who: str = "", moment: datetime | None = None) -> str:
        """A text of the topic about this fact, with its first letter in upper case."""
        a, _, b = self.value.partition("|")
        person, language = who or self.who, self.language
        text = template.format(
            a=a,
            b=b or a,
            detail=self.detail,
            who=person,
            whose=language.genitive_of(person),
            month="" if moment is None else language.month_of(moment),
            date="" if moment is None else language.date_of(moment),
        )
        return text[:1].upper() + text[1:]


def choose_facts(language: Language, people: tuple[str, ...], sessions: int, rng: Random) -> list[Fact]:
    """Return three facts of every topic, in different sessions.

    The second is about the same thing as the first, the third about the same person: a search must tell them apart.
    """
    topics = [*((topic, language) for topic in language.topics), *language.borrowed]
    load = [0] * sessions
    facts: list[Fact] = []
    for topic, spoken in rng.sample(topics, len(topics)):
        one, other = rng.sample(people, 2)
        first, second = rng.sample(topic.values, 2)
        details = rng.sample(topic.details, 3) if len(topic.details) >= 3 else list(topic.details) * 3
        numbers = sorted(range(sessions), key=lambda number: (load[number], rng.random()))[:8]
        chosen = rng.sample(numbers, 3)
        pairs = ((one, first), (other, first), (one, second))
        for (who, value), detail, number in zip(pairs, details, chosen, strict=False):
            facts.append(Fact(topic, spoken, who, value, detail, number))
            load[number] += 1
    return facts


@dataclass(frozen=True, slots=True)
class Record:
    """What the questions of a dialogue are made from."""

    facts: list[Fact]
    statements: dict[Fact, str]
    session_ids: list[str]
    moments: list[datetime]

    def questions(self, per_fact: int) -> list[Question]:
        """Return up to `per_fact` questions for every fact, whose kinds take turns, and those for several facts."""
        found: dict[str, Question] = {}
        for number, fact in enumerate(self.facts):
            templates = [each for each in fact.topic.questions if each[0] != SEVERAL]
            turns = [templates[(number * per_fact + step) % len(templates)] for step in range(len(templates))]
            asked = (question for kind, text in turns if (question := self._question(fact, kind, text)))
            new = [question for question in asked if question.text not in found]
            found.update((question.text, question) for question in new[:per_fact])
            several = (self._question(fact, kind, text) for kind, text in fact.topic.questions if kind == SEVERAL)
            found.update((question.text, question) for question in several if question)
        return list(found.values())

    def _question(self, fact: Fact, kind: str, template: str) -> Question | None:
        """The question, or None if other sessions would be right as well."""
        moment = self.moments[fact.session]
        alike = [each for each in self.facts if (each.topic, each.who) == (fact.topic, fact.who)]
        same_month = [each for each in alike if self.moments[each.session].month == moment.month]
        if "{month}" in template and len(same_month) > 1:
            return None
        right = alike if kind == SEVERAL else [fact]
        if kind == SEVERAL and (len(right) == 1 or fact.who == fact.language.me):
            return None
        return Question(
            fact.fill(template, moment=moment),
            kind,
            tuple(self.session_ids[each.session] for each in right),
            tuple(self.statements[each] for each in right),
        )
