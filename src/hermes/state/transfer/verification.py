"""Compare two stores: a hash for each session, and details for those that differ."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from hermes.state.engine import Report
from hermes.state.transfer.origin import StoreReader, pages_of
from hermes.state.transfer.session_bundle import SessionBundle, parents_first


@dataclass(frozen=True, slots=True)
class Difference:
    """A session that differs between two stores."""

    session_id: str
    what: str
    """A description for people."""
    is_ahead: bool
    """Whether the target has everything and more, because it is already in use."""


def verify(origin: StoreReader, target: StoreReader, report: Report | None = None) -> Iterator[Difference]:
    """Yield the sessions of the source that differ in the target."""
    ids = parents_first(origin.families())
    done = 0
    for page in pages_of(ids):
        bundles = origin.bundles(page)
        here = {each.id: each for each in target.bundles(page)}
        titled = [here[each.id].with_title_of(each) for each in bundles if each.id in here]
        hashes, wanted = target.digests(titled), origin.digests(bundles)
        for each in bundles:
            if hashes.get(each.id) != wanted[each.id]:
                yield _difference(origin, target, each, here.get(each.id))
        done += len(page)
        if report is not None:
            report("comparing", done, len(ids))


def _difference(
    origin: StoreReader, target: StoreReader, wanted: SessionBundle, here: SessionBundle | None
) -> Difference:
    if here is None:
        return Difference(wanted.id, "is missing", is_ahead=False)
    theirs, ours = _message_hashes(origin, wanted.id), _message_hashes(target, wanted.id)
    more = len(ours.keys() - theirs.keys())
    parts = [
        ("lacks {}", len(theirs.keys() - ours.keys())),
        ("differs in {}", sum(ours[uid] != digest for uid, digest in theirs.items() if uid in ours)),
        ("has {} more", more),
    ]
    found = [text.format(f"{count:,} message{'s' * (count > 1)}") for text, count in parts if count]
    is_ahead = more > 0 and len(found) == 1
    return Difference(wanted.id, ", ".join(found) or f"differs in {_columns(wanted, here)}", is_ahead)


def _columns(wanted: SessionBundle, here: SessionBundle) -> str:
    names = [name for name, value in wanted.row.items() if here.row[name] != value]
    names += [
        name
        for name, is_same in (
            ("usage", list(wanted.usage) == list(here.usage)),
            ("rewinds", wanted.rewinds_by_uid == here.rewinds_by_uid),
            ("tools", list(wanted.tools) == list(here.tools)),
        )
        if not is_same
    ]
    return ", ".join(names) or "the order of its messages"


def _message_hashes(store: StoreReader, session_id: str) -> dict[str, bytes]:
    """Return a hash of each message of a session."""
    return {
        each.uid: sha256(repr(each.without_id).encode(errors="surrogatepass")).digest()
        for page in store.messages_of(session_id)
        for each in page
    }
