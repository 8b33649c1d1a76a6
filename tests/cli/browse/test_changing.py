"""Tidying up on the screen."""

from __future__ import annotations

import pytest
from textual.widgets import Button, Input

from hermes.cli.browse.dialogs import DeleteDialog, HelpDialog
from hermes.state.sessions.browsing import BrowseFilter
from hermes_state import SessionDB
from tests.cli.browse.conftest import AUTH, LETTER, PLAIN, TRIP
from tests.cli.browse.driving import Screen, drive
from tests.cli.chat.stored import sessions
from tests.cli.conftest import Hermes

ALL = ("refactoring auth", "京都旅行の計画 🎉", "a letter", "What is the weather?")


def title_of(hermes: Hermes, session_id: str) -> str | None:
    with SessionDB(hermes.database, read_only=True) as db:
        return db.get_session_title(session_id)


class TestRename:
    @pytest.mark.parametrize("key", ["f2", "r"])
    def test_gives_a_title(self, shelf: Hermes, key: str) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("tab", "end", key)
            await screen.type("the weather 天気", into="#title")
            await screen.press("enter")
            await screen.until(lambda: "the weather 天気" in screen.names, "the title")
            assert screen.shelf.has_focus

        browser = drive(shelf, scenario)
        assert title_of(shelf, PLAIN) == "the weather 天気"
        assert browser.changes == [f"{PLAIN}  the weather 天気"]

    def test_begins_with_the_title_there_is_and_can_take_it_away(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f2")
            assert screen.browser.query_one("#title", Input).value == "refactoring auth"
            await screen.press("ctrl+u", "enter")
            await screen.until_status("has no title any more")

        drive(shelf, scenario)
        assert title_of(shelf, AUTH) is None

    @pytest.mark.parametrize(("title", "said"), [("a letter", "already in use"), ("x" * 101, "at most 100")])
    def test_an_impossible_title_is_told_of_and_can_be_typed_again(self, shelf: Hermes, title: str, said: str) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f2")
            field = screen.browser.query_one("#title", Input)
            field.value = title
            await screen.press("enter")
            await screen.until_status(said)
            assert field.has_focus
            field.value = "a letter of mine"
            await screen.press("enter")
            await screen.until(lambda: screen.names[0] == "a letter of mine", "the title")

        drive(shelf, scenario)
        assert title_of(shelf, AUTH) == "a letter of mine"

    def test_escape_leaves_the_title_as_it_is(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f2")
            await screen.type("!", into="#title")
            await screen.press("f8", "f4", "escape")
            assert not screen.browser.has_class("renaming")
            assert screen.names == list(ALL)

        assert drive(shelf, scenario).changes == []
        assert title_of(shelf, AUTH) == "refactoring auth"


class TestArchive:
    def test_takes_a_conversation_out_of_the_list(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("tab", "down", "a")
            await screen.until_names("refactoring auth", "a letter", "What is the weather?")
            assert screen.selected == LETTER

        assert drive(shelf, scenario).changes == [f"{TRIP} is archived."]
        assert {row["id"] for row in sessions(shelf) if row["archived"]} == {TRIP}

    def test_brings_one_back(self, shelf: Hermes) -> None:
        with SessionDB(shelf.database) as db:
            db.set_session_archived(TRIP, True)

        async def scenario(screen: Screen) -> None:
            await screen.until_names("京都旅行の計画 🎉")
            await screen.press("f4")
            await screen.until_names()
            await screen.until_status("no longer archived")

        drive(shelf, scenario, wanted=BrowseFilter(archived_only=True))
        assert not any(row["archived"] for row in sessions(shelf))


def test_a_pin_is_set_and_taken_away(shelf: Hermes) -> None:
    async def scenario(screen: Screen) -> None:
        await screen.until_names(*ALL)
        await screen.press("f6")
        await screen.until(lambda: screen.shelf.conversations[0].is_pinned, "the pin")
        assert screen.shelf.render_line(0).text.startswith("★ ")
        await screen.press("f6")
        await screen.until(lambda: not screen.shelf.conversations[0].is_pinned, "no pin")

    assert drive(shelf, scenario).changes == [f"{AUTH} is pinned.", f"{AUTH} is no longer pinned."]


class TestDelete:
    def test_asks_with_a_count_and_gives_a_receipt(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("tab", "end", "d")
            await screen.until(lambda: isinstance(screen.browser.screen, DeleteDialog), "the question")
            said = " ".join(str(each.render()) for each in screen.browser.screen.query("Static"))
            assert "“What is the weather?”" in said
            assert "1 session with 3 messages." in said
            await screen.press("y")
            await screen.until_names(*ALL[:3])

        assert drive(shelf, scenario).changes == [f"{PLAIN}: Deleted 1 session, 3 messages."]
        assert {row["id"] for row in sessions(shelf)} == {AUTH, TRIP, LETTER}

    @pytest.mark.parametrize("keys", [("n",), ("escape",), ("enter",)])
    def test_what_is_not_confirmed_stays(self, shelf: Hermes, keys: tuple[str, ...]) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f8")
            await screen.until(lambda: isinstance(screen.browser.screen, DeleteDialog), "the question")
            await screen.press(*keys)
            await screen.until_status("Nothing was deleted.")

        assert drive(shelf, scenario).changes == []
        assert len(sessions(shelf)) == 4

    def test_tab_goes_from_button_to_button_while_the_list_goes_on(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("auth")
            await screen.press("f8")
            await screen.until(lambda: isinstance(screen.browser.screen, DeleteDialog), "the question")
            await screen.pilot.pause(0.5)  # in which the search has its answer
            await screen.press("tab", "enter")
            await screen.until(lambda: not isinstance(screen.browser.screen, DeleteDialog), "the answer")

        assert drive(shelf, scenario).changes == [f"{AUTH}: Deleted 1 session, 1 message."]

    def test_a_button_does_it_too(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f8")
            await screen.until(lambda: bool(screen.browser.screen.query(Button)), "the question")
            await screen.pilot.click("#delete")
            await screen.until_names(*ALL[1:])

        drive(shelf, scenario)
        assert len(sessions(shelf)) == 3

    def test_takes_a_compressed_conversation_whole(self, shelf: Hermes) -> None:
        with SessionDB(shelf.database) as db:
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

        (told,) = drive(shelf, scenario).changes
        assert told.startswith("plain-5: Deleted 2 sessions, ")
        assert {row["id"] for row in sessions(shelf)} == {AUTH, TRIP, LETTER}


def test_a_conversation_that_is_gone_is_told_of(shelf: Hermes) -> None:
    async def scenario(screen: Screen) -> None:
        await screen.until_names(*ALL)
        with SessionDB(shelf.database) as db:
            db.delete_session(AUTH)
        await screen.press("f6")
        await screen.until_status("has just been deleted")

    assert drive(shelf, scenario).changes == []


@pytest.mark.parametrize("keys", [("f1",), ("tab", "?")])
def test_help_is_shown_and_goes_away(shelf: Hermes, keys: tuple[str, ...]) -> None:
    async def scenario(screen: Screen) -> None:
        await screen.until_names(*ALL)
        await screen.press(*keys)
        await screen.until(lambda: isinstance(screen.browser.screen, HelpDialog), "help")
        await screen.press("escape")
        assert not isinstance(screen.browser.screen, HelpDialog)

    drive(shelf, scenario)


@pytest.mark.parametrize(("keys", "exit_code"), [(("ctrl+c",), 130), (("tab", "q"), 0)])
def test_ways_out(shelf: Hermes, keys: tuple[str, ...], exit_code: int) -> None:
    async def scenario(screen: Screen) -> None:
        await screen.until_names(*ALL)
        await screen.press(*keys)

    browser = drive(shelf, scenario)
    assert (browser.return_code, browser.return_value) == (exit_code, None)
