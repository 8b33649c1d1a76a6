"""`hermes gateway explain`: shows the life of one message."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from hermes.cli.display.terminal import heading, printable, write_json, write_stderr, write_stdout
from hermes.cli.gateway.wording import clock_time, span
from hermes.cli.options import AS_JSON
from hermes.cli.store import open_for_reading, read_config
from hermes.errors import Conflict, NotFound
from hermes.gateway.upkeep.explain import explain_message, find_messages
from hermes.phrases import plural

if TYPE_CHECKING:
    from hermes.state.lanes.types import InboxRow

SCHEMA = "hermes.gateway.message/1"
MOST_LISTED = 20


@click.command(
    epilog="""\b
Examples:
  hermes gateway explain 4711
  hermes gateway explain 4711 --chat -100123456
  hermes gateway explain in:12 --json"""
)
@click.argument("message_id")
@click.option(
    "--chat", "chat_id", metavar="ID", help="The chat of the message, if several have a message with this id."
)
@AS_JSON
def explain(message_id: str, chat_id: str | None, as_json: bool) -> None:
    """Show the life of one message.

    MESSAGE_ID is the id that the platform gave it, or its number in the inbox, such as in:12. The exit code is 3 if the
    message is not known (any more), and 4 if several chats have a message with this id.
    """
    config = read_config(as_json=as_json)
    with open_for_reading(config) as store:
        rows = [] if store is None else find_messages(store, message_id, chat_id)
        if store is None or not rows:
            raise _unknown(message_id, chat_id, config.gateway.dedupe_days)
        if len(rows) > 1:
            raise _ambiguous(message_id, rows, as_json=as_json)
        item = explain_message(store, rows[0])
    if as_json:
        write_json({"schema": SCHEMA, "item": item})
        return
    write_stdout("\n".join(format_message(item)))


def format_message(item: Mapping[str, Any]) -> list[str]:
    """Format the life of a message for people, with times in the local zone."""
    name = item["message_id"] or item["id"]
    user = item["user"]
    facts = {
        "Lane": item["session_key"],
        "Session": item["session_id"] or "none yet",
        "User": "not kept" if user is None else " ".join(str(each) for each in (user["id"], user["name"]) if each),
        "Kind": item["kind"],
        "State": item["state"] + (f": {item['reason']}" if item["reason"] else ""),
    }
    where = f"{item['platform']}, chat {item['chat_id']}" if item["chat_id"] else item["platform"]
    lines = [heading(printable(f"Message {name} ({where})"))]
    lines += [printable(f"  {label + ':':9} {text}") for label, text in facts.items()]
    lines += [printable(f"{clock_time(moment)}  {text}") for moment, text in sorted(_events(item), key=_moment)]
    if item["state"] in ("accepted", "held"):
        lines.append(f"It has waited for {span(item['waited_s'])} so far.")
    return lines


def _moment(event: tuple[float, str]) -> float:
    return event[0]


def _events(item: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    """Yield what happened, with the times."""
    yield item["accepted_at"], f"received and committed as {item['id']}"
    for turn in item["turns"]:
        yield from _turn_events(turn, item)
    if not item["turns"] and item["finished_at"] is not None:
        yield item["finished_at"], f"{item['state']} without a turn, after {span(item['waited_s'])}"
    for reply in item["replies"]:
        yield from _reply_events(reply)


def _turn_events(turn: Mapping[str, Any], item: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    waited = f", after {span(item['waited_s'])} of waiting" if turn["attempt"] == 1 else f", attempt {turn['attempt']}"
    yield turn["started_at"], f"claimed by {turn['node']} ({turn['holder']}), turn {turn['turn_id']} started{waited}"
    if turn["progressed_at"] is not None:
        activity = f": {turn['activity']}" if turn["activity"] else ""
        yield turn["progressed_at"], f"last progress, {plural(turn['steps'], 'step')}{activity}"
    tools = f", tools: {', '.join(turn['tools'])}" if turn["tools"] else ""
    if turn["finished_at"] is None:
        yield turn["started_at"], f"the turn still runs, for {span(turn['seconds'])}{tools}"
        return
    reason = f" ({turn['reason']})" if turn["reason"] else ""
    yield turn["finished_at"], f"turn {turn['state']} after {span(turn['seconds'])}{reason}{tools}"


def _reply_events(reply: Mapping[str, Any]) -> Iterator[tuple[float, str]]:
    yield reply["created_at"], f"{reply['kind']} {reply['id']} stored ({reply['key']})"
    # A client of the local socket confirms what it gets, so there are no attempts to send it.
    attempts = f", {plural(reply['attempts'], 'attempt')}" if reply["attempts"] else ""
    reason = f": {reply['reason']}" if reply["reason"] else ""
    if reply["finished_at"] is None:
        yield reply["created_at"], f"{reply['kind']} {reply['id']} is {reply['state']}{attempts}{reason}"
        return
    receipt = reply["receipt"] or {}
    ids = ", ".join(str(each) for each in receipt.get("message_ids") or ())
    shown = f", receipt {ids}" if ids else ""
    text = f"{reply['kind']} {reply['id']} {reply['state']} after {span(reply['seconds'])}{attempts}{reason}{shown}"
    yield reply["finished_at"], text


def _unknown(message_id: str, chat_id: str | None, dedupe_days: float) -> NotFound:
    where = "" if chat_id is None else f" in chat {chat_id}"
    return NotFound(
        f"no message {message_id!r} is known{where}",
        hint="use the id that the platform gave the message, or in:NUMBER; messages that ended more than"
        f" {dedupe_days:g} days ago are not kept",
    )


def _ambiguous(message_id: str, rows: Sequence[InboxRow], *, as_json: bool) -> Conflict:
    listed = [f"{each['platform']} chat {each['chat_id']}: in:{each['id']}" for each in rows[:MOST_LISTED]]
    if not as_json:
        for line in listed:
            write_stderr(line)
    return Conflict(
        f"{len(rows)} chats have a message {message_id!r}" + (f": {'; '.join(listed)}" if as_json else ""),
        hint="choose one with --chat ID, or with its number in:NUMBER",
    )
