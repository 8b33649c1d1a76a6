"""Recall: the tool with which an agent looks into past sessions.

What it does follows from what it is given: a session and a message (scroll), a session (read), a query (discover), or
nothing (browse). The answer is a JSON text; a failure is an answer too, and never the same as finding nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes.errors import HermesError, InvalidValue, StoreUnavailable, UnknownMessage, UnknownSession
from hermes.state.discovery import HIDDEN_SOURCES, current_lineage, discover, session_meta
from hermes.state.owner import EVERYBODY, OwnerName, asker_named
from hermes.state.profiles import open_profile, profile_names
from hermes.state.provider import SessionDBProvider, open_session_db
from hermes.state.question import LIMIT, MAX_LIMIT, MAX_WINDOW, TIMEOUT_S, WINDOW, Question, ask
from hermes.state.relatives import families, session_of_message
from hermes.state.rows import MAX_INTEGER, AnyRow, Row, encode_json
from hermes.state.summaries import Summarizer
from hermes.state.transcript import shown, when
from hermes.state.view import OwnerView

if TYPE_CHECKING:
    from hermes.state.rowtypes import SessionRow

READ_LIMIT, READ_HEAD, READ_TAIL = 30, 20, 10
BROWSE_PAGE = 20

RECALL_GUIDANCE = (
    "When the user mentions something from an earlier conversation, or one may hold what you need, look it up with"
    " session_search before you ask the user to say it again."
)

SESSION_SEARCH_SCHEMA: dict[str, Any] = {
    "name": "session_search",
    "description": (
        "Look into past sessions. With query: the conversations that match best, each with the messages around the"
        " match and how it began and ended. With session_id: that session from its beginning. With session_id and"
        " around_message_id: the messages around that one, to read on from a match. Without arguments: the most recent"
        " sessions. The current conversation is left out; `hidden` counts what matched but is not shown."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": (
                    'Words that must all occur; "a phrase", prefix*, *part*, OR, NOT and parentheses work. Chinese,'
                    " Japanese and Korean need no spaces."
                ),
            },
            "limit": {
                "type": "integer",
                "description": "How many conversations to answer.",
                "default": LIMIT,
                "minimum": 1,
                "maximum": MAX_LIMIT,
            },
            "sort": {
                "type": "string",
                "enum": ["newest", "oldest"],
                "description": "Order by time; without it the best matches come first.",
            },
            "session_id": {"type": "string", "description": "A session to read, also as profile/session_id."},
            "around_message_id": {
                "type": "integer",
                "description": "A message of that session, such as match_message_id or the last one that was shown.",
            },
            "window": {
                "type": "integer",
                "description": "How many messages to show on either side of around_message_id.",
                "default": WINDOW,
                "minimum": 1,
                "maximum": MAX_WINDOW,
            },
            "role_filter": {
                "type": "string",
                "description": "Whose messages to search, with commas between: user,assistant (the default), tool.",
            },
            "profile": {"type": "string", "description": "Look into another profile of this person."},
        },
        "required": [],
    },
}


def session_search(
    query: str | None = "",
    role_filter: str | None = None,
    limit: int = LIMIT,
    db: SessionDBProvider | OwnerView | None = None,
    current_session_id: str | None = None,
    session_id: str | None = None,
    around_message_id: int | None = None,
    window: int = WINDOW,
    sort: str | None = None,
    profile: str | None = None,
    *,
    owner: OwnerName = None,
    summarize: Summarizer | None = None,
    timeout_s: float = TIMEOUT_S,
) -> str:
    """Look into past sessions and answer a JSON text.

    Without `db` the configured store is opened and closed again. With an `owner`, and in a view of an owner's sessions,
    only that owner's sessions exist.
    `summarize` is given the transcript of each found conversation; it has `timeout_s` for all of them together.
    """
    try:
        question = ask(
            query=query,
            role_filter=role_filter,
            limit=limit,
            current_session_id=current_session_id,
            session_id=session_id,
            around_message_id=around_message_id,
            window=window,
            sort=sort,
            profile=profile,
            owner=asker_named(owner) if db is None else db._whose(owner),
            summarize=summarize,
            timeout_s=timeout_s,
        )
        return encode_json(_answer(db, question))
    except HermesError as error:
        return encode_json({"success": False, "error": str(error)})


def _answer(db: SessionDBProvider | OwnerView | None, question: Question) -> Row:
    if question.profile is None:
        with _opened(db) as store:
            question = _with_profile(store, question)
            if question.profile is None:
                return _answer_from(store, question)
    if question.owner is not EVERYBODY:
        raise InvalidValue("other profiles cannot be looked into from here")
    with open_profile(question.profile) as other:
        return _answer_from(other, replace(question, current=None)) | {"profile": question.profile}


@contextmanager
def _opened(db: SessionDBProvider | OwnerView | None) -> Iterator[SessionDBProvider | OwnerView]:
    """The store that was given, or the configured one for as long as it is needed."""
    if db is not None:
        yield db
        return
    try:
        store = open_session_db(read_only=True)
    except HermesError as error:
        raise StoreUnavailable(f"Session database not available: {error}") from error
    with store:
        yield store


def _with_profile(store: SessionDBProvider | OwnerView, question: Question) -> Question:
    """A question for `profile/id` as one to that profile, unless there is a session whose id has a slash."""
    named = question.session_id
    if named is None or "/" not in named or store.get_session(named, question.owner) is not None:
        return question
    profile, _, session_id = named.partition("/")
    return replace(question, profile=profile.strip().lower(), session_id=session_id.strip())


def _answer_from(store: SessionDBProvider | OwnerView, question: Question) -> Row:
    if question.session_id is not None:
        return _read_anywhere(store, question) if question.anchor is None else _scroll(store, question)
    if question.query:
        return discover(store, question)
    if question.anchor is not None:
        raise InvalidValue("around_message_id needs the session_id of the session that the message is in")
    return _browse(store, question)


def _browse(store: SessionDBProvider | OwnerView, question: Question) -> Row:
    """The conversations that were active last."""
    current = current_lineage(store, question)
    rows: list[AnyRow] = []
    after = None
    while len(rows) < question.limit:
        page = store.list_sessions_rich(
            exclude_sources=HIDDEN_SOURCES,
            limit=BROWSE_PAGE,
            order_by_last_active=True,
            owner=question.owner,
            after=after,
        )
        rows += [row for row in page if row["id"] not in current]
        if len(page) < BROWSE_PAGE:
            break
        after = page[-1]["cursor"]
    fields = ("title", "source", "started_at", "last_active", "message_count", "preview")
    results = [
        {"session_id": row["id"], "when": when(row["started_at"]), **{name: row[name] for name in fields}}
        for row in rows[: question.limit]
    ]
    return {
        "success": True,
        "mode": "browse",
        "results": results,
        "count": len(results),
        "message": "The sessions that were active last; a query searches all." if results else "No past sessions yet.",
    }


def _read_anywhere(store: SessionDBProvider | OwnerView, question: Question) -> Row:
    """A session of this store or, for one who may see everything, of another profile."""
    try:
        return _read(store, question)
    except UnknownSession as error:
        if question.owner is not EVERYBODY or question.profile is not None:
            raise
        unreadable = []
        for profile in profile_names():
            try:
                with open_profile(profile) as other:
                    return _read(other, question) | {"profile": profile}
            except UnknownSession:
                continue
            except StoreUnavailable as failure:
                unreadable.append(failure.message)
        raise UnknownSession(error.message, hint="; ".join([error.hint, *unreadable])) from None


def _read(store: SessionDBProvider | OwnerView, question: Question) -> Row:
    """A session from its beginning; of a long one the beginning and the end."""
    session = _session(store, question)
    session_id, owner = session["id"], question.owner
    messages = store.get_messages(session_id, owner=owner, limit=READ_LIMIT + 1)
    is_cut = len(messages) > READ_LIMIT
    if is_cut:
        tail = store.get_messages(session_id, owner=owner, before_id=MAX_INTEGER, limit=READ_TAIL)
        messages = [*messages[:READ_HEAD], *tail]
    answer = {
        "success": True,
        "mode": "read",
        "session_id": session_id,
        "session_meta": session_meta(session),
        "message_count": session["message_count"],
        "truncated": is_cut,
        "messages": [shown(message) for message in messages],
    }
    if not is_cut:
        return answer
    return answer | {
        "message": (
            f"These are the first {READ_HEAD} and the last {READ_TAIL} of {session['message_count']} messages;"
            " around_message_id shows those between."
        )
    }


def _scroll(store: SessionDBProvider | OwnerView, question: Question) -> Row:
    """The messages around one, of all roles."""
    anchor = question.anchor_id
    session = _session(store, question)
    current = current_lineage(store, question)
    if session["id"] in current:
        raise InvalidValue("this is the current session: its messages are before you already")
    warning = {}
    at = session_of_message(store, anchor, question.owner)
    if at is not None and at != session["id"]:
        session = _relative(store, question, session, at)
        warning = {"warning": f"message {anchor} is in session {at}, which belongs to the same conversation"}
    view = store.get_messages_around(session["id"], anchor, question.window, owner=question.owner)
    if not view["window"]:
        raise _not_in(anchor, question)
    return {
        "success": True,
        "mode": "scroll",
        "session_id": session["id"],
        "around_message_id": anchor,
        "session_meta": session_meta(session),
        "window": question.window,
        "messages": [shown(message, anchor_id=anchor) for message in view["window"]],
        "messages_before": view["messages_before"],
        "messages_after": view["messages_after"],
        **warning,
    }


def _session(store: SessionDBProvider | OwnerView, question: Question) -> SessionRow:
    session = store.get_session(question.session_id or "", question.owner)
    if session is None:
        raise UnknownSession(
            f"there is no session {question.session_id!r}",
            hint="session_search without arguments shows the most recent ones",
        )
    return session


def _relative(
    store: SessionDBProvider | OwnerView, question: Question, session: SessionRow, session_id: str
) -> SessionRow:
    """The session of the same lineage that a message turned out to be in."""
    family = families(store, [session["id"]], question.owner).get(session["id"])
    found = store.get_session(session_id, question.owner) if family and session_id in family.members else None
    if found is None:
        raise _not_in(question.anchor_id, question)
    return found


def _not_in(anchor: int, question: Question) -> UnknownMessage:
    return UnknownMessage(
        f"message {anchor} is not in session {question.session_id!r}", hint="match_message_id names one that is"
    )
