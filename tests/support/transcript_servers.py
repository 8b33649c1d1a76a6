"""States of a PostgreSQL database in which transcripts are made."""

from __future__ import annotations

from contextlib import suppress

import psycopg

from hermes.config import load_config
from hermes.state.provider import open_session_db
from hermes.state.transfer.migration import Migration
from hermes_state import SessionDB
from tests.support.servers import dsn_of
from tests.support.transcript_home import HOUR, MINUTE, NOW, Home, keep


def postgresql(home: Home) -> None:
    """A database of PostgreSQL without a store is configured, and there is a file with twelve sessions."""
    _use_server(home)
    for number in range(12):
        turns = [("user" if each % 2 else "assistant", f"message {each} of {number}") for each in range(40)]
        keep(home, f"202611{number + 1:02}_090000_{number:x}a2b3c4d", "cli", None, HOUR * (20 - number), *turns)


def postgresql_docker(home: Home) -> None:
    """One conversation about docker is in the database."""
    _use_server(home)
    fails, raise_it = "The docker build fails with a timeout", "Raise the client timeout: DOCKER_CLIENT_TIMEOUT=300"
    with open_session_db(load_config(home.hermes)) as store:
        store.create_session("20261116_095900_3f2a91bc", "telegram", user_id="1", started_at=NOW - MINUTE)
        turns = [("user", fails), ("assistant", raise_it)]
        for role, text in turns:
            store.append_message("20261116_095900_3f2a91bc", role, text, timestamp=NOW - MINUTE / 2)


def postgresql_stemming(home: Home) -> None:
    """The database of `postgresql_docker`, with other forms of words."""
    postgresql_docker(home)
    home.configure((home.hermes / "config.yaml").read_text() + "  postgresql:\n    stemming: english\n")


def postgresql_in_use(home: Home) -> None:
    """The sessions of `postgresql` are in the database."""
    postgresql(home)
    home.run(10, "sessiondb", "migrate")


def postgresql_interrupted(home: Home) -> None:
    """A migration of the sessions of `postgresql` was interrupted before the first messages."""

    def stop(what: str, done: int, total: int) -> None:
        if what == "messages":
            raise KeyboardInterrupt

    postgresql(home)
    with SessionDB(home.database, read_only=True) as origin, open_session_db(load_config(home.hermes)) as target:
        migration = Migration(origin, target, stop)
        migration.begin(resume=False)
        with suppress(KeyboardInterrupt):
            migration.copy_all()


def postgresql_differs(home: Home) -> None:
    """After a migration, a message was changed in the database."""
    postgresql_in_use(home)
    with psycopg.connect(_dsn(home), autocommit=True) as connection:
        connection.execute("UPDATE messages SET content = 'something else' WHERE id = 41")


def postgresql_incomplete(home: Home) -> None:
    """Two messages of the database are missing from its search index."""
    postgresql_in_use(home)
    with psycopg.connect(_dsn(home), autocommit=True) as connection:
        connection.execute("DELETE FROM message_words WHERE message_id IN (11, 12)")


def _use_server(home: Home) -> None:
    """Create a database of PostgreSQL and configure it."""
    own = dsn_of("postgresql")
    name = f"transcript_{home.path.name}"
    with psycopg.connect(own, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name}".encode())
    home.resources.callback(_drop_database, own, name)
    dsn = own.replace("/postgres?", f"/{name}?")
    home.configure(f"sessiondb:\n  provider: postgresql\n  dsn: {dsn}\n")
    host = dsn.partition("?host=")[2]
    home.shown[f"postgresql://postgres@{host}/{name}"] = "postgresql://hermes@localhost/hermes"


def _dsn(home: Home) -> str:
    dsn = load_config(home.hermes).sessiondb.dsn
    assert dsn is not None
    return str(dsn)


def _drop_database(dsn: str, name: str) -> None:
    with psycopg.connect(dsn, autocommit=True) as connection:
        connection.execute(f"DROP DATABASE IF EXISTS {name} WITH (FORCE)".encode())
