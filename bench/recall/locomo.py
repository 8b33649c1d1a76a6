"""A LoCoMo file, which the caller has: dialogues of two people, with questions about them."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from bench.recall.dialogue import Dialogue, Message, Question, Session

DATE_FORMAT = "%I:%M %p on %d %B, %Y"
SECONDS_BETWEEN = 30


def read_dialogues(path: Path) -> list[Dialogue]:
    """Return the dialogues of a file, each as the sessions of one owner.

    The file is a list of `{speakers: [a, b], sessions: [{id, date, messages: [{speaker, text, image?}]}],
    questions: [{question, evidence: [session ids], category}]}`. Questions without evidence are left out.
    """
    return [_dialogue(number, item) for number, item in enumerate(json.loads(path.read_text(encoding="utf-8")))]


def _dialogue(number: int, item: dict[str, Any]) -> Dialogue:
    user_id = str(8_000 + number)
    sessions = tuple(_session(f"{user_id}-{each['id']}", item["speakers"][0], each) for each in item["sessions"])
    known = {session.id for session in sessions}
    questions = []
    for each in item["questions"]:
        evidence = tuple(name for at in each["evidence"] if (name := f"{user_id}-{at}") in known)
        if evidence:
            questions.append(Question(each["question"], f"category {each['category']}", evidence))
    return Dialogue(user_id, "LoCoMo", sessions, tuple(questions))


def _session(session_id: str, user: str, item: dict[str, Any]) -> Session:
    start = datetime.strptime(item["date"], DATE_FORMAT).replace(tzinfo=UTC).timestamp()
    return Session(
        session_id,
        tuple(
            Message("user" if each["speaker"] == user else "assistant", _text(each), start + number * SECONDS_BETWEEN)
            for number, each in enumerate(item["messages"])
        ),
    )


def _text(message: dict[str, Any]) -> str:
    caption = message.get("image")
    text = f"{message['speaker']}: {message['text']}"
    return f"{text} [{caption}]" if caption else text
