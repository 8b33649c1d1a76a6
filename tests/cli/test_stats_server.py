"""`hermes sessions stats` and other reading commands with a store on a server."""

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


def test_stats_show_the_size_of_a_server(served: Hermes) -> None:
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
        "  sessions and other data",
    ]
    assert "unused" not in "\n".join(lines)
    assert any(line.startswith("Database: ") for line in lines)


def test_stats_of_a_server_mention_no_file(served: Hermes) -> None:
    done = served("sessions", "stats")
    assert "state.db" not in done.stdout
    assert "Database size: 0.0 MB" not in done.stdout
    assert not served.database.exists()


@pytest.mark.parametrize("option", ["--vacuum", "--no-vacuum"])
def test_optimize_shows_the_size_of_a_server(served: Hermes, option: str) -> None:
    item = served.json("sessions", "optimize", option)["item"]
    assert item["vacuumed"] is (option == "--vacuum")
    assert item["bytes_before"] > 0
    assert item["bytes_after"] == served.json("sessions", "stats")["item"]["size_bytes"]
    assert not served.database.exists()


def test_tree_and_completion_read_from_a_server(served: Hermes) -> None:
    assert served("sessions", "tree").stdout.splitlines()[0].startswith("a title  a  1 message")
    assert served("-r", "a t", _HERMES_COMPLETE="zsh").stdout.splitlines() == ["words", "a title\ta"]


def test_completion_does_not_wait_for_a_silent_server(hermes: Hermes) -> None:
    hermes.home.mkdir()
    with socket.create_server(("127.0.0.1", 0)) as silent:
        dsn = f"postgresql://user@127.0.0.1:{silent.getsockname()[1]}/none?connect_timeout=0"
        (hermes.home / "config.yaml").write_text(f"sessiondb: {{provider: postgresql, dsn: '{dsn}'}}\n")
        done = hermes("-r", "", _HERMES_COMPLETE="zsh")
    assert (done.returncode, done.stdout, done.stderr) == (1, "", "")
