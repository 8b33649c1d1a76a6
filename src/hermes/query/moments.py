"""The time that a question names: a day, a month, a year, or a span such as `last week`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta

from hermes.query.analyze import fold

_MONTHS = {
    name: number
    for number, names in enumerate(
        (
            "january jan januar janvier enero",
            "february feb februar fevrier febrero",
            "march mar marz mars marzo",
            "april apr avril abril",
            "may mai mayo",
            "june jun juni juin junio",
            "july jul juli juillet julio",
            "august aug aout agosto",
            "september sep sept septembre septiembre",
            "october oct oktober octobre octubre",
            "november nov novembre noviembre",
            "december dec dezember decembre diciembre",
        ),
        start=1,
    )
    for name in names.split()
}
_AMBIGUOUS = {"may", "march", "mar", "mars", "mai", "jan", "jun", "sep", "dec"}
"""Months only beside a number or behind a preposition: they are verbs, names and other words too."""

_WEEKDAYS = ("monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday")
_NUMBERS = {"a": 1, "one": 1, "two": 2, "three": 3, "four": 4, "five": 5, "six": 6, "seven": 7}
_UNIT_DAYS = {"day": 1, "week": 7, "month": 30, "year": 365}

_token = re.compile(r"[^\W\d_]{1,12}|\d{1,4}")
_iso = re.compile(r"\b((?:19|20)\d\d)-(\d\d?)(?:-(\d\d?))?\b")
_dotted = re.compile(r"\b(\d\d?)\.(\d\d?)\.((?:19|20)\d\d)\b")
_eastern = re.compile(r"(?:(\d{4}|去|今|작|올)\s?[年년해]\s?)?(?<!\d)(\d{1,2})\s?[月월](?:\s?(\d{1,2})\s?[日号일])?")
"""A month or a day as Chinese, Japanese and Korean write it."""
_eastern_year = re.compile(r"(去年|今年|昨年|작년|올해)")
_EASTERN_YEARS = {"去": 1, "昨": 1, "작": 1, "今": 0, "올": 0}
"""How many years before this one the character before `year` says."""
_past = re.compile(
    r"\b(?:in|over|during|within|from) the (?:last|past) "
    r"(\d{1,3}|two|three|four|five|six|seven) (day|week|month|year)s?\b"
)
_ago = re.compile(r"\b(\d{1,3}|a|one|two|three|four|five|six|seven) (day|week|month|year)s? ago\b")
_relative = {
    "today": (0, 0),
    "yesterday": (1, 1),
    "last night": (1, 1),
    "this week": (7, 0),
    "diese woche": (7, 0),
    "dieser woche": (7, 0),
    "letzter woche": (14, 1),
    "cette semaine": (7, 0),
    "esta semana": (7, 0),
    "今週": (7, 0),
    "这周": (7, 0),
    "이번 주": (7, 0),
    "last week": (14, 1),
    "last month": (62, 1),
    "this month": (31, 0),
    "heute": (0, 0),
    "gestern": (1, 1),
    "letzte woche": (14, 1),
    "letzten monat": (62, 1),
    "la semaine derniere": (14, 1),
    "ayer": (1, 1),
    "la semana pasada": (14, 1),
    "今天": (0, 0),
    "昨天": (1, 1),
    "上周": (14, 1),
    "上个月": (62, 1),
    "昨日": (1, 1),
    "先週": (14, 1),
    "先月": (62, 1),
    "어제": (1, 1),
    "지난주": (14, 1),
}
"""The days before today between which the span lies."""
_span = re.compile(
    rf"\b(?:{'|'.join(filter(str.isascii, _relative))})\b|{'|'.join(name for name in _relative if not name.isascii())}"
)
_last_year = re.compile(r"\blast year\b")
_weekday = re.compile(rf"\b(?:on|last|this|since) ({'|'.join(_WEEKDAYS)})\b")
_PREPOSITIONS = {
    "in",
    "on",
    "during",
    "since",
    "of",
    "until",
    "by",
    "last",
    "im",
    "en",
    "from",
    "this",
    "next",
    "around",
}
_MAX_CHARACTERS = 2_000
_FIRST_YEAR, _LAST_YEAR = 1970, 2200


@dataclass(frozen=True, slots=True)
class TimeHint:
    """A day, a month or a year, of which parts may be open; or a span between two days."""

    year: int | None = None
    month: int | None = None
    day: int | None = None
    first: date | None = None
    last: date | None = None

    def fit(self, timestamp: float) -> float:
        """How well a moment fits: 0 not at all, 1 the month, the year or the span, 2 the very day."""
        try:
            moment = datetime.fromtimestamp(timestamp, UTC).astimezone().date()
        except (OverflowError, OSError, ValueError):
            return 0.0
        if self.first is not None and self.last is not None:
            return 1.0 if self.first <= moment <= self.last else 0.0
        if (self.year or moment.year, self.month or moment.month) != (moment.year, moment.month):
            return 0.0
        return 2.0 if self.day == moment.day else 1.0


def parse_time_hint(text: str, now: float) -> TimeHint | None:
    """Return the time that a question names, or None if it names none."""
    lowered = fold(text[:_MAX_CHARACTERS])
    eastern = _eastern.search(lowered)
    if eastern is not None and 1 <= int(eastern[2]) <= 12:
        month, day = int(eastern[2]), int(eastern[3]) if eastern[3] else None
        return TimeHint(_eastern_year_of(eastern[1], now), month, day)
    if (named := _eastern_year.search(lowered)) is not None:
        return TimeHint(_eastern_year_of(named[1][0], now))
    dotted = _dotted.search(lowered)
    if dotted is not None and 1 <= int(dotted[2]) <= 12:
        return TimeHint(int(dotted[3]), int(dotted[2]), int(dotted[1]))
    found = _iso.search(lowered)
    if found is not None and 1 <= int(found[2]) <= 12:
        return TimeHint(int(found[1]), int(found[2]), int(found[3]) if found[3] else None)
    return _parse_calendar(lowered) or _parse_relative(lowered, now)


def _eastern_year_of(text: str | None, now: float) -> int | None:
    if text is None:
        return None
    return int(text) if text.isdigit() else _today(now).year - _EASTERN_YEARS[text]


def _today(now: float) -> date:
    return datetime.fromtimestamp(now, UTC).astimezone().date()


def _parse_calendar(lowered: str) -> TimeHint | None:
    tokens = _token.findall(lowered)
    year = _named_year(tokens)
    for at, token in enumerate(tokens):
        if token not in _MONTHS:
            continue
        numbers = [each for each in (tokens[max(0, at - 1) : at] + tokens[at + 1 : at + 2]) if _is_day(each)]
        before = tokens[at - 1] if at else ""
        if numbers and before == numbers[0]:
            before = tokens[at - 2] if at > 1 else ""
        # `may 8`, but neither `8 may` nor `may 8 apples`: those are verbs.
        is_dated = at + 2 == len(tokens) and _is_day(tokens[at + 1])
        is_certain = before in _PREPOSITIONS or year is not None or token not in _AMBIGUOUS or is_dated
        if is_certain and (before, token) != ("on", "mars"):
            return TimeHint(year, _MONTHS[token], int(numbers[0]) if numbers else None)
    return None if year is None else TimeHint(year)


def _named_year(tokens: list[str]) -> int | None:
    """Return a year that stands behind a preposition, a month or a day, not any number of four digits."""
    for before, token in zip(["", *tokens], tokens, strict=False):
        is_dated = before in _PREPOSITIONS or before in _MONTHS or _is_day(before)
        if len(token) == 4 and token.isdigit() and _is_year(int(token)) and is_dated:
            return int(token)
    return None


def _is_day(token: str) -> bool:
    return token.isdigit() and len(token) <= 2 and 1 <= int(token) <= 31


def _is_year(number: int) -> bool:
    return _FIRST_YEAR <= number <= _LAST_YEAR


def _parse_relative(lowered: str, now: float) -> TimeHint | None:
    today = _today(now)
    past = _past.search(lowered)
    if past is not None:
        days = (_NUMBERS.get(past[1]) or int(past[1])) * _UNIT_DAYS[past[2]]
        return TimeHint(first=_days_before(today, days), last=today)
    found = _ago.search(lowered)
    if found is not None:
        days = (_NUMBERS.get(found[1]) or int(found[1])) * _UNIT_DAYS[found[2]]
        slack = max(1, days // 4) if found[2] != "day" else 0
        return TimeHint(first=_days_before(today, days + slack), last=_days_before(today, max(0, days - slack)))
    if _last_year.search(lowered):
        return TimeHint(today.year - 1)
    spans = set(_span.findall(lowered))
    for name, (earliest, latest) in _relative.items():
        if name in spans:
            return TimeHint(first=_days_before(today, earliest), last=_days_before(today, latest))
    weekdays = set(_weekday.findall(lowered))
    for number, name in enumerate(_WEEKDAYS):
        if name in weekdays:
            day = today - timedelta(days=(today.weekday() - number) % 7 or 7)
            return TimeHint(first=day, last=day)
    return None


def _days_before(day: date, days: int) -> date:
    return day - timedelta(days=min(days, 300_000))
