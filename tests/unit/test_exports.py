"""The names that the documented modules export."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hermes_constants
import hermes_state
from hermes import errors
from hermes.state import row_types

NOT_FOR_A_STORE = {
    *(
        "ast",
        "asyncio",
        "base64",
        "click",
        "dataclasses",
        "datetime",
        "decimal",
        "importlib.metadata",
        "inspect",
    ),
    *(
        "locale",
        "logging",
        "msgspec",
        "random",
        "shutil",
        "Stemmer",
        "socket",
        "subprocess",
        "tempfile",
        "yaml",
    ),
    *("hermes.config", "hermes.query", "hermes.secrets", "hermes.state.asynchronous", "hermes.state.recall"),
    *("hermes.state.import_export.trust", "hermes.state.row_types", "hermes.state.sqlite.schema.upgrade"),
}
"""Modules that are slow to import, and that no program needs before it uses what they are for."""

PROMISED = [
    "AsyncSessionDB",
    "DEFAULT_DB_PATH",
    "EVERYBODY",
    "Owner",
    "Receipt",
    "Row",
    "SCHEMA_VERSION",
    "SearchResults",
    "SessionDB",
    "SessionDBProvider",
    "new_session_id",
    "open_session_db",
    "owner_of",
]


@pytest.mark.parametrize("name", [*PROMISED, *errors.__all__])
def test_promised_name_is_exported(name: str) -> None:
    assert name in hermes_state.__all__


@pytest.mark.parametrize("module", [hermes_state, hermes_constants], ids=["hermes_state", "hermes_constants"])
def test_every_exported_name_is_there(module: object) -> None:
    assert [name for name in module.__all__ if not hasattr(module, name)] == []  # type: ignore[attr-defined]


def test_every_type_of_a_row_is_exported() -> None:
    own = [name for name, each in vars(row_types).items() if getattr(each, "__module__", "") == row_types.__name__]
    assert [name for name in own if name not in hermes_state.__all__] == []


def test_an_unknown_name_is_not_exported() -> None:
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = hermes_state.no_such_name  # type: ignore[attr-defined]


def test_import_of_the_store_loads_no_rarely_needed_modules() -> None:
    program = f"import sys, hermes_state; print(sorted({NOT_FOR_A_STORE!r} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
