"""Who calls the API: each bearer key belongs to one principal, whose sessions no other principal sees."""

from __future__ import annotations

import hashlib
import hmac
import re
import secrets
from collections.abc import Mapping

from hermes.errors import ConfigError
from hermes.platforms.http.errors import ApiError
from hermes.state.owner import Owner, owner_of

PLATFORM = "api_server"
MIN_KEY_CHARACTERS = 16
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}")


class Principals:
    """The keys of the API; only their hashes are kept."""

    def __init__(self, keys: Mapping[str, str]) -> None:
        """Hash the keys by name; raise `ConfigError` for a name or a key that cannot be used."""
        self._salt = secrets.token_bytes(32)
        self._hashes: dict[str, bytes] = {}
        for name, key in keys.items():
            if not _NAME.fullmatch(name):
                raise ConfigError(
                    f"{name!r} cannot be a name in api_server.keys", hint="use letters, digits, dots, dashes"
                )
            if len(key) < MIN_KEY_CHARACTERS:
                raise ConfigError(
                    f"the key {name} of api_server.keys is too short",
                    hint=f"use at least {MIN_KEY_CHARACTERS} characters, such as those of `openssl rand -hex 24`",
                )
            self._hashes[name] = self._hash(key)
        if len(set(self._hashes.values())) != len(self._hashes):
            raise ConfigError("two names in api_server.keys have the same key", hint="give each its own key")

    def __len__(self) -> int:
        return len(self._hashes)

    def require(self, authorization: str) -> str:
        """Return the name of the principal of a header; raise `ApiError` if no key is right."""
        kind, _, key = authorization.partition(" ")
        given, found = self._hash(key.strip()), None
        for name, known in self._hashes.items():  # all of them, so that the time says nothing
            if hmac.compare_digest(given, known):
                found = name
        if kind.lower() != "bearer" or found is None:
            raise ApiError(401, "invalid_api_key", "the API key is missing or wrong", {"WWW-Authenticate": "Bearer"})
        return found

    def _hash(self, key: str) -> bytes:
        return hashlib.blake2b(key.encode("utf-8", "surrogateescape"), key=self._salt).digest()


def owner_of_principal(name: str) -> Owner:
    """Return the owner of a principal's sessions."""
    return owner_of(PLATFORM, name)
