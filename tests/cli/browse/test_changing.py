"""Renaming, archiving, pinning and deleting on the screen."""

from __future__ import annotations

from threading import Event

import pytest
from textual.widgets import Button, Input

from hermes.cli.browse.dialogs import DeleteDialog, HelpDialog
from hermes.cli.browse.queries import Hit, SessionQueries
from hermes.state.sessions.lists.browsing import BrowseFilter
from hermes_state import SessionDB
from tests.cli.browse.conftest import AUTH, LETTER, PLAIN, TRIP
from tests.cli.browse.driving import LIMIT_S, Screen, drive
from tests.cli.chat.stored import sessions
from tests.cli.conftest import Hermes

ALL = ("refactoring auth", "京都旅行の計画 🎉", "a letter", "What is the weather?")


def title_of(hermes: Hermes, session_id: str) -> str | None:
    with SessionDB(hermes.database, read_only=True) as db:
        return db.get_session_title(session_id)


class TestRename:
    @pytest.mark.parametrize("key", ["f2", "r"])
    def test_rename_sets_a_title(self, stored: Hermes, key: str) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("tab", "end", key)
            await screen.type("the weather 天気", into="#title")
            await screen.press("enter")
            await screen.until(lambda: "the weather 天気" in screen.names, "the title")
            assert screen.sessions.has_focus

        browser = drive(stored, scenario)
        assert title_of(stored, PLAIN) == "the weather 天気"
        assert browser.changes == [f"{PLAIN}  the weather 天気"]

    def test_search_that_ends_later_does_not_hide_what_was_changed(
        self, stored: Hermes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        gate, search = Event(), SessionQueries.search_messages

        def search_later(queries: SessionQueries, wanted: BrowseFilter) -> list[Hit]:
            assert gate.wait(LIMIT_S)
            return search(queries, wanted)

        monkeypatch.setattr(SessionQueries, "search_messages", search_later)

        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("module")
            await screen.until_names("refactoring auth")
            await screen.press("tab", "p")
            await screen.until_status(f"{AUTH} is pinned.")
            gate.set()
            await screen.until(lambda: screen.browser._found is not None, "the hits")
            assert screen.status == f"{AUTH} is pinned."

        drive(stored, scenario)

    def test_rename_starts_with_the_current_title_and_can_remove_it(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f2")
            assert screen.browser.query_one("#title", Input).value == "refactoring auth"
            await screen.press("ctrl+u", "enter")
            await screen.until_status("has no title now")

        drive(stored, scenario)
        assert title_of(stored, AUTH) is None

    @pytest.mark.parametrize(("title", "text"), [("a letter", "already in use"), ("x" * 101, "at most 100")])
    def test_refused_title_shows_an_error_and_can_be_edited(self, stored: Hermes, title: str, text: str) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f2")
            field = screen.browser.query_one("#title", Input)
            field.value = title
            await screen.press("enter")
            await screen.until_status(text)
            assert field.has_focus
            field.value = "a letter of mine"
            await screen.press("enter")
            await screen.until(lambda: screen.names[0] == "a letter of mine", "the title")

        drive(stored, scenario)
        assert title_of(stored, AUTH) == "a letter of mine"

    def test_escape_cancels_renaming(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f2")
            await screen.type("!", into="#title")
            await screen.press("f8", "f4", "escape")
            assert not screen.browser.has_class("renaming")
            assert screen.names == list(ALL)

        assert drive(stored, scenario).changes == []
        assert title_of(stored, AUTH) == "refactoring auth"


class TestArchive:
    def test_archive_removes_a_conversation_from_the_list(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("tab", "down", "a")
            await screen.until_names("refactoring auth", "a letter", "What is the weather?")
            assert screen.selected == LETTER

        assert drive(stored, scenario).changes == [f"{TRIP} is archived."]
        assert {row["id"] for row in sessions(stored) if row["archived"]} == {TRIP}

    def test_unarchive_removes_a_conversation_from_the_archived_list(self, stored: Hermes) -> None:
        with SessionDB(stored.database) as db:
            db.set_session_archived(TRIP, True)

        async def scenario(screen: Screen) -> None:
            await screen.until_names("京都旅行の計画 🎉")
            await screen.press("f4")
            await screen.until_names()
            await screen.until_status("no longer archived")

        drive(stored, scenario, wanted=BrowseFilter(archived_only=True))
        assert not any(row["archived"] for row in sessions(stored))


def test_pin_key_pins_and_unpins(stored: Hermes) -> None:
    async def scenario(screen: Screen) -> None:
        await screen.until_names(*ALL)
        await screen.press("f6")
        await screen.until(lambda: screen.sessions.conversations[0].is_pinned, "the pin")
        assert screen.sessions.render_line(0).text.startswith("★ ")
        await screen.press("f6")
        await screen.until(lambda: not screen.sessions.conversations[0].is_pinned, "no pin")

    assert drive(stored, scenario).changes == [f"{AUTH} is pinned.", f"{AUTH} is no longer pinned."]


class TestDelete:
    def test_delete_asks_with_a_count_and_shows_a_receipt(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("tab", "end", "d")
            await screen.until(lambda: isinstance(screen.browser.screen, DeleteDialog), "the question")
            text = " ".join(str(each.render()) for each in screen.browser.screen.query("Static"))
            assert "“What is the weather?”" in text
            assert "1 session with 3 messages." in text
            await screen.press("y")
            await screen.until_names(*ALL[:3])

        assert drive(stored, scenario).changes == [f"{PLAIN}: Deleted 1 session, 3 messages."]
        assert {row["id"] for row in sessions(stored)} == {AUTH, TRIP, LETTER}

    @pytest.mark.parametrize("keys", [("n",), ("escape",), ("enter",)])
    def test_delete_without_confirmation_changes_nothing(self, stored: Hermes, keys: tuple[str, ...]) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f8")
            await screen.until(lambda: isinstance(screen.browser.screen, DeleteDialog), "the question")
            await screen.press(*keys)
            await screen.until_status("Nothing was deleted.")

        assert drive(stored, scenario).changes == []
        assert len(sessions(stored)) == 4

    def test_tab_moves_between_buttons_while_the_list_updates(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("auth")
            await screen.press("f8")
            await screen.until(lambda: isinstance(screen.browser.screen, DeleteDialog), "the question")
            await screen.pilot.pause(0.5)  # time for the search to finish
            await screen.press("tab", "enter")
            await screen.until(lambda: not isinstance(screen.browser.screen, DeleteDialog), "the dialog closes")

        assert drive(stored, scenario).changes == [f"{AUTH}: Deleted 1 session, 1 message."]

    def test_delete_button_confirms(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f8")
            await screen.until(lambda: bool(screen.browser.screen.query(Button)), "the question")
            await screen.pilot.click("#delete")
            await screen.until_names(*ALL[1:])

        drive(stored, scenario)
        assert len(sessions(stored)) == 3

    def test_delete_removes_all_sessions_of_a_compressed_conversation(self, stored: Hermes) -> None:
        with SessionDB(stored.database) as db:
            tail = db.get_messages(PLAIN)[-1]["id"]
            db.compress_session(PLAIN, "plain-5", "a summary", tail_from=tail)

        async def scenario(screen: Screen) -> None:
            await screen.until(lambda: len(screen.names) == 4, "the list")
            await screen.type("plain-5")
            await screen.until(lambda: len(screen.names) == 1, "the newest session")
            await screen.press("f8")
            await screen.until(lambda: isinstance(screen.browser.screen, DeleteDialog), "the question")
            await screen.press("y")
            await screen.until_names()

        (output,) = drive(stored, scenario).changes
        assert output.startswith("plain-5: Deleted 2 sessions, ")
        assert {row["id"] for row in sessions(stored)} == {AUTH, TRIP, LETTER}


def test_conversation_deleted_meanwhile_shows_an_error(stored: Hermes) -> None:
    async def scenario(screen: Screen) -> None:
        await screen.until_names(*ALL)
        with SessionDB(stored.database) as db:
            db.delete_session(AUTH)
        await screen.press("f6")
        await screen.until_status("has just been deleted")

    assert drive(stored, scenario).changes == []


@pytest.mark.parametrize("keys", [("f1",), ("tab", "?")])
def test_help_opens_and_closes(stored: Hermes, keys: tuple[str, ...]) -> None:
    async def scenario(screen: Screen) -> None:
        await screen.until_names(*ALL)
        await screen.press(*keys)
        await screen.until(lambda: isinstance(screen.browser.screen, HelpDialog), "help")
        await screen.press("escape")
        assert not isinstance(screen.browser.screen, HelpDialog)

    drive(stored, scenario)


@pytest.mark.parametrize(("keys", "exit_code"), [(("ctrl+c",), 130), (("tab", "q"), 0)])
def test_keys_that_leave_the_screen(stored: Hermes, keys: tuple[str, ...], exit_code: int) -> None:
    async def scenario(screen: Screen) -> None:
        await screen.until_names(*ALL)
        await screen.press(*keys)

    browser = drive(stored, scenario)
    assert (browser.return_code, browser.return_value) == (exit_code, None)
