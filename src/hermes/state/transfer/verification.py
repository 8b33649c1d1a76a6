"""Whether two stores hold the same: counts and a hash for each session, and for those that differ what it is."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from hashlib import sha256

from hermes.state.engine import Report
from hermes.state.transfer.cargo import Cargo, parents_first
from hermes.state.transfer.reading import Origin, pages_of


@dataclass(frozen=True, slots=True)
class Difference:
    """A session that is not the same in both stores."""

    session_id: str
    what: str
    """For a person."""
    is_ahead: bool
    """Whether the target has all of it and more, as it does when it has been used since."""


def verify(origin: Origin, target: Origin, report: Report | None = None) -> Iterator[Difference]:
    """The sessions of the origin that are not the same in the target."""
    ids = parents_first(origin.families())
    done = 0
    for page in pages_of(ids):
        cargos = origin.cargo(page)
        here = {each.id: each for each in target.cargo(page)}
        titled = [here[each.id].titled_like(each) for each in cargos if each.id in here]
        hashes, wanted = target.digests(titled), origin.digests(cargos)
        for each in cargos:
            if hashes.get(each.id) != wanted[each.id]:
                yield _difference(origin, target, each, here.get(each.id))
        done += len(page)
        if report is not None:
            report("comparing", done, len(ids))


def _difference(origin: Origin, target: Origin, wanted: Cargo, here: Cargo | None) -> Difference:
    if here is None:
        return Difference(wanted.id, "is not there", is_ahead=False)
    theirs, ours = _said(origin, wanted.id), _said(target, wanted.id)
    more = len(ours.keys() - theirs.keys())
    parts = [
        ("lacks {}", len(theirs.keys() - ours.keys())),
        ("says otherwise in {}", sum(ours[uid] != said for uid, said in theirs.items() if uid in ours)),
        ("has {} more", more),
    ]
    told = [text.format(f"{count:,} message{'s' * (count > 1)}") for text, count in parts if count]
    is_ahead = more > 0 and len(told) == 1
    return Difference(wanted.id, ", ".join(told) or f"differs in {_columns(wanted, here)}", is_ahead)


def _columns(wanted: Cargo, here: Cargo) -> str:
    names = [name for name, value in wanted.row.items() if here.row[name] != value]
    names += [
        name
        for name, is_same in (
            ("usage", list(wanted.usage) == list(here.usage)),
            ("rewinds", wanted.trail == here.trail),
            ("tools", list(wanted.tools) == list(here.tools)),
        )
        if not is_same
    ]
    return ", ".join(names) or "the order of its messages"


def _said(store: Origin, session_id: str) -> dict[str, bytes]:
    """A hash of each message of a session."""
    return {
        each.uid: sha256(repr(each.said).encode(errors="surrogatepass")).digest()
        for page in store.messages_of(session_id)
        for each in page
    }
