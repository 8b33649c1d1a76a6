"""The sentences that the engine writes to users and to the model."""

from __future__ import annotations

from hermes.errors import (
    AnswerCut,
    ContextTooLong,
    CreditSpent,
    HermesError,
    ModelBusy,
    ModelError,
    ModelKeyRefused,
    ModelTimeout,
    ModelUnavailable,
    NoModel,
    UnknownModel,
)

EMPTY_ANSWER = "The model returned an empty answer. /retry asks it again."
UNAVAILABLE = "The message could not be saved, because the database cannot be reached. Please send it again."
LATER = "This runs after the current turn. /stop ends the turn."
QUARANTINED = (
    "Your message could not be answered: the gateway stopped three times during its turn. It is kept for the operator,"
    " and your next message starts a new session. /resume returns to this one."
)
PARKED = "Your message could not be answered: its turn was interrupted too often. It is kept for the operator."
NOT_ANSWERED = "Your message could not be answered because of an internal error. It is kept for the operator."


def too_long(characters: int, most: int) -> str:
    """Return why a message is refused that is too long."""
    return f"The message has {characters} characters; at most {most} are accepted. Please send a shorter one."


def queue_full(most: int) -> str:
    """Return why a message is refused while too many wait."""
    return f"{most} messages are waiting in this chat already. Please wait for their answers, or send /new."


def failed(error: HermesError | None) -> str:
    """Return the reply to a message whose turn failed."""
    if error is None:
        return "The turn failed. /retry tries again."
    if isinstance(error, ModelError):
        return _model_failed(error)
    text = f"The turn failed: {error.message.rstrip('.')}."
    return f"{text} {_sentence(error.hint)}" if error.hint else f"{text} /retry tries again."


def timed_out(seconds: float, activity: str) -> str:
    """Return the reply to a message whose turn did nothing for too long."""
    doing = f" (last activity: {activity})" if activity else ""
    return f"The turn was stopped: nothing happened for {duration(seconds)}{doing}. /retry tries again."


def took_too_long(seconds: float) -> str:
    """Return the reply to a message whose turn took too long."""
    return f"The turn was stopped after {duration(seconds)}, the limit of this gateway. /retry tries again."


def still_works(seconds: float, activity: str) -> str:
    """Return what a chat learns while a turn takes long."""
    doing = f" ({shorten(activity, 80)})" if activity else ""
    return f"Still working, for {duration(seconds)} so far{doing}. /stop ends the turn."


def queued(depth: int) -> str:
    """Return the acknowledgement of a message of `/queue`."""
    return f"Queued. {count(depth, 'message')} waiting." if depth > 1 else "Queued."


def waits(mode: str) -> str:
    """Return the acknowledgement of a message that waits for the end of a turn."""
    return "Your message is saved and will be answered after the current turn. /stop ends the turn."


def reset_notice(reason: str | None, idle_minutes: int, at_hour: int) -> str:
    """Return what a user learns when a chat has started a new session by itself."""
    return f"{_why_reset(reason, idle_minutes, at_hour)} This is a new session. /resume lists the earlier ones."


def reset_note(reason: str | None) -> str:
    """Return what the model learns when a chat has started a new session by itself."""
    why = {
        "idle": " because of inactivity",
        "daily": " by the daily reset",
        "suspended": " because it was stopped",
    }.get(reason or "", "")
    return (
        f"The user's earlier session ended{why}. This is a new conversation without its context;"
        " session_search finds the earlier one."
    )


def resume_note(reason: str | None, *, has_message: bool) -> str:
    """Return what the model learns when a turn continues after an interruption."""
    why = {
        "restart_timeout": "the gateway restarted",
        "shutdown_timeout": "the gateway was shut down",
        "restart_interrupted": "the gateway stopped unexpectedly",
    }.get(reason or "", "the gateway was interrupted")
    start = f"Your previous turn was interrupted because {why}. Everything up to that point is in the history."
    tools = " A tool call without a result may or may not have taken effect: check before you repeat it."
    end = " Continue, and reply to the message." if has_message else " Continue where you stopped and finish it."
    return start + tools + end


def background_done(prompt: str) -> str:
    """Return the first line of the result of a background task."""
    return f"Background task finished: {shorten(prompt, 80)}"


def approval_wanted(approval_id: str, summary: str) -> str:
    """Return what a chat learns when an action needs the operator's permission."""
    return f"This needs the operator's permission (request {approval_id}): {summary}"


def approval_request(approval_id: str, where: str, detail: str) -> str:
    """Return what those who may approve learn about a request."""
    return (
        f"Permission requested by {where} (request {approval_id}):\n{detail}\n"
        f"/approve {approval_id} allows it once, /deny {approval_id} refuses it."
    )


def duration(seconds: float) -> str:
    """Return a time span in words."""
    if seconds < 90:
        return count(round(seconds), "second")
    if seconds < 5400:
        return count(round(seconds / 60), "minute")
    return count(round(seconds / 3600), "hour")


def count(number: int, noun: str) -> str:
    """Return a number with its noun."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def shorten(text: str, most: int) -> str:
    """Return text on one line, at most so many characters."""
    line = " ".join(text.split())
    return line if len(line) <= most else f"{line[: most - 3]}..."


def _model_failed(error: ModelError) -> str:
    """Return what a user of a chat learns about an error of the model; its address and its settings are the operator's.

    The log and `explain` have the whole error.
    """
    match error:
        case ContextTooLong():
            return "The conversation is too long for the model. /compress shortens it, /new starts another one."
        case ModelBusy():
            return "The model is overloaded now. /retry tries again."
        case ModelUnavailable() | ModelTimeout():
            return "The model cannot be reached now. /retry tries again."
        case AnswerCut():
            return "The connection to the model broke off; the text so far is stored. /retry tries again."
        case NoModel() | ModelKeyRefused() | CreditSpent() | UnknownModel():
            return "The model cannot be used: its settings or its account need the operator of this gateway."
        case _:
            return "The model returned an error. /retry tries again."


def _why_reset(reason: str | None, idle_minutes: int, at_hour: int) -> str:
    if reason == "idle":
        return f"The session ended after {duration(idle_minutes * 60)} without a message."
    if reason == "daily":
        return f"The session ended by the daily reset at {at_hour:02d}:00."
    return "The session was stopped."


def _sentence(text: str) -> str:
    return f"{text[:1].upper()}{text[1:].rstrip('.')}."
