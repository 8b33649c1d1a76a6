"""The corpus: dialogues made from templates, the same ones in every run."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from random import Random

from bench.recall.dialogue import Dialogue, Message, Session
from bench.recall.facts import Fact, Record, choose_facts
from bench.recall.languages.chinese import CHINESE
from bench.recall.languages.english import ENGLISH
from bench.recall.languages.german import GERMAN
from bench.recall.languages.japanese import JAPANESE
from bench.recall.languages.korean import KOREAN
from bench.recall.languages.mixed import MIXED
from bench.recall.topic import Language

FEWEST_SESSIONS, MOST_SESSIONS = 20, 30
FEWEST_MESSAGES, MOST_MESSAGES = 15, 30
YEAR_DAYS = 330
"""Less than a year, so that a month names one month of a dialogue."""
START = datetime(2025, 1, 6, tzinfo=UTC)

Turn = tuple[int, str]
"""Who speaks, 0 for the user and 1 for the agent or the other person, and the text."""


@dataclass(frozen=True, slots=True)
class Plan:
    """One dialogue to make."""

    language: Language
    per_fact: int
    """How many questions each fact gets."""
    is_pair: bool = False
    """Whether two people talk, and their names stand before their texts."""


PLANS = (
    Plan(ENGLISH, 1),
    Plan(ENGLISH, 1, is_pair=True),
    Plan(GERMAN, 2),
    Plan(CHINESE, 2),
    Plan(MIXED, 2),
    Plan(JAPANESE, 2),
    Plan(KOREAN, 2),
    Plan(ENGLISH, 1),
    Plan(ENGLISH, 1, is_pair=True),
    Plan(GERMAN, 2, is_pair=True),
)


def build_corpus(plans: tuple[Plan, ...] = PLANS) -> list[Dialogue]:
    """Return the dialogues of the plans."""
    return [_Maker(plan, number).make() for number, plan in enumerate(plans)]


class _Maker:
    """Makes one dialogue."""

    def __init__(self, plan: Plan, number: int) -> None:
        self._plan, self._language = plan, plan.language
        self._user_id = str(7_000 + number)
        self._rng = Random(f"recall:{number}")
        people = self._rng.sample(self._language.people, len(self._language.people))
        self._speakers = tuple(people[:2]) if plan.is_pair else ("", "")
        me = self._language.me
        with_me = (me, *people[:5]) if me is not None and not plan.is_pair else tuple(people[:6])
        self._people = with_me
        self._others = tuple(each for each in people[:6] if each not in self._speakers)
        self._sessions = self._rng.randint(FEWEST_SESSIONS, MOST_SESSIONS)

    def make(self) -> Dialogue:
        moments = self._choose_moments()
        ids = [f"{self._user_id}-{moment:%Y%m%d}" for moment in moments]
        facts = choose_facts(self._language, self._people, self._sessions, self._rng)
        statements: dict[Fact, str] = {}
        blocks: dict[int, list[list[Turn]]] = defaultdict(list)
        for fact in facts:
            block = self._fact_block(fact)
            statements[fact] = block[0][1]
            blocks[fact.session].append(block)
            if self._rng.random() < 0.8:
                blocks[self._other_session(facts, fact)].append(self._mention_block(fact))
        sessions = tuple(
            self._session(session_id, moment, blocks[number])
            for number, (session_id, moment) in enumerate(zip(ids, moments, strict=True))
        )
        questions = Record(facts, statements, ids, moments).questions(self._plan.per_fact)
        return Dialogue(self._user_id, self._language.name, sessions, tuple(questions))

    def _choose_moments(self) -> list[datetime]:
        """The beginnings of the sessions: on different days, in the middle of the day everywhere in Europe."""
        start = START + timedelta(days=self._rng.randrange(200))
        days = sorted(self._rng.sample(range(YEAR_DAYS), self._sessions))
        return [start + timedelta(days=day, hours=self._rng.randint(9, 18)) for day in days]

    def _fact_block(self, fact: Fact) -> list[Turn]:
        is_own = fact.who in self._speakers or fact.who == self._language.me
        speaker = self._speakers.index(fact.who) if fact.who in self._speakers else self._choose_speaker()
        templates = fact.topic.own if is_own else fact.topic.about_others
        statement = fact.fill(self._rng.choice(templates))
        return [self._turn(speaker, statement), self._turn(1 - speaker, self._rng.choice(fact.topic.replies))]

    def _mention_block(self, fact: Fact) -> list[Turn]:
        """A text that shares words with a fact; often the next one names the same person."""
        speaker = self._choose_speaker()
        mention = self._turn(speaker, fact.fill(self._rng.choice(fact.topic.mentions)))
        if fact.who in self._others and self._rng.random() < 0.6:
            named = [pair for pair in fact.language.small_talk if "{who}" in pair[0]]
            text, _ = self._rng.choice(named)
            thing = self._rng.choice(self._language.things)
            return [mention, self._turn(1 - speaker, text.format(who=fact.who, thing=thing))]
        return [mention]

    def _choose_speaker(self) -> int:
        return self._rng.randrange(2) if self._plan.is_pair else 0

    def _other_session(self, facts: list[Fact], fact: Fact) -> int:
        taken = {each.session for each in facts if each.topic == fact.topic}
        return self._rng.choice([number for number in range(self._sessions) if number not in taken])

    def _session(self, session_id: str, moment: datetime, blocks: list[list[Turn]]) -> Session:
        wanted = self._rng.randint(FEWEST_MESSAGES + 1, MOST_MESSAGES)
        talk = self._small_talk()
        blocks = list(blocks)
        while sum(map(len, blocks)) < wanted - 1:
            blocks.append(next(talk))
        self._rng.shuffle(blocks)
        messages: list[Message] = []
        time = moment.timestamp()
        for speaker, text in (turn for block in blocks for turn in block):
            time += self._rng.randint(10, 90)
            messages.append(Message("assistant" if speaker else "user", text, time))
        return Session(session_id, tuple(messages))

    def _small_talk(self) -> Iterator[list[Turn]]:
        pairs = self._language.small_talk
        for text, reply in self._rng.sample(pairs, len(pairs)):
            speaker = self._choose_speaker()
            slots = {"who": self._rng.choice(self._others), "thing": self._rng.choice(self._language.things)}
            yield [self._turn(speaker, text.format(**slots)), self._turn(1 - speaker, reply.format(**slots))]

    def _turn(self, speaker: int, text: str) -> Turn:
        name = self._speakers[speaker]
        return speaker, f"{name}: {text}" if name else text
