"""`hermes sessions tree`."""

from __future__ import annotations

import pytest

from hermes_state import SessionDB
from tests.cli.conftest import Hermes


@pytest.fixture
def grove(hermes: Hermes) -> Hermes:
    """Two families and a session without relatives."""
    hermes.store(
        ("auth", "cli", "refactoring auth", "x"), ("trip", "telegram", "京都", "x"), ("alone", "cli", None, "x")
    )
    with SessionDB(hermes.database) as db:
        db.create_session("trip-2", "telegram", parent_session_id="trip", child_kind="branch")
        db.create_session("auth-2", "cli", parent_session_id="auth", child_kind="compression")
        db.append_message("auth-2", "user", "a summary")
        db.create_session("auth-3", "cli", parent_session_id="auth-2", child_kind="branch")
        db.create_session("helper", "subagent", parent_session_id="auth-3", child_kind="delegate")
        db.set_session_archived("auth-3", True)
    return hermes


AUTH = [
    "refactoring auth  auth  1 message, 30m ago",
    "└─ compression: a summary  auth-2  1 message, just now",
    "   └─ branch: (no messages)  auth-3  0 messages, just now, archived",
]
TRIP = ["京都  trip  1 message, 1h ago", "└─ branch: (no messages)  trip-2  0 messages, just now"]


def test_families_are_trees_the_most_recently_active_first(grove: Hermes) -> None:
    done = grove("sessions", "tree")
    assert done.stdout.splitlines() == [*AUTH, *TRIP]
    assert (done.returncode, done.stderr) == (0, "2 of 2 families\n")


@pytest.mark.parametrize("name", ["auth", "refactoring auth", "auth-3"])
def test_any_member_selects_its_family(grove: Hermes, name: str) -> None:
    done = grove("sessions", "tree", name)
    assert (done.stdout.splitlines(), done.stderr) == (AUTH, "")


def test_agent_sessions_are_shown_with_all(grove: Hermes) -> None:
    lines = grove("sessions", "tree", "auth", "--all").stdout.splitlines()
    assert lines == [*AUTH, "      └─ delegate: (no messages)  helper  0 messages, just now"]
    assert "helper" in grove("sessions", "tree", "-a").stdout
    assert "helper" in grove("sessions", "tree", "helper").stdout


def test_tree_pages_follow_each_other(grove: Hermes) -> None:
    first = grove("sessions", "tree", "--limit", "1")
    assert first.stdout.splitlines() == AUTH
    assert first.stderr == "1 of 2 families (--limit for more, or --after auth)\n"
    second = grove("sessions", "tree", "--limit", "1", "--after", "auth")
    assert second.stdout.splitlines() == TRIP
    assert grove("sessions", "tree", "--after", "nowhere").returncode == 3


def test_tree_prints_json(grove: Hermes) -> None:
    answer = grove.json("sessions", "tree", "--limit", "1")
    assert (answer["schema"], answer["total"], answer["next"]) == ("hermes.tree/1", 2, "auth")
    (family,) = answer["items"]
    assert family["id"] == "auth"
    assert [(each["id"], each["parent_session_id"], each["child_kind"]) for each in family["sessions"]] == [
        ("auth", None, None),
        ("auth-2", "auth", "compression"),
        ("auth-3", "auth-2", "branch"),
    ]
    assert family["sessions"][2]["archived"] is True
    assert grove.json("sessions", "tree", "--after", "auth")["next"] is None


def test_tree_fits_a_narrow_terminal(grove: Hermes) -> None:
    lines = grove("sessions", "tree", COLUMNS="30").stdout.splitlines()
    assert max(map(len, lines)) <= 30
    assert lines[1].endswith("…")


def test_a_chain_of_a_thousand_is_drawn(hermes: Hermes) -> None:
    with SessionDB(hermes.database) as db:
        db.create_session("s0", "cli")
        for number in range(1, 1_200):
            db.create_session(f"s{number}", "cli", parent_session_id=f"s{number - 1}", child_kind="branch")
    for command in (("tree",), ("lineage", "s5")):
        done = hermes("sessions", *command)
        assert (done.returncode, len(done.stdout.splitlines())) == (0, 1_200)
    assert len(hermes.json("sessions", "tree")["items"][0]["sessions"]) == 1_200


def test_missing_families_are_reported(hermes: Hermes) -> None:
    assert "No sessions yet" in hermes("sessions", "tree").stderr
    assert not hermes.home.exists()
    hermes.store(("a", "cli", None, "x"))
    done = hermes("sessions", "tree")
    assert (done.returncode, done.stdout) == (0, "")
    assert "No related sessions" in done.stderr


def test_tree_of_an_unknown_session_is_not_found(grove: Hermes) -> None:
    assert grove("sessions", "tree", "nowhere").returncode == 3
