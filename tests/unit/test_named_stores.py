"""The store at a path or DSN."""

from __future__ import annotations

import pytest

from hermes.config import Config
from hermes.errors import InvalidValue
from hermes.state.transfer.store_address import config_for


@pytest.mark.parametrize("scheme", ["postgresql", "postgres", "mysql", "mariadb", "PostgreSQL"])
@pytest.mark.parametrize("slashes", ["", "/"])
def test_a_dsn_that_lacks_a_slash_is_no_file_and_is_not_quoted(scheme: str, slashes: str) -> None:
    with pytest.raises(InvalidValue) as caught:
        config_for(f"{scheme}:{slashes}hermes:s3cret@host/hermes", Config())
    assert "s3cret" not in str(caught.value)


def test_a_file_may_have_a_colon_in_its_name() -> None:
    assert config_for("./mysql:notes.db", Config()).sessiondb.provider == "sqlite"
