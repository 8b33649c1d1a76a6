"""Pairing: an unknown user gets a code, and the operator who receives it from the user lets them in."""

from __future__ import annotations

import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from typing import Any, Final, TypeVar

from hermes.errors import NotFound
from hermes.gateway.people.access import Person
from hermes.state.maintenance.meta import change_meta
from hermes.state.provider import SessionDBProvider

T = TypeVar("T")

META_KEY: Final = "gateway-pairing"
ALPHABET: Final = "ABCDEFGHJKLMNPQRSTUVWXYZ23456789"
"""Without letters and digits that look alike."""
CODE_CHARACTERS: Final = 8
VALID_S: Final = 3600.0
USER_WAIT_S: Final = 600.0
"""One user gets a new code at most this often."""
MOST_PER_HOUR: Final = 20
"""How many codes all unknown users together get in an hour."""
_HOUR_S = 3600.0
_NAME_CHARACTERS = 80


@dataclass(frozen=True, slots=True)
class PairingRequest:
    """An unknown user who has got a code; the code itself is not stored."""

    platform: str
    user: str
    name: str
    asked_at: float
    salt: str
    digest: str

    def is_valid(self, now: float) -> bool:
        """Whether the code can still be used."""
        return self.asked_at <= now < self.asked_at + VALID_S


@dataclass(frozen=True, slots=True)
class PairedUser:
    """A user whom the operator has let in."""

    platform: str
    user: str
    name: str
    approved_at: float


@dataclass(slots=True)
class Pairings:
    """All requests that are valid, and all users who were let in."""

    requests: list[PairingRequest] = field(default_factory=list)
    users: list[PairedUser] = field(default_factory=list)

    @classmethod
    def from_text(cls, text: str | None) -> Pairings:
        """Return what was stored; nothing that cannot be read lets a user in."""
        try:
            data = json.loads(text or "{}")
            requests = [PairingRequest(**each) for each in data.get("requests", [])]
            return cls(requests, [PairedUser(**each) for each in data.get("users", [])])
        except (ValueError, TypeError, AttributeError):
            return cls()

    def to_text(self) -> str:
        """Return the text to store."""
        data: dict[str, Any] = {"requests": [asdict(each) for each in self.requests]}
        return json.dumps({**data, "users": [asdict(each) for each in self.users]})

    def copy(self) -> Pairings:
        """Return a copy that can be changed."""
        return Pairings(list(self.requests), list(self.users))

    def people(self) -> frozenset[Person]:
        """Return the users who were let in."""
        return frozenset((each.platform, each.user) for each in self.users)

    def ask(self, person: Person, name: str, code: str, salt: str, now: float) -> bool:
        """Note a code for a user; return False if this user, or all together, have had enough of them."""
        self.requests = [each for each in self.requests if each.is_valid(now)]
        own = [each for each in self.requests if (each.platform, each.user) == person]
        if any(now < each.asked_at + USER_WAIT_S for each in own):
            return False
        if sum(now < each.asked_at + _HOUR_S for each in self.requests) >= MOST_PER_HOUR:
            return False
        platform, user = person
        request = PairingRequest(platform, user, name[:_NAME_CHARACTERS], now, salt, _digest(code, salt))
        # Older codes of the user stay in the list, unusable, because they count for the limit of all.
        self.requests = [_spent(each) if each in own else each for each in self.requests] + [request]
        return True

    def approve(self, code: str, now: float) -> PairedUser | None:
        """Let the user of a code in, once; None if the code is unknown, used or too old."""
        given = "".join(code.split()).replace("-", "").upper()
        found = None
        for each in self.requests:
            if each.is_valid(now) and each.digest and hmac.compare_digest(each.digest, _digest(given, each.salt)):
                found = each
        if found is None:
            return None
        self.requests = [_spent(each) if each == found else each for each in self.requests]
        user = PairedUser(found.platform, found.user, found.name, now)
        others = [each for each in self.users if (each.platform, each.user) != (found.platform, found.user)]
        self.users = [*others, user]
        return user

    def revoke(self, person: Person) -> bool:
        """Let a user in no more, and make their codes unusable; False if nothing was known about them."""
        count = len(self.users) + sum(bool(each.digest) for each in self.requests)
        self.users = [each for each in self.users if (each.platform, each.user) != person]
        self.requests = [_spent(each) if (each.platform, each.user) == person else each for each in self.requests]
        return len(self.users) + sum(bool(each.digest) for each in self.requests) != count


def make_code() -> str:
    """Return a new random code."""
    return "".join(secrets.choice(ALPHABET) for _ in range(CODE_CHARACTERS))


def read_pairings(store: SessionDBProvider) -> Pairings:
    """Return the stored pairings; this blocks."""
    return Pairings.from_text(store.get_meta(META_KEY))


def ask_for_code(store: SessionDBProvider, person: Person, name: str, now: float) -> str | None:
    """Store a request and return its code; None if the user has to wait. This blocks."""
    code, salt = make_code(), secrets.token_hex(16)
    return code if _change(store, lambda known: known.ask(person, name, code, salt, now)) else None


def approve_code(store: SessionDBProvider, code: str, now: float) -> PairedUser:
    """Let the user of a code in; raise `NotFound` if it cannot be used. This blocks."""
    user = _change(store, lambda known: known.approve(code, now))
    if user is None:
        raise NotFound("the code is unknown, was used, or is older than an hour", hint="ask the user for a new code")
    return user


def revoke_user(store: SessionDBProvider, person: Person) -> None:
    """Let a user in no more; raise `NotFound` for one who was not paired. This blocks."""
    if not _change(store, lambda known: known.revoke(person)):
        raise NotFound(f"the user {':'.join(person)} is not paired", hint="see `hermes gateway pairing list`")


def _change(store: SessionDBProvider, act: Callable[[Pairings], T]) -> T:
    def change(text: str | None) -> tuple[str, T]:
        known = Pairings.from_text(text)
        result = act(known)
        return known.to_text(), result

    return change_meta(store, META_KEY, change)


def _digest(code: str, salt: str) -> str:
    return hashlib.sha256(f"{salt}:{code}".encode()).hexdigest()


def _spent(request: PairingRequest) -> PairingRequest:
    return PairingRequest(request.platform, request.user, request.name, request.asked_at, request.salt, "")
