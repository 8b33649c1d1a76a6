"""A password with unescaped characters is refused and never quoted."""

from __future__ import annotations

import pytest

from hermes.errors import ConfigError
from hermes.state.mysql.connection.address import Address as MySQLAddress
from hermes.state.postgres.connection.address import Address as PostgresAddress

HEAD, TAIL = "hunter2", "s3cret"


def refusal(dsn: str) -> ConfigError:
    """Return the error for a DSN."""
    with pytest.raises(ConfigError) as caught:
        MySQLAddress.of(dsn) if dsn.startswith("mysql") else PostgresAddress.of(dsn, 1.0)
    return caught.value


@pytest.mark.parametrize("scheme", ["postgresql", "mysql"])
@pytest.mark.parametrize("head", [HEAD, "12", ""])
@pytest.mark.parametrize("character", ["@", "/", "%zz", "@/", "/@", "//", "@?", "%"])
def test_a_password_that_is_not_escaped_is_refused_and_not_quoted(scheme: str, head: str, character: str) -> None:
    caught = refusal(f"{scheme}://hermes:{head}{character}{TAIL}@db.internal/hermes")
    assert HEAD not in str(caught)
    assert TAIL not in str(caught)
    assert "%40" in caught.hint


@pytest.mark.parametrize("head", [HEAD, "12"])
@pytest.mark.parametrize("character", ["#", "?", "\t", "\n", "[", "]"])
def test_a_password_that_no_mysql_url_can_have_is_refused_and_not_quoted(head: str, character: str) -> None:
    caught = refusal(f"mysql://hermes:{head}{character}{TAIL}@db.internal/hermes")
    assert HEAD not in str(caught)
    assert TAIL not in str(caught)


@pytest.mark.parametrize("character", ["#", "?", ":", "%40"])
def test_a_password_that_libpq_understands_is_not_shown(character: str) -> None:
    address = PostgresAddress.of(f"postgresql://hermes:{HEAD}{character}{TAIL}@db.internal/hermes", 1.0)
    assert address.display == "postgresql://hermes@db.internal/hermes"


@pytest.mark.parametrize(
    "dsn",
    [
        f"host=hermes:{HEAD}@db.internal dbname=hermes",
        f"dbname=postgresql://hermes:{HEAD}@db.internal/hermes",
        f"host=db.internal port={HEAD}",
        f"postgresql://db.internal:99999/{TAIL}",
    ],
)
def test_misplaced_parts_of_a_dsn_are_refused_and_not_quoted(dsn: str) -> None:
    caught = refusal(dsn)
    assert HEAD not in str(caught)
    assert TAIL not in str(caught)


@pytest.mark.parametrize(
    ("dsn", "shown"),
    [
        ("postgresql://a%40b:p%2Fw@db:5432/hermes", "postgresql://a@b@db:5432/hermes"),
        ("postgresql://db.internal:5432/hermes?user=ada@server", "postgresql://ada@server@db.internal:5432/hermes"),
        ("postgresql://u@db1:5432,db2:5433/hermes", "postgresql://u@db1,db2:5432,5433/hermes"),
        ("postgresql:///hermes?host=@abstract", "postgresql://@abstract/hermes"),
        ("postgresql://u@h?dbname=hermes&application_name=a@b", "postgresql://u@h/hermes"),
        ("postgresql:///hermes?host=/tmp/a@b", "postgresql:///tmp/a@b/hermes"),
        ("host=db1,db2 port=5432, user=u", "postgresql://u@db1,db2:5432,/"),
    ],
)
def test_an_address_that_libpq_knows_is_accepted(dsn: str, shown: str) -> None:
    assert PostgresAddress.of(dsn, 1.0).display == shown
