"""The reads and changes of the browse screen; every call here may take time."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hermes.cli.chat.recap import Recap, build_recap
from hermes.cli.store import database_file, no_sessions_message, open_for_change, sessions_dir
from hermes.errors import UnknownSession
from hermes.state.sessions.lists.browsing import (
    BrowseFilter,
    ListedConversation,
    conversation_session_ids,
    find_conversations,
    list_conversations,
)

if TYPE_CHECKING:
    from hermes.config import Config
    from hermes.state.maintenance.receipt import Receipt
    from hermes.state.provider import SessionDBProvider

PAGE = 100
MOST_HITS = 50
MESSAGES_FOR_RECAP = 60
LAST_ID = 2**62
OPERATORS = ("AND", "OR", "NOT")


@dataclass(frozen=True, slots=True)
class Hit:
    """A conversation with a message that matches, and the snippet."""

    conversation: ListedConversation
    snippet: str


@dataclass(frozen=True, slots=True)
class DeletionPreview:
    """The sessions that a deletion would delete, and the number of their messages."""

    session_ids: tuple[str, ...]
    messages: int


class SessionQueries:
    """Reads the conversations of a store, and changes them one at a time."""

    def __init__(self, config: Config, store: SessionDBProvider) -> None:
        self._config = config
        self._store = store

    def page(self, wanted: BrowseFilter, after: ListedConversation | None = None) -> list[ListedConversation]:
        """Return the next conversations after one, or the first."""
        return list_conversations(self._store, wanted, PAGE, after)

    def count(self, wanted: BrowseFilter) -> int:
        """Return the number of conversations, whatever their words."""
        # Each count walks an index; one query for all but the hidden sources would read every session.
        hidden = sum(self._count(wanted, source) for source in wanted.hidden_sources)
        return self._count(wanted, wanted.source) - hidden

    def search_messages(self, wanted: BrowseFilter) -> list[Hit]:
        """Return the conversations with messages that match the words, the best first, each once."""
        hits = self._store.search_messages(
            prefix_query(wanted.words),
            source_filter=None if wanted.source is None else [wanted.source],
            exclude_sources=wanted.hidden_sources,
            limit=MOST_HITS,
        )
        conversations = find_conversations(self._store, [hit["session_id"] for hit in hits])
        found: dict[str, Hit] = {}
        for hit in hits:
            conversation = conversations.get(hit["session_id"])  # None: deleted a moment ago
            if conversation is not None and (conversation.is_archived or not wanted.archived_only):
                found.setdefault(conversation.root_id, Hit(conversation, hit["snippet"]))
        return list(found.values())

    def recap(self, conversation: ListedConversation) -> Recap:
        """Return the last exchanges of a conversation."""
        messages = self._store.get_messages(conversation.id, before_id=LAST_ID, limit=MESSAGES_FOR_RECAP)
        recap = build_recap(messages, self._config.display)
        return replace(recap, earlier=recap.earlier + max(0, conversation.message_count - len(messages)))

    def rename(self, conversation: ListedConversation, title: str) -> ListedConversation:
        """Set the title of a conversation, or remove it."""
        with self._open_for_change() as store:
            _require_session(store.set_session_title(conversation.id, title), conversation)
            return replace(conversation, title=store.get_session_title(conversation.id))

    def archive(self, conversation: ListedConversation) -> ListedConversation:
        """Archive a conversation, or take it out of the archive."""
        with self._open_for_change() as store:
            is_archived = not conversation.is_archived
            _require_session(store.set_session_archived(conversation.id, is_archived), conversation)
            return replace(conversation, is_archived=is_archived)

    def pin(self, conversation: ListedConversation) -> ListedConversation:
        """Pin a conversation, so that it is never pruned, or unpin it."""
        with self._open_for_change() as store:
            is_pinned = not conversation.is_pinned
            _require_session(store.set_session_pinned(conversation.id, is_pinned), conversation)
            return replace(conversation, is_pinned=is_pinned)

    def preview_deletion(self, conversation: ListedConversation) -> DeletionPreview:
        """Return what deleting a conversation would delete: all sessions of its chain."""
        session_ids = tuple(conversation_session_ids(self._store, conversation))
        return DeletionPreview(session_ids, sum(self._store.message_count(each) for each in session_ids))

    def delete(self, deletion: DeletionPreview) -> Receipt:
        """Delete a conversation."""
        with self._open_for_change() as store:
            return store.delete_with_receipt(
                deletion.session_ids, sessions_dir(), secure=self._config.sessions.secure_delete
            )

    @contextmanager
    def _open_for_change(self) -> Iterator[SessionDBProvider]:
        """Open the store for a change; reading alone leaves an old file as it is."""
        with open_for_change(self._config) as store:
            if store is None:
                raise UnknownSession(no_sessions_message(database_file(self._config)), hint="")
            yield store

    def _count(self, wanted: BrowseFilter, source: str | None) -> int:
        return self._store.session_count(
            source=source, exclude_children=True, archived_only=wanted.archived_only, include_archived=False
        )


def prefix_query(words: str) -> str:
    """Return the query for words of which the last one may be incomplete."""
    is_word = words[-1:].isalnum() and words.count('"') % 2 == 0
    return f"{words}*" if is_word and words.split()[-1] not in OPERATORS else words


def _require_session(was_there: bool, conversation: ListedConversation) -> None:
    if not was_there:
        raise UnknownSession(f"session {conversation.id!r} has just been deleted")
