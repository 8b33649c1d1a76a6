"""A view of the store for one asker, limited to the asker's own sessions."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hermes.errors import InvalidValue
from hermes.state.engine import Engine
from hermes.state.import_export.export import Export
from hermes.state.messages.appending import Messages
from hermes.state.messages.rewind import Rewinds
from hermes.state.messages.session_creation import SessionCreation
from hermes.state.messages.windows import Windows
from hermes.state.owner import EVERYBODY, TERMINAL, Asker, Everybody, Owner
from hermes.state.search.operation import Search
from hermes.state.sessions.compression_lock import CompressionLocks
from hermes.state.sessions.lineage.links import Lineage
from hermes.state.sessions.lists.listing import Listing
from hermes.state.sessions.records import Sessions
from hermes.state.sessions.titles import Titles
from hermes.state.usage.counters import Usage

if TYPE_CHECKING:
    from hermes.query.parse import Query
    from hermes.state.lanes.types import Lease
    from hermes.state.provider import SessionDBProvider
    from hermes.state.search.finder import SearchOptions
    from hermes.state.search.results import SearchResults
    from hermes.state.search.scope import Scope


class OwnerView(
    Sessions,
    Messages,
    SessionCreation,
    Rewinds,
    Windows,
    Titles,
    Lineage,
    Listing,
    Search,
    Usage,
    Export,
    CompressionLocks,
):
    """The operations of a store for one asker; made by `SessionDBProvider.for_owner`.

    The sessions of others do not exist here: reading, changing or continuing one fails as for an unknown id. A new
    session belongs to the asker. A view has no deletion, pruning, import, handoff or upkeep, and no reference to the
    store.
    """

    def __init__(self, store: SessionDBProvider, asker: Asker) -> None:
        if not isinstance(asker, Owner | Everybody):
            raise InvalidValue(
                f"a view needs an owner or EVERYBODY, not {type(asker).__name__}",
                hint="owner_of(source, user_id) makes an owner",
            )
        self._engine = store._engine
        self._clock = store._clock
        self._search = store._find
        self._asker = asker

    @property
    def asker(self) -> Asker:
        """The asker whose sessions this view shows."""
        return self._asker

    @property
    def owner(self) -> Owner:
        """The owner of sessions that are created here, and of their notes and permissions."""
        return TERMINAL if isinstance(self._asker, Everybody) else self._asker

    def narrowed_to(self, asker: Asker) -> OwnerView:
        """Return this view for an asker who sees no more, such as the owner of one conversation."""
        if not isinstance(asker, Owner | Everybody) or (self._asker is not EVERYBODY and asker != self._asker):
            raise InvalidValue("this view cannot read the sessions of another owner")
        return self._copy(self._engine, asker)

    def fenced(self, lease: Lease) -> OwnerView:
        """Return this view for a node that has leased a lane: after another node has the lane, every write raises.

        The error is `StaleLease`, and nothing is stored: each transaction checks the lease. Reads need no lease. A
        message that cannot be stored because the store is damaged is not spooled.
        """
        from hermes.state.fencing import FencedEngine

        return self._copy(FencedEngine(self._engine, lease), self._asker)

    def __repr__(self) -> str:
        return f"<view of the sessions of {self._asker!r}>"

    def _copy(self, engine: Engine, asker: Asker) -> OwnerView:
        view = object.__new__(OwnerView)
        view._engine, view._clock, view._search, view._asker = engine, self._clock, self._search, asker
        return view

    def _find(self, query: Query, scope: Scope, options: SearchOptions) -> SearchResults:
        return self._search(query, scope, options)
