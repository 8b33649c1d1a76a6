"""The division of a conversation into what stays and what a summary takes the place of, in whole exchanges.

An exchange is what a person said with all that came of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import NamedTuple

from hermes.agent.history.projection import project
from hermes.agent.history.token_estimate import tokens_of_conversation
from hermes.state.rows import AnyRow

Exchange = list[AnyRow]
"""Rows of `get_messages`."""


class Division(NamedTuple):
    """A conversation in three parts: its beginning and its end stay, a summary takes the place of the middle."""

    head: list[AnyRow]
    middle: list[AnyRow]
    tail: list[AnyRow]

    @property
    def head_upto(self) -> int | None:
        """The id of the last message of the beginning, if there is one."""
        return self.head[-1]["id"] if self.head else None


def exchanges_of(rows: Sequence[AnyRow]) -> list[Exchange]:
    """A conversation in exchanges; a summary of earlier ones is one by itself.

    Words without an answer belong to those that follow them, and no tool call is parted from its result.
    """
    found: list[Exchange] = []
    for row in rows:
        is_begun = bool(found) and any(each["role"] == "user" for each in found[-1])
        is_answered = bool(found) and any(each["role"] not in ("user", "system") for each in found[-1])
        if row["role"] == "system" or not found or (row["role"] == "user" and (is_answered or not is_begun)):
            found.append([row])
        else:
            found[-1].append(row)
    return found


def divide(exchanges: Sequence[Exchange], *, head_messages: int, head_tokens: int, kept: int) -> Division:
    """Keep the last `kept` exchanges, and of the first ones those within so many messages and tokens."""
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
    """How many of the last exchanges are kept: those within so many tokens or so few messages, the last one always."""
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
    """About how many tokens stored messages are for a model."""
    return tokens_of_conversation(project(rows))
