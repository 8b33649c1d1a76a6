"""`hermes sessions stats`, and what else looks through a store, when it is on a server."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from hermes.config import load_config
from hermes.state.provider import open_session_db
from tests.cli.conftest import Hermes
from tests.support.schemas import empty_schema


@pytest.fixture
def served(hermes: Hermes, tmp_path: Path) -> Iterator[Hermes]:
    """A home whose sessions are on a PostgreSQL server."""
    with empty_schema(tmp_path) as dsn:
        hermes.home.mkdir()
        (hermes.home / "config.yaml").write_text(f"sessiondb: {{provider: postgresql, dsn: '{dsn}'}}\n")
        with open_session_db(load_config(hermes.home)) as store:
            store.create_session("a", "cli")
            store.append_message("a", "user", "hello there")
            store.set_session_title("a", "a title")
            store.create_session("b", "telegram", parent_session_id="a", child_kind="branch")
        yield hermes


def test_the_server_tells_how_large_it_is(served: Hermes) -> None:
    item = served.json("sessions", "stats", "--verbose")["item"]
    assert (item["sessions"], item["messages"], item["path"], item["wal_bytes"]) == (2, 1, None, 0)
    assert item["server"].startswith("PostgreSQL")
    assert item["size_bytes"] == sum(size for size in item["parts"].values() if size is not None) > 0
    assert item["parts"]["free_bytes"] is None
    lines = served("sessions", "stats", "--verbose").stdout.splitlines()
    assert [line.partition(":")[0] for line in lines if line.startswith("  ")] == [
        "  cli",
        "  telegram",
        "  messages",
        "  search index",
        "  other indexes",
        "  sessions and the rest",
    ]
    assert "unused" not in "\n".join(lines)
    assert any(line.startswith("Database: ") for line in lines)


def test_no_file_is_spoken_of_without_the_division_either(served: Hermes) -> None:
    done = served("sessions", "stats")
    assert "state.db" not in done.stdout
    assert "Database size: 0.0 MB" not in done.stdout
    assert not served.database.exists()


@pytest.mark.parametrize("option", ["--vacuum", "--no-vacuum"])
def test_optimizing_tells_how_large_the_server_says_it_is(served: Hermes, option: str) -> None:
    item = served.json("sessions", "optimize", option)["item"]
    assert item["vacuumed"] is (option == "--vacuum")
    assert item["bytes_before"] > 0
    assert item["bytes_after"] == served.json("sessions", "stats")["item"]["size_bytes"]
    assert not served.database.exists()


def test_the_tree_and_completion_look_there_too(served: Hermes) -> None:
    assert served("sessions", "tree").stdout.splitlines()[0].startswith("a title  a  1 message")
    assert served("-r", "a t", _HERMES_COMPLETE="zsh").stdout.splitlines() == ["words", "a title\ta"]


def test_completion_waits_for_no_silent_server(hermes: Hermes) -> None:
    hermes.home.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dsn = f"postgresql://nobody@127.0.0.1:{silent.getsockname()[1]}/none?connect_timeout=0"
        (hermes.home / "config.yaml").write_text(f"sessiondb: {{provider: postgresql, dsn: '{dsn}'}}\n")
        done = hermes("-r", "", _HERMES_COMPLETE="zsh")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
