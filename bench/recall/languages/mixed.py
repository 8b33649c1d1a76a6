"""Dialogues in which people change the language, and questions in another language than the fact."""

from __future__ import annotations

from bench.recall.languages.chinese import CHINESE
from bench.recall.languages.english import ENGLISH, MONTHS
from bench.recall.languages.german import GERMAN
from bench.recall.topic import SAME, SYNONYM, TECHNICAL, TIME, Language, Topic

TOPICS = (
    Topic(
        values=("Gasthof Linde", "Café Kranich", "Ratskeller", "Bistro Möwe"),
        details=("der Tisch am Fenster", "um halb acht", "mit dem Hund", "zum Geburtstag"),
        own=("Ich habe im {a} reserviert, {detail}.",),
        about_others=("{who} hat im {a} reserviert, {detail}.",),
        replies=("Sounds good, I will be there.", "Nice, I was hungry anyway."),
        mentions=("Is the {a} still closed on Mondays?", "Das {a} hat einen neuen Koch."),
        questions=(
            (SAME, "Was hat {who} im {a} reserviert?"),
            (SYNONYM, "What did {who} book at {a}?"),
            (TIME, "Where did {who} book a table in {month}?"),
        ),
    ),
    Topic(
        values=("OpenTelemetry", "Prometheus", "Grafana", "Redis"),
        details=("延迟从两秒降到两百毫秒", "内存用了一半", "夜里的报警没有了"),
        own=("我们上线了 {a}，{detail}。",),
        about_others=("{who} 给我们上线了 {a}，{detail}。",),
        replies=("Great, then we can close the ticket.", "好消息，文档也更新一下吧。"),
        mentions=("Where are the docs of {a}?", "有人看过 {a} 的文档吗？"),
        questions=(
            (TECHNICAL, "What got better after {who} rolled out {a}?"),
            (SAME, "{who} 上线 {a} 以后怎么样？"),
            (TECHNICAL, "{a} {who} 上线"),
        ),
    ),
    Topic(
        values=("Projekt Nordlicht", "Projekt Kolibri", "Projekt Amsel", "Projekt Zeder"),
        details=(
            "the budget is 48 000",
            "until the end of spring",
            "with three freelancers",
            "without a written contract",
        ),
        own=("Ich leite jetzt das {a}, {detail}.",),
        about_others=("{who} leitet jetzt das {a}, {detail}.",),
        replies=("Congratulations, das wird spannend.", "Viel Erfolg, let me know how it goes."),
        mentions=("Wer hat eigentlich den Namen {a} erfunden?", "The slides on {a} are too long."),
        questions=(
            (SAME, "Was ist über das {a} bekannt, das {who} leitet?"),
            (SYNONYM, "What do we know about {a}, led by {who}?"),
            (SYNONYM, "{who} 负责的 {a} 情况怎么样？"),
        ),
    ),
)

MIXED = Language(
    name="mixed",
    people=("Mei", "Jonathan", "Priya", "Annika", "Wen", "Bruno", "Sora", "Emre"),
    topics=TOPICS,
    borrowed=(
        *((topic, ENGLISH) for topic in ENGLISH.topics[::3]),
        *((topic, GERMAN) for topic in GERMAN.topics[1::3]),
        *((topic, CHINESE) for topic in CHINESE.topics[2::3]),
    ),
    small_talk=(*ENGLISH.small_talk[::2], *GERMAN.small_talk[::2], *CHINESE.small_talk[::2]),
    things=("coffee", "Kaffee", "咖啡", "football", "the weather", "das Wetter", "天气"),
    months=MONTHS,
    day="{day} {month}",
    genitive="{who}'s",
)
