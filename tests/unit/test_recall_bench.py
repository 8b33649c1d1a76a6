"""The corpus with which recall is measured, and a short measurement with a part of it."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

from bench.recall import table
from bench.recall.corpus import FEWEST_MESSAGES, MOST_MESSAGES, PLANS, build_corpus
from bench.recall.dialogue import Dialogue, Question
from bench.recall.locomo import read_dialogues
from bench.recall.measurement import RecallReport, measure
from bench.recall.searchers import MessageFts5, Ours, separate_pairs
from bench.recall.topic import KINDS

CORPUS = build_corpus()
QUESTIONS = [(dialogue, question) for dialogue in CORPUS for question in dialogue.questions]
SMALL_PART = (0, 2, 3)
"""The dialogues of the short measurement, of which every other question is asked."""


def texts_of(dialogue: Dialogue, question: Question) -> list[str]:
    return [
        message.text for session in dialogue.sessions if session.id in question.evidence for message in session.messages
    ]


def test_the_corpus_is_the_same_every_time() -> None:
    assert build_corpus() == CORPUS


def test_a_dialogue_does_not_depend_on_those_after_it() -> None:
    assert build_corpus(PLANS[:2]) == CORPUS[:2]


def test_the_corpus_has_the_documented_size() -> None:
    assert 6 <= len(CORPUS) <= 10
    assert all(20 <= len(dialogue.sessions) <= 30 for dialogue in CORPUS)
    assert 400 <= len(QUESTIONS) <= 800


def test_every_session_has_the_documented_number_of_messages() -> None:
    counts = {len(session.messages) for dialogue in CORPUS for session in dialogue.sessions}
    assert FEWEST_MESSAGES <= min(counts) <= max(counts) <= MOST_MESSAGES


def test_session_ids_are_unique() -> None:
    ids = [session.id for dialogue in CORPUS for session in dialogue.sessions]
    assert len(ids) == len(set(ids))


def test_the_messages_of_a_dialogue_are_in_order_and_within_a_year() -> None:
    for dialogue in CORPUS:
        times = [message.timestamp for session in dialogue.sessions for message in session.messages]
        assert times == sorted(times)
        assert times[-1] - times[0] < 365 * 86_400


def test_every_kind_of_question_occurs() -> None:
    assert {question.kind for _, question in QUESTIONS} == set(KINDS)


def test_every_language_has_questions_that_name_a_time() -> None:
    languages = {dialogue.language for dialogue in CORPUS}
    assert {dialogue.language for dialogue, question in QUESTIONS if question.kind == "time"} == languages


def test_no_slot_of_a_template_is_left_open() -> None:
    texts = [message.text for dialogue in CORPUS for session in dialogue.sessions for message in session.messages]
    texts += [question.text for _, question in QUESTIONS]
    assert [text for text in texts if "{" in text or "}" in text] == []


def test_the_evidence_of_every_question_exists() -> None:
    for dialogue, question in QUESTIONS:
        texts = texts_of(dialogue, question)
        assert question.statements
        assert all(statement in texts for statement in question.statements), question.text


def test_a_fact_is_stated_once() -> None:
    for dialogue, question in QUESTIONS:
        texts = [message.text for session in dialogue.sessions for message in session.messages]
        assert all(texts.count(statement) == 1 for statement in question.statements), question.text


def test_no_question_contains_its_evidence() -> None:
    for _, question in QUESTIONS:
        for statement in question.statements:
            asked = set(separate_pairs(question.text).lower().split())
            stated = set(separate_pairs(statement).lower().split())
            assert statement not in question.text
            assert not stated <= asked, question.text


def found_within(report: RecallReport, searcher: str, depth: int) -> int:
    return sum(
        outcome.rank is not None and outcome.rank <= depth
        for outcome in report.outcomes
        if outcome.searcher == searcher
    )


def test_ours_finds_at_least_what_plain_fts5_finds(tmp_path: Path) -> None:
    parts = [replace(CORPUS[number], questions=CORPUS[number].questions[::2]) for number in SMALL_PART]
    report = measure(parts, tmp_path)
    assert {part.language for part in parts} == {"English", "German", "Chinese"}
    assert found_within(report, Ours.name, 5) >= found_within(report, MessageFts5.name, 5) > 0
    assert "any@5" in table.render(report)
    assert table.markdown(report).startswith("| language |")


def test_a_locomo_file_becomes_sessions_of_one_owner(tmp_path: Path) -> None:
    file = tmp_path / "dialogues.json"
    messages = [
        {"speaker": "Ada", "text": "Look at this!", "image": "a red kite"},
        {"speaker": "Ben", "text": "Nice."},
    ]
    dialogue = {
        "speakers": ["Ada", "Ben"],
        "sessions": [{"id": "session_1", "date": "1:05 pm on 8 May, 2024", "messages": messages}],
        "questions": [
            {"question": "What did Ada show?", "evidence": ["session_1"], "category": 4},
            {"question": "What did Ada hide?", "evidence": [], "category": 5},
        ],
    }
    file.write_text(json.dumps([dialogue]))
    (found,) = read_dialogues(file)
    (session,) = found.sessions
    assert [(message.role, message.text) for message in session.messages] == [
        ("user", "Ada: Look at this! [a red kite]"),
        ("assistant", "Ben: Nice."),
    ]
    assert datetime.fromtimestamp(session.messages[0].timestamp, UTC) == datetime(2024, 5, 8, 13, 5, tzinfo=UTC)
    assert [(question.text, question.evidence) for question in found.questions] == [
        ("What did Ada show?", (session.id,))
    ]


def test_characters_without_spaces_become_pairs() -> None:
    assert separate_pairs("我在成都 ok").split() == ["我在", "在成", "成都", "ok"]
    assert separate_pairs("猫").split() == ["猫"]
