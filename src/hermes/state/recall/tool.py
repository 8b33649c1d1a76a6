"""Recall: the tool with which an agent searches past sessions.

The arguments choose the mode: a session and a message (scroll), a session (read), a query (discover), or nothing
(browse). The result is a JSON text. An error is a result too, and differs from finding nothing.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from hermes.errors import HermesError, InvalidValue, StoreUnavailable, UnknownMessage, UnknownSession
from hermes.state.messages.transcript import format_message, format_moment
from hermes.state.owner import EVERYBODY, OwnerName, parse_asker
from hermes.state.owner_view import OwnerView
from hermes.state.provider import SessionDBProvider, open_session_db
from hermes.state.recall.arguments import LIMIT, MAX_LIMIT, MAX_WINDOW, TIMEOUT_S, WINDOW, SearchArguments, parse
from hermes.state.recall.discovery import HIDDEN_SOURCES, current_lineage, discover, session_meta
from hermes.state.recall.profiles import open_profile, profile_names
from hermes.state.recall.summaries import Summarizer
from hermes.state.rows import MAX_INTEGER, AnyRow, Row, encode_json
from hermes.state.sessions.lineage.families import load_families, session_of_message

if TYPE_CHECKING:
    from hermes.state.row_types import SessionRow

READ_LIMIT, READ_HEAD, READ_TAIL = 30, 20, 10
BROWSE_PAGE = 20

RECALL_GUIDANCE = (
    "When the user mentions something from an earlier conversation, or one may contain what you need, look it up with"
    " session_search before you ask the user to repeat it."
)

SESSION_SEARCH_SCHEMA: dict[str, Any] = {
    "name": "session_search",
    "description": (
        "Search past sessions. With query: the conversations that match best, each with the messages around the match"
        " and the first and last messages. With session_id: that session from the start. With session_id and"
        " around_message_id: the messages around that one, to read more around a match. Without arguments: the most"
        " recent sessions. The current conversation is left out; `hidden` counts matches that are not shown."
    ),
    "parameters": {
        "type": "object",
        "properties": {
            "query": {
                "type": "string",
                "description": (
                    "A question or the words to look for, as the user said them; the rarer words decide, and a time"
                    ' such as "in March" counts. "a phrase", prefix*, *part*, OR, NOT and parentheses are strict.'
                ),
            },
            "limit": {
                "type": "integer",
                "description": "How many conversations to return.",
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
                "description": "A message of that session, such as match_message_id or the last message of a result.",
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
                "description": "Roles to search, comma-separated: user,assistant (the default), tool.",
            },
            "profile": {"type": "string", "description": "Search another profile of this user."},
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
    """Search past sessions and return a JSON text.

    Without `db`, open the configured store and close it again. With an `owner`, and in a view of an owner's sessions,
    only that owner's sessions exist. `summarize` receives the transcript of each found conversation; all summaries
    together may take `timeout_s`.
    """
    try:
        arguments = parse(
            query=query,
            role_filter=role_filter,
            limit=limit,
            current_session_id=current_session_id,
            session_id=session_id,
            around_message_id=around_message_id,
            window=window,
            sort=sort,
            profile=profile,
            owner=parse_asker(owner) if db is None else db._asker_for(owner),
            summarize=summarize,
            timeout_s=timeout_s,
        )
        return encode_json(_run(db, arguments))
    except HermesError as error:
        return encode_json({"success": False, "error": str(error)})


def _run(db: SessionDBProvider | OwnerView | None, arguments: SearchArguments) -> Row:
    if arguments.profile is None:
        with _open_store(db) as store:
            arguments = _with_profile(store, arguments)
            if arguments.profile is None:
                return _run_mode(store, arguments)
    if arguments.owner is not EVERYBODY:
        raise InvalidValue("other profiles cannot be searched from here")
    with open_profile(arguments.profile) as other:
        return _run_mode(other, replace(arguments, current=None)) | {"profile": arguments.profile}


@contextmanager
def _open_store(db: SessionDBProvider | OwnerView | None) -> Iterator[SessionDBProvider | OwnerView]:
    """Yield the given store, or open the configured one for the block."""
    if db is not None:
        yield db
        return
    try:
        store = open_session_db(read_only=True)
    except HermesError as error:
        raise StoreUnavailable(f"Session database not available: {error}") from error
    with store:
        yield store


def _with_profile(store: SessionDBProvider | OwnerView, arguments: SearchArguments) -> SearchArguments:
    """Resolve `profile/id` to that profile, unless a session has this id with its slash."""
    typed = arguments.session_id
    if typed is None or "/" not in typed or store.get_session(typed, arguments.owner) is not None:
        return arguments
    profile, _, session_id = typed.partition("/")
    return replace(arguments, profile=profile.strip().lower(), session_id=session_id.strip())


def _run_mode(store: SessionDBProvider | OwnerView, arguments: SearchArguments) -> Row:
    if arguments.session_id is not None:
        return _read_anywhere(store, arguments) if arguments.anchor is None else _scroll(store, arguments)
    if arguments.query:
        return discover(store, arguments)
    if arguments.anchor is not None:
        raise InvalidValue("around_message_id also needs the session_id of the message")
    return _browse(store, arguments)


def _browse(store: SessionDBProvider | OwnerView, arguments: SearchArguments) -> Row:
    """Return the most recently active conversations."""
    current = current_lineage(store, arguments)
    rows: list[AnyRow] = []
    after = None
    while len(rows) < arguments.limit:
        page = store.list_sessions_rich(
            exclude_sources=HIDDEN_SOURCES,
            limit=BROWSE_PAGE,
            order_by_last_active=True,
            owner=arguments.owner,
            after=after,
        )
        rows += [row for row in page if row["id"] not in current]
        if len(page) < BROWSE_PAGE:
            break
        after = page[-1]["cursor"]
    fields = ("title", "source", "started_at", "last_active", "message_count", "preview")
    results = [
        {"session_id": row["id"], "when": format_moment(row["started_at"]), **{name: row[name] for name in fields}}
        for row in rows[: arguments.limit]
    ]
    return {
        "success": True,
        "mode": "browse",
        "results": results,
        "count": len(results),
        "message": "The most recently active sessions; use query to search all."
        if results
        else "No past sessions yet.",
    }


def _read_anywhere(store: SessionDBProvider | OwnerView, arguments: SearchArguments) -> Row:
    """Read a session of this store or, for an asker who may see everything, of another profile."""
    try:
        return _read(store, arguments)
    except UnknownSession as error:
        if arguments.owner is not EVERYBODY or arguments.profile is not None:
            raise
        unreadable = []
        for profile in profile_names():
            try:
                with open_profile(profile) as other:
                    return _read(other, arguments) | {"profile": profile}
            except UnknownSession:
                continue
            except StoreUnavailable as failure:
                unreadable.append(failure.message)
        raise UnknownSession(error.message, hint="; ".join([error.hint, *unreadable])) from None


def _read(store: SessionDBProvider | OwnerView, arguments: SearchArguments) -> Row:
    """Return a session from its start; of a long one the start and the end."""
    session = _session(store, arguments)
    session_id, owner = session["id"], arguments.owner
    messages = store.get_messages(session_id, owner=owner, limit=READ_LIMIT + 1)
    is_cut = len(messages) > READ_LIMIT
    if is_cut:
        tail = store.get_messages(session_id, owner=owner, before_id=MAX_INTEGER, limit=READ_TAIL)
        messages = [*messages[:READ_HEAD], *tail]
    response = {
        "success": True,
        "mode": "read",
        "session_id": session_id,
        "session_meta": session_meta(session),
        "message_count": session["message_count"],
        "truncated": is_cut,
        "messages": [format_message(message) for message in messages],
    }
    if not is_cut:
        return response
    return response | {
        "message": (
            f"The first {READ_HEAD} and the last {READ_TAIL} of {session['message_count']} messages;"
            " use around_message_id to read the others."
        )
    }


def _scroll(store: SessionDBProvider | OwnerView, arguments: SearchArguments) -> Row:
    """Return the messages around one, of all roles."""
    anchor = arguments.anchor_id
    session = _session(store, arguments)
    current = current_lineage(store, arguments)
    if session["id"] in current:
        raise InvalidValue("this is the current session; you already have its messages")
    warning = {}
    at = session_of_message(store, anchor, arguments.owner)
    if at is not None and at != session["id"]:
        session = _relative(store, arguments, session, at)
        warning = {"warning": f"message {anchor} is in session {at}, which belongs to the same conversation"}
    view = store.get_messages_around(session["id"], anchor, arguments.window, owner=arguments.owner)
    if not view["window"]:
        raise _not_in_session(anchor, arguments)
    return {
        "success": True,
        "mode": "scroll",
        "session_id": session["id"],
        "around_message_id": anchor,
        "session_meta": session_meta(session),
        "window": arguments.window,
        "messages": [format_message(message, anchor_id=anchor) for message in view["window"]],
        "messages_before": view["messages_before"],
        "messages_after": view["messages_after"],
        **warning,
    }


def _session(store: SessionDBProvider | OwnerView, arguments: SearchArguments) -> SessionRow:
    session = store.get_session(arguments.session_id or "", arguments.owner)
    if session is None:
        raise UnknownSession(
            f"there is no session {arguments.session_id!r}",
            hint="session_search without arguments lists the most recent ones",
        )
    return session


def _relative(
    store: SessionDBProvider | OwnerView, arguments: SearchArguments, session: SessionRow, session_id: str
) -> SessionRow:
    """Return the session of the same lineage that has the message."""
    family = load_families(store, [session["id"]], arguments.owner).get(session["id"])
    found = store.get_session(session_id, arguments.owner) if family and session_id in family.members else None
    if found is None:
        raise _not_in_session(arguments.anchor_id, arguments)
    return found


def _not_in_session(anchor: int, arguments: SearchArguments) -> UnknownMessage:
    return UnknownMessage(
        f"message {anchor} is not in session {arguments.session_id!r}", hint="use the match_message_id of a result"
    )
