"""Recall in the configured store and in other profiles."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes_state import SessionDB
from tests.support.conversations import contents, say, start
from tests.support.recall import error, found, recall

PLACES = {"default": "state.db", "work": "profiles/work/state.db"}


@pytest.fixture
def home(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """Create a home with a default profile and one for work, each with a session of its name."""
    monkeypatch.setenv("HERMES_HOME", str(tmp_path))
    for name, place in PLACES.items():
        (tmp_path / place).parent.mkdir(parents=True, exist_ok=True)
        with SessionDB(tmp_path / place) as store:
            start(store, name)
            say(store, name, f"lantern of {name}")
    return tmp_path


class TestConfiguredStore:
    def test_configured_store_is_opened_when_none_is_given(self, home: Path) -> None:
        assert found(recall(None)) == found(recall(None, query="lantern")) == ["default"]

    def test_configured_store_is_the_one_that_the_configuration_names(self, home: Path) -> None:
        (home / "config.yaml").write_text("sessiondb:\n  path: profiles/work/state.db\n")
        assert found(recall(None)) == ["work"]

    def test_configured_store_is_closed_again(self, home: Path) -> None:
        recall(None, query="lantern")
        before = os.listdir("/dev/fd")
        recall(None, query="lantern")
        recall(None, session_id="work")
        recall(None, profile="work")
        recall(None, session_id="missing")
        assert os.listdir("/dev/fd") == before

    def test_configured_store_is_only_read(self, home: Path) -> None:
        before = (home / "state.db").read_bytes()
        recall(None, query="lantern")
        assert (home / "state.db").read_bytes() == before

    def test_missing_configured_store_is_an_error_and_is_not_created(self, home: Path) -> None:
        (home / "state.db").unlink()
        assert error(recall(None)).startswith("Session database not available: there is no session database")
        assert not (home / "state.db").exists()


class TestProfile:
    @pytest.mark.parametrize("profile", ["work", " Work ", "default"])
    def test_profile_can_be_browsed_by_name(self, home: Path, profile: str) -> None:
        response = recall(None, profile=profile)
        assert found(response) == [response["profile"]] == [profile.strip().lower()]

    def test_profile_can_be_searched(self, home: Path) -> None:
        assert found(recall(None, profile="work", query="lantern")) == ["work"]

    def test_profile_has_no_current_session(self, home: Path) -> None:
        assert found(recall(None, profile="work", current_session_id="work")) == ["work"]

    @pytest.mark.parametrize("asked", [{"session_id": "work/work"}, {"session_id": "work/work", "profile": "work"}])
    def test_profile_can_prefix_a_session_id(self, home: Path, asked: dict[str, str]) -> None:
        response = recall(None, **asked)
        assert (response["session_id"], response["profile"]) == ("work", "work")

    def test_profile_can_be_scrolled(self, home: Path) -> None:
        (message,) = recall(None, session_id="work/work")["messages"]
        response = recall(None, session_id="work/work", around_message_id=message["id"])
        assert contents(response["messages"]) == ["lantern of work"]

    def test_profile_is_found_by_the_id_of_its_session(self, home: Path) -> None:
        response = recall(None, session_id="work")
        assert (response["profile"], contents(response["messages"])) == ("work", ["lantern of work"])

    def test_profile_is_found_while_another_one_is_in_use(self, home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("HERMES_HOME", str(home / "profiles" / "work"))
        assert found(recall(None)) == ["work"]
        assert recall(None, session_id="default")["profile"] == "default"

    def test_profile_uses_the_store_of_its_own_configuration(self, home: Path) -> None:
        (home / "profiles" / "work" / "config.yaml").write_text("sessiondb:\n  path: moved.db\n")
        (home / PLACES["work"]).rename(home / "profiles" / "work" / "moved.db")
        assert found(recall(None, profile="work")) == ["work"]

    def test_profile_is_not_searched_for_one_owner(self, home: Path) -> None:
        with SessionDB(home / PLACES["work"]) as store:
            start(store, "alices", owner="telegram:1")
        assert "there is no session 'alices'" in error(recall(None, session_id="alices", owner="telegram:1"))

    def test_missing_profile_is_named_in_the_error(self, home: Path) -> None:
        assert error(recall(None, profile="play")) == "there is no profile 'play' (profiles: default, work)"

    @pytest.mark.parametrize(
        "name", ["../work", "..", ".", "/", "a b", "work\0", "wörk", "~", "profiles/work", "\ud800"]
    )
    def test_profile_name_cannot_leave_the_profiles_directory(self, home: Path, name: str) -> None:
        assert "is not the name of a profile" in error(recall(None, profile=name))

    def test_unreadable_profile_is_named_in_the_error(self, home: Path) -> None:
        (home / PLACES["work"]).write_bytes(b"this is not a database, but it is long enough to look like one" * 20)
        assert "profile 'work' cannot be read" in error(recall(None, profile="work"))

    def test_unreadable_profile_is_named_when_a_session_is_missing(self, home: Path) -> None:
        (home / PLACES["work"]).unlink()
        response = error(recall(None, session_id="missing"))
        assert response.startswith("there is no session 'missing'")
        assert "profile 'work' cannot be read" in response
