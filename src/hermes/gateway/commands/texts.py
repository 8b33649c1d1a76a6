"""The sentences that commands send to chats."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from hermes.errors import HermesError
from hermes.gateway.commands.parsing import CommandName
from hermes.phrases import plural

MAX_ECHO = 100
MAX_UNDONE = 200
MAX_ARGUMENTS = 16_000

NO_SESSION = "There is no session yet. Your next message starts one."
NO_SESSIONS = "There are no sessions yet."
IS_STOPPED = "The session of this chat was stopped. Send /resume to continue it, and then this command again."
NOTHING_TO_STOP = "There is nothing to stop."
NOTHING_TO_RETRY = "There is no message to answer again."
NOTHING_TO_UNDO = "There is nothing to undo."
NOTHING_TO_COMPRESS = "There are no messages yet, so nothing to compress."
NOTHING_TO_BRANCH = "There are no messages yet, so nothing to branch from."
SEVERAL_SESSIONS = "Several of your sessions match. /sessions lists them with their ids."
EMPTY_TITLE = "A title needs visible characters."
NO_TITLE = "This session has no title. /title TEXT sets one."
SWITCH_LATER = "A turn is running. Send /model again when it has ended, or /stop first."
DEFAULT_MODEL_RESTORED = "This chat uses the default model again."
BACKGROUND_USAGE = (
    "Send /background with a task. It is done in a session of its own, and the result is sent to this chat."
)
BACKGROUND_STARTED = "The task runs in the background. The result is sent to this chat."
ONLY_ADMINS = "Only an administrator of the gateway can use this command."
RESTARTING = "The gateway restarts as soon as its running turns have ended. Messages are saved and answered afterwards."
HAS_RESTARTED = "The gateway has restarted since this command was sent."
UNKNOWN_REQUEST = "There is no open request with this id."
NO_REQUESTS = "No request waits for a decision."
APPROVE_USAGE = "Send /approve ID to allow a request once, /approve ID session for its session, or /approve ID always."
DENY_USAGE = "Send /deny ID to refuse a request. /approve lists the requests."
DETAILS_ARE_PRIVATE = "Details are shown only in a private chat."
LANE_IS_GONE = "The chat that asked for this does not exist any more, so nothing is run."


def failed(error: HermesError) -> str:
    """Return the reply to a command that failed."""
    return sentence(error.message)


def sentence(text: str) -> str:
    """Return text with a capital letter at its start and a full stop at its end."""
    text = text.strip()
    return f"{text[:1].upper()}{text[1:]}" if text.endswith((".", "!", "?")) else f"{text[:1].upper()}{text[1:]}."


def shorten(text: str, most: int) -> str:
    """Return text on one line of at most so many characters."""
    line = " ".join("".join(each if each.isprintable() else " " for each in text).split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def quote(text: str) -> str:
    """Return a text of a user in quotes, not too long."""
    return f'"{shorten(text, MAX_ECHO)}"'


def lines(parts: Iterable[str]) -> str:
    """Return the parts that are not empty, one a line."""
    return "\n".join(each for each in parts if each)


def facts(pairs: Mapping[str, str]) -> str:
    """Return facts, one a line."""
    return "\n".join(f"{label}: {fact}" for label, fact in pairs.items())


def help_text(commands: Sequence[CommandName]) -> str:
    """Return the list of commands."""
    return "\n".join(f"{each.usage} - {each.summary}" for each in commands)


def too_many_tasks(most: int) -> str:
    """Return why no further background task is started."""
    return f"{most} background tasks of this chat are not done yet. Send this again when one of them is."


# --- starting, stopping, switching ------------------------------------------------------------------------------------


def new_session(title: str | None, old_id: str | None, discarded: int) -> str:
    """Return the reply to `/new`."""
    return lines(
        (
            f"New session {quote(title)}." if title else "New session.",
            f"{plural(discarded, 'waiting message')} discarded." if discarded else "",
            f"/resume {old_id} returns to the session before." if old_id else "",
        )
    )


def title_refused(why: str) -> str:
    """Return why a new session has no title."""
    return f"It has no title: {why}"


def title_taken(title: str) -> str:
    """Return why a title cannot be used."""
    return f"Another session has the title {quote(title)} already."


def stopped(session_id: str, held: int) -> str:
    """Return the reply to `/stop`."""
    held_line = f"{plural(held, 'queued message')} held; your next message releases {'it' if held == 1 else 'them'}."
    return lines(
        (
            "Stopped. Your next message starts a new session.",
            held_line if held else "",
            f"/resume {session_id} returns to this one.",
        )
    )


def unknown_session(name: str) -> str:
    """Return the reply if a user has no session of this name; others may have one."""
    return f"You have no session {quote(name)}. /sessions lists yours."


def already_in(name: str) -> str:
    """Return the reply to a `/resume` of the present session."""
    return f"This chat is in session {name} already."


def resumed(name: str, messages: int) -> str:
    """Return the reply to `/resume`."""
    return f"Continuing session {name} with {plural(messages, 'message')}."


def session_name(session_id: str, title: str | None) -> str:
    """Return how texts name a session."""
    return f"{quote(title)} ({session_id})" if title else session_id


def listed_session(number: int, label: str, when: str, session_id: str, *, is_current: bool) -> str:
    """Return a session of a list."""
    mark = ", this one" if is_current else ""
    return f"{number}. {label} ({when}{mark})\n{session_id}"


def sessions_list(entries: Sequence[str], *, is_shared: bool) -> str:
    """Return a list of sessions."""
    head = "The sessions of this chat:" if is_shared else "Your sessions:"
    return "\n".join((head, *entries, "/resume NUMBER continues one of them."))


def title_shown(title: str) -> str:
    """Return the reply to `/title` without a text."""
    return f"The title is {quote(title)}."


def title_set(title: str) -> str:
    """Return the reply to `/title TEXT`."""
    return f"The title is now {quote(title)}."


def branched(title: str | None, session_id: str, parent_id: str, messages: int) -> str:
    """Return the reply to `/branch`."""
    return lines(
        (
            f"This chat continues in the branch {session_name(session_id, title)} with {plural(messages, 'message')}.",
            f"/resume {parent_id} returns to the original.",
        )
    )


# --- turns ------------------------------------------------------------------------------------------------------------


def undo_usage(text: str) -> str:
    """Return the reply to `/undo` with an argument that is no number of turns."""
    return f"{quote(text)} is not a number of turns. Send /undo, or for example /undo 2."


def undone(turns: int, messages: int, text: str) -> str:
    """Return the reply to `/undo`."""
    counted = f" ({plural(messages, 'message')})" if messages else ""
    return f"Undid {plural(turns, 'turn')}{counted}, from: {shorten(text, MAX_UNDONE)}"


def compressed(before: int, after: int, tokens_before: int, tokens_after: int) -> str:
    """Return the reply to `/compress`."""
    return (
        f"Compressed: {before} messages before, {after} now; about {tokens_before:,} tokens before,"
        f" {tokens_after:,} now."
    )


def not_compressed(why: str) -> str:
    """Return the reply to `/compress` if nothing has changed."""
    return f"Not compressed: {why.rstrip('.')}."


def queue_usage(depth: int, held: int) -> str:
    """Return the reply to `/queue` without a text."""
    return lines(
        (
            "Send /queue with a message. It is answered after the present turn, in a turn of its own.",
            f"{plural(depth, 'queued message')} waiting." if depth else "No queued messages are waiting.",
            f"{plural(held, 'queued message')} held; your next message releases {'it' if held == 1 else 'them'}."
            if held
            else "",
        )
    )


def steer_usage(waiting: int) -> str:
    """Return the reply to `/steer` without a text."""
    return lines(
        (
            "Send /steer with a message. A running turn takes it into account; without a turn it is answered as usual.",
            f"{plural(waiting, 'message')} waiting." if waiting else "No messages are waiting.",
        )
    )


# --- models -----------------------------------------------------------------------------------------------------------


def model_shown(name: str, *, is_chosen: bool) -> str:
    """Return the reply to `/model` without a name."""
    return f"Model: {name} ({'chosen for this chat; /model default changes it back' if is_chosen else 'the default'})."


def model_set(name: str) -> str:
    """Return the reply to `/model NAME`."""
    return f"Model: {name}, from the next turn on. /model default changes it back."


def model_refused(name: str, error: HermesError) -> str:
    """Return the reply to `/model` with a model that cannot be used."""
    return f"The model is unchanged: {quote(name)} cannot be used. {sentence(error.message)}"


# --- approvals --------------------------------------------------------------------------------------------------------


def request_details(tool: str, arguments: str, directory: str | None) -> str:
    """Return what exactly is allowed: the tool, its arguments as the model wrote them, and the directory.

    Line breaks and invisible characters are escaped, so that a model cannot write lines that look like ours.
    """
    shown = escape(arguments[:MAX_ARGUMENTS])
    hidden = len(arguments) - MAX_ARGUMENTS
    more = f"\nWARNING: {hidden:,} more characters of the arguments are not shown." if hidden > 0 else ""
    return lines(
        (f"Tool: {escape(tool)}", f"Arguments: {shown}{more}", f"Directory: {escape(directory)}" if directory else "")
    )


def escape(text: str) -> str:
    """Return text on one line, with escapes for characters that do not show."""
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)


def listed_request(approval_id: str, when: str, details: str) -> str:
    """Return a request of a list."""
    return f"Request {approval_id}, {when}:\n{details}"


def requests_list(entries: Sequence[str]) -> str:
    """Return the requests that wait for a decision."""
    return "\n\n".join((*entries, "/approve ID allows one of them once, /deny ID refuses it."))


def approved(approval_id: str, scope: str, details: str) -> str:
    """Return the reply to `/approve ID`."""
    how = {"once": "once", "session": "for its session", "always": "always"}.get(scope, scope)
    return f"Request {approval_id} is approved, {how}. It is run exactly as requested:\n{details}"


def denied(approval_id: str) -> str:
    """Return the reply to `/deny ID`."""
    return f"Request {approval_id} is denied. Nothing is run."


def already_decided(approval_id: str, state: str) -> str:
    """Return the reply to a decision about a request that is not open any more."""
    how = {
        "approved": "was approved before",
        "used": "was approved and has been run",
        "denied": "was denied before",
        "expired": "was not decided in time, so it is denied",
        "void": "is void, because what it asks for has changed",
    }.get(state, "is not open any more")
    return f"Request {approval_id} {how}."
