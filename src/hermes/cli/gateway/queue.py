"""`hermes gateway queue`: manages messages that could not be answered or delivered."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

import click

from hermes.cli.confirm import YES, confirm
from hermes.cli.display.table import Column, format_table
from hermes.cli.display.terminal import (
    heading,
    printable,
    printable_lines,
    terminal_width,
    write_json,
    write_stderr,
    write_stdout,
)
from hermes.cli.display.times import ago, parse_moment
from hermes.cli.gateway.wording import clock_time
from hermes.cli.options import AS_JSON, limit_option
from hermes.cli.store import open_for_change, open_for_reading, read_config
from hermes.errors import InvalidValue, NotFound
from hermes.phrases import plural
from hermes.state.lanes.figures import read_figures

if TYPE_CHECKING:
    from hermes.config import Config
    from hermes.state.lanes.types import InboxRow, OutboxRow
    from hermes.state.provider import SessionDBProvider

_AGE = re.compile(r"[0-9]+[mhdw]")

LIST_SCHEMA = "hermes.gateway.queue/1"
SCHEMA = "hermes.gateway.letter/1"
_ID = re.compile(r"(in|out):([0-9]{1,18})")
_CURSOR = re.compile(r"in:([0-9]{1,18}),out:([0-9]{1,18})")

LETTER = click.argument("letter_id", metavar="ID")


class LetterId(NamedTuple):
    """The id of a dead letter: from a chat or to a chat, and its number."""

    direction: Literal["in", "out"]
    number: int

    def __str__(self) -> str:
        return f"{self.direction}:{self.number}"


class Cursor(NamedTuple):
    """The last messages of a page, one of each direction."""

    inbound: int
    outbound: int

    def __str__(self) -> str:
        return f"in:{self.inbound},out:{self.outbound}"


@click.command("list")
@limit_option("messages of each direction")
@click.option("--after", metavar="CURSOR", help="Show the page after this cursor: `next` in --json.")
@AS_JSON
def list_(limit: int, after: str | None, as_json: bool) -> None:
    """List the messages that wait for an operator, the oldest first."""
    seen = _parse_cursor(after)
    config = read_config(as_json=as_json)
    with open_for_reading(config) as store:
        inbound = [] if store is None else store.inbox.dead(after=seen.inbound, limit=limit + 1)
        outbound = [] if store is None else store.outbox.dead(after=seen.outbound, limit=limit + 1)
        figures = None if store is None or not as_json else read_figures(store)
    items = [*map(inbound_json, inbound[:limit]), *map(outbound_json, outbound[:limit])]
    is_complete = max(len(inbound), len(outbound)) <= limit
    if as_json:
        dead = [] if figures is None else [*figures.dead_inbox.values(), *figures.dead_outbox.values()]
        shown = [row["id"] for row in inbound[:limit]][-1:], [row["id"] for row in outbound[:limit]][-1:]
        cursor = Cursor(*(last[0] if last else before for last, before in zip(shown, seen, strict=True)))
        page = {"items": items, "total": sum(dead), "next": None if is_complete else str(cursor)}
        write_json({"schema": LIST_SCHEMA, **page})
        return
    if not items:
        write_stderr("No message waits for an operator.")
        return
    header, *lines = format_letters(items, time.time(), terminal_width())
    write_stdout("\n".join([heading(header), *lines]))
    if not is_complete:
        write_stderr(f"Only the oldest {limit} of each direction are shown; raise --limit for more.")


@click.command()
@LETTER
@AS_JSON
def show(letter_id: str, as_json: bool) -> None:
    """Show one of these messages with its text."""
    wanted = parse_id(letter_id)
    config = read_config(as_json=as_json)
    with open_for_reading(config) as store:
        row = None if store is None else _get(store, wanted)
    if row is None:
        raise _unknown(wanted)
    item = (inbound_json if wanted.direction == "in" else outbound_json)(row)  # type: ignore[arg-type]
    item["payload"] = row["payload"]
    if as_json:
        write_json({"schema": SCHEMA, "item": item})
        return
    write_stdout("\n".join(format_letter(item)))


@click.command()
@LETTER
def retry(letter_id: str) -> None:
    """Let a message be answered, or sent, once more."""
    wanted = parse_id(letter_id)
    with _open(read_config(as_json=False), wanted) as store:
        done = (store.inbox if wanted.direction == "in" else store.outbox).retry(wanted.number)
    if not done:
        raise _unknown(wanted)
    what = "waits in its lane again" if wanted.direction == "in" else "is sent again"
    write_stdout(f"{wanted} {what}.")


@click.command()
@LETTER
@YES
@click.pass_context
def delete(context: click.Context, letter_id: str, is_sure: bool) -> None:
    """Give up a message: it is never answered, or never sent."""
    wanted = parse_id(letter_id)
    with _open(read_config(as_json=False), wanted) as store:
        row = _get(store, wanted)
        if row is None:
            raise _unknown(wanted)
        if not confirm(f"Delete {wanted} of {printable(row['platform'])}?", is_sure=is_sure):
            context.exit(1)
        if not (store.inbox if wanted.direction == "in" else store.outbox).delete(wanted.number):
            raise _unknown(wanted)
    write_stdout(f"Deleted {wanted}.")


@click.command()
@click.option("--older-than", "age", metavar="AGE", required=True, help="Only those that have waited longer, e.g. 7d.")
@YES
@click.pass_context
def expire(context: click.Context, age: str, is_sure: bool) -> None:
    """Give up all messages that have waited for an operator for too long."""
    now = time.time()
    moment = parse_moment(age, now) if _AGE.fullmatch(age.strip().lower()) else None
    if moment is None:
        raise InvalidValue(f"--older-than: invalid age {age!r}", hint="use an age such as 30m, 12h, 7d, 2w")
    if not confirm(f"Delete all messages that have waited for longer than {age}?", is_sure=is_sure):
        context.exit(1)
    with open_for_change(read_config(as_json=False)) as store:
        seconds = now - moment
        inbound = 0 if store is None else store.inbox.expire(seconds)
        outbound = 0 if store is None else store.outbox.expire_dead(seconds)
    write_stdout(f"Deleted {plural(inbound, 'message')} from chats and {plural(outbound, 'message')} to chats.")


def parse_id(text: str) -> LetterId:
    """Return the id in a text such as `in:12`; raise `InvalidValue` if it is none."""
    found = _ID.fullmatch(text.strip().lower())
    if found is None:
        raise InvalidValue(f"{text!r} is not the id of such a message", hint="ids are like in:12 and out:34")
    return LetterId("in" if found[1] == "in" else "out", int(found[2]))


def _parse_cursor(text: str | None) -> Cursor:
    """Return the cursor in a text; raise `InvalidValue` if it is none."""
    if text is None:
        return Cursor(0, 0)
    found = _CURSOR.fullmatch(text.strip())
    if found is None:
        raise InvalidValue(f"--after: {text!r} is no cursor of this list", hint="use `next` of --json")
    return Cursor(int(found[1]), int(found[2]))


def inbound_json(row: InboxRow) -> dict[str, Any]:
    """Return a message from a chat for JSON, without its payload."""
    return {
        "id": f"in:{row['id']}",
        "direction": "in",
        "platform": row["platform"],
        "chat_id": row["chat_id"],
        "message_id": row["message_id"],
        "session_key": row["session_key"],
        "kind": row["kind"],
        "state": row["state"],
        "reason": row["reason"],
        "attempts": row["attempts"],
        "created_at": row["accepted_at"],
        "finished_at": row["finished_at"],
    }


def outbound_json(row: OutboxRow) -> dict[str, Any]:
    """Return a message to a chat for JSON, without its payload."""
    payload = row["payload"] or {}
    return {
        "id": f"out:{row['id']}",
        "direction": "out",
        "platform": row["platform"],
        "chat_id": payload.get("chat_id"),
        "message_id": payload.get("reply_to"),
        "session_key": row["session_key"],
        "kind": row["kind"],
        "state": row["state"],
        "reason": row["reason"],
        "attempts": row["attempts"],
        "created_at": row["created_at"],
        "finished_at": row["finished_at"],
    }


def format_letters(items: Sequence[Mapping[str, Any]], now: float, width: int) -> list[str]:
    """Format a list of messages as a table."""
    return format_table(
        [
            Column("Id", [each["id"] for each in items]),
            Column("State", [each["state"] for each in items]),
            Column("Kind", [each["kind"] for each in items]),
            Column("Since", [ago(each["finished_at"] or each["created_at"], now) for each in items]),
            Column("Chat", [f"{each['platform']} {each['chat_id'] or ''}".strip() for each in items], is_elastic=True),
            Column("Reason", [each["reason"] or "" for each in items]),
        ],
        width,
    )


def format_letter(item: Mapping[str, Any]) -> list[str]:
    """Format one message with its text."""
    facts = {
        "Chat": f"{item['platform']} {item['chat_id'] or ''}".strip(),
        "Lane": item["session_key"] or "none",
        "Message": item["message_id"] or "none",
        "Kind": item["kind"],
        "State": item["state"] + (f": {item['reason']}" if item["reason"] else ""),
        "Attempts": str(item["attempts"]),
        "Stored": clock_time(item["created_at"]),
        "Ended": "not yet" if item["finished_at"] is None else clock_time(item["finished_at"]),
    }
    lines = [heading(item["id"]), *(printable(f"  {label + ':':9} {text}") for label, text in facts.items())]
    return [*lines, *_text_lines(item["payload"])]


def _text_lines(payload: Mapping[str, Any] | None) -> Iterator[str]:
    if payload is None:
        yield "Its text is not kept any more."
        return
    text = payload.get("text")
    yield ""
    yield printable_lines(text if isinstance(text, str) and text else json.dumps(payload))


def _get(store: SessionDBProvider, wanted: LetterId) -> InboxRow | OutboxRow | None:
    if wanted.direction == "in":
        return store.inbox.get(wanted.number)
    return store.outbox.get(wanted.number)


@contextmanager
def _open(config: Config, wanted: LetterId) -> Iterator[SessionDBProvider]:
    with open_for_change(config) as store:
        if store is None:
            raise _unknown(wanted)
        yield store


def _unknown(wanted: LetterId) -> NotFound:
    return NotFound(f"no message {wanted} waits for an operator", hint="see `hermes gateway queue list`")
