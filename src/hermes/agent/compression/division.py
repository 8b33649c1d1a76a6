"""Divides a conversation into messages that stay and messages that a summary replaces, in whole exchanges.

An exchange is a message of the user with all messages that follow from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from hermes.agent.history.attachments import is_attached
from hermes.agent.history.projection import project
from hermes.agent.history.token_estimate import tokens_of_conversation
from hermes.state.rows import AnyRow

Exchange = list[AnyRow]
"""Rows of `get_messages`."""


class Division(NamedTuple):
    """A conversation in three parts: head and tail stay, a summary replaces the middle."""

    head: list[AnyRow]
    middle: list[AnyRow]
    tail: list[AnyRow]

    @property
    def head_upto(self) -> int | None:
        """The id of the last message of the head, or None if the head is empty."""
        return self.head[-1]["id"] if self.head else None


def exchanges_of(rows: Sequence[AnyRow]) -> list[Exchange]:
    """Split a conversation into exchanges; an earlier summary is an exchange of its own.

    Unanswered messages belong to the exchange after them, and a tool call stays with its result.
    """
    found: list[Exchange] = []
    for row in rows:
        is_begun = bool(found) and any(each["role"] == "user" for each in found[-1])
        is_answered = bool(found) and any(each["role"] not in ("user", "system") for each in found[-1])
        is_summary = row["role"] == "system" and not is_attached(row)
        if is_summary or not found or (row["role"] == "user" and (is_answered or not is_begun)):
            found.append([row])
        else:
            found[-1].append(row)
    return found


def divide(exchanges: Sequence[Exchange], *, head_messages: int, head_tokens: int, kept: int) -> Division:
    """Keep the last `kept` exchanges, and the first ones within `head_messages` and `head_tokens`."""
    rest = max(0, len(exchanges) - kept)
    head: list[AnyRow] = []
    count = 0
    for exchange in exchanges[:rest]:
        longer = [*head, *exchange]
        if exchange[0]["role"] == "system" or len(longer) > head_messages or tokens_of_rows(longer) > head_tokens:
            break
        head, count = longer, count + 1
    return Division(head, _join(exchanges[count:rest]), _join(exchanges[rest:]))


def count_kept(exchanges: Sequence[Exchange], *, tokens: int, messages: int) -> int:
    """How many of the last exchanges to keep: those within `tokens` or within `messages`, and at least one."""
    kept, seen_tokens, seen_messages = 0, 0, 0
    for exchange in reversed(exchanges):
        seen_tokens += tokens_of_rows(exchange)
        seen_messages += len(exchange)
        if kept and seen_tokens > tokens and seen_messages > messages:
            break
        kept += 1
    return kept


def _join(exchanges: Sequence[Exchange]) -> list[AnyRow]:
    return list(chain.from_iterable(exchanges))


def tokens_of_rows(rows: Sequence[AnyRow]) -> int:
    """Estimate the tokens of stored messages."""
    return tokens_of_conversation(project(rows))
