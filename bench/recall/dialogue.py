"""Dialogues: what one owner talked about over a year, and questions about it."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Message:
    """One text of a person or of the agent."""

    role: str
    text: str
    timestamp: float


@dataclass(frozen=True, slots=True)
class Session:
    """The messages of one conversation; the id is unique among all dialogues."""

    id: str
    messages: tuple[Message, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """A question, and the sessions that hold the answer."""

    text: str
    kind: str
    evidence: tuple[str, ...]
    statements: tuple[str, ...] = ()
    """The texts that hold the answer, as far as they are known."""


@dataclass(frozen=True, slots=True)
class Dialogue:
    """All sessions of one owner, and the questions about them."""

    user_id: str
    language: str
    sessions: tuple[Session, ...]
    questions: tuple[Question, ...]
