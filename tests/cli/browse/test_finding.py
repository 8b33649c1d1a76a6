"""Finding a conversation on the screen."""

from __future__ import annotations

from threading import Event, Timer
from typing import Any

import pytest

from hermes.cli.browse.queries import PAGE, Hit, SessionQueries, prefix_query
from hermes.state.sessions.browsing import BrowseFilter, ListedConversation
from hermes_state import SessionDB
from tests.cli.browse.conftest import AUTH, LETTER, PLAIN, TRIP
from tests.cli.browse.driving import LIMIT_S, SMALL, Screen, drive
from tests.cli.conftest import Hermes

ALL = ("refactoring auth", "京都旅行の計画 🎉", "a letter", "What is the weather?")


class TestFilter:
    @pytest.mark.parametrize(
        ("typed", "names"),
        [
            ("auth", ["refactoring auth"]),
            ("LANDLORD", ["a letter"]),
            ("京都", ["京都旅行の計画 🎉"]),
            ("land let", ["a letter"]),
            ("telegram", ["京都旅行の計画 🎉"]),
        ],
    )
    def test_narrows_as_one_types(self, shelf: Hermes, typed: str, names: list[str]) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type(typed)
            await screen.until_names(*names)

        drive(shelf, scenario)

    def test_may_begin_with_any_letter_that_is_a_key_in_the_list(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("qdaprs")
            await screen.until_names()
            assert screen.selected is None

        assert drive(shelf, scenario).changes == []

    def test_words_that_were_said_are_found_with_the_place(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("umbrel")
            await screen.until(lambda: screen.said_in == ["What is the weather?"], "what was said")
            assert screen.names == []
            assert "1 more by what was said" in screen.talk
            assert screen.selected == PLAIN
            lines = [screen.shelf.render_line(line).text for line in range(2)]
            assert lines[0].strip() == "Said in 1 more conversation"
            assert "Where is the umbrella?" in lines[1]

        drive(shelf, scenario)

    def test_what_was_said_stays_when_the_list_comes_later(
        self, shelf: Hermes, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        searched, listed, looked = Event(), Event(), SessionQueries.page

        def page_after_search(*args: Any) -> list[ListedConversation]:
            if args[1].words == "umbrella":
                assert searched.wait(LIMIT_S)
                Timer(0.3, listed.set).start()
            return looked(*args)

        said = SessionQueries.search_messages

        def search(*args: Any) -> list[Hit]:
            hits = said(*args)
            if args[1].words == "umbrella":
                Timer(0.3, searched.set).start()
            return hits

        monkeypatch.setattr(SessionQueries, "page", page_after_search)
        monkeypatch.setattr(SessionQueries, "search_messages", search)

        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("umbrella")
            await screen.until(listed.is_set, "the list")
            await screen.until_names()
            assert screen.said_in == ["What is the weather?"]

        drive(shelf, scenario)

    def test_a_conversation_with_the_word_in_its_title_is_not_shown_twice(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("weather")
            await screen.until_names("What is the weather?")
            await screen.until_status("by title or beginning")
            await screen.pilot.pause(0.5)
            assert screen.said_in == []

        drive(shelf, scenario)

    def test_escape_clears_it_and_then_leaves(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.type("auth")
            await screen.until_names("refactoring auth")
            await screen.press("escape")
            await screen.until_names(*ALL)
            await screen.press("escape")

        browser = drive(shelf, scenario)
        assert (browser.return_value, browser.return_code) == (None, 0)

    def test_nothing_found_is_said(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.type("xyzzy")
            await screen.until_status("0 conversations by title or beginning")
            await screen.press("enter", "f2", "f4", "f6", "f8", "down", "end")
            assert screen.selected is None

        assert drive(shelf, scenario).return_value is None


class TestOrder:
    def test_every_order_has_its_turn(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("f3")
            await screen.until_status("by start")
            await screen.press("f3")
            await screen.until_status("by messages")
            await screen.until(lambda: screen.names[0] == "What is the weather?", "the one with the most messages")
            await screen.press("f3")
            await screen.until_status("by title")
            await screen.until_names("a letter", "refactoring auth", "京都旅行の計画 🎉", "What is the weather?")
            await screen.press("f3")
            await screen.until_names(*ALL)

        drive(shelf, scenario)


class TestSelection:
    def test_keys_move_it_from_the_filter_and_from_the_list(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            assert screen.selected == AUTH
            await screen.press("down")
            assert screen.selected == TRIP
            await screen.press("tab", "down")
            assert screen.selected == LETTER
            await screen.press("end")
            assert screen.selected == PLAIN
            await screen.press("down", "pagedown")
            assert screen.selected == PLAIN
            await screen.press("home", "up")
            assert screen.selected == AUTH
            await screen.press("pagedown", "pageup")
            assert screen.selected == AUTH

        drive(shelf, scenario)

    def test_skips_the_heading_above_what_was_said(self, shelf: Hermes) -> None:
        with SessionDB(shelf.database) as db:
            db.append_message(PLAIN, "assistant", "a letter lay in the rain")

        async def scenario(screen: Screen) -> None:
            await screen.type("letter")
            await screen.until(lambda: screen.said_in == ["What is the weather?"], "what was said")
            assert screen.selected == LETTER
            await screen.press("down")
            assert screen.selected == PLAIN
            await screen.press("up")
            assert screen.selected == LETTER

        drive(shelf, scenario)

    def test_the_pane_shows_the_last_exchanges(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("tab", "end")
            await screen.until(lambda: "◆ Hermes: It rains cats and dogs." in screen.pane, "the recap")
            assert "● You: Where is the umbrella?" in screen.pane
            assert PLAIN in screen.pane

        drive(shelf, scenario)

    def test_a_click_selects_and_a_double_click_resumes(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.pilot.click("SessionList", offset=(5, 1))
            assert screen.selected == TRIP
            await screen.pilot.click("SessionList", offset=(5, 20))
            assert screen.selected == TRIP
            await screen.pilot.double_click("SessionList", offset=(5, 2))

        assert drive(shelf, scenario).return_value == LETTER

    @pytest.mark.parametrize("keys", [("enter",), ("tab", "enter")])
    def test_enter_resumes(self, shelf: Hermes, keys: tuple[str, ...]) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("down", *keys)

        assert drive(shelf, scenario).return_value == TRIP


class TestPages:
    def test_of_a_long_list_follow_by_themselves(self, shelf: Hermes) -> None:
        shelf.store(*((f"s{number:04}", "cli", None, f"number {number}") for number in range(PAGE * 2 + 10)))

        async def scenario(screen: Screen) -> None:
            await screen.until(lambda: len(screen.names) == PAGE, "a page")
            assert f"{PAGE * 2 + 14} conversations" in screen.talk
            await screen.press("tab", "end")
            await screen.until(lambda: len(screen.names) == 2 * PAGE, "two pages")
            assert screen.shelf.at == PAGE - 1
            await screen.press("end")
            await screen.until(lambda: len(screen.names) == 2 * PAGE + 14, "all")
            await screen.press("end")
            assert screen.selected == f"s{PAGE * 2 + 9:04}"
            assert len(set(screen.names)) == 2 * PAGE + 14

        drive(shelf, scenario)

    def test_follow_the_mouse_wheel_too(self, shelf: Hermes) -> None:
        shelf.store(*((f"s{number:04}", "cli", None, f"number {number}") for number in range(PAGE)))

        async def scenario(screen: Screen) -> None:
            await screen.until(lambda: len(screen.names) == PAGE, "a page")
            screen.shelf.scroll_to(y=PAGE - 30, animate=False)
            await screen.until(lambda: len(screen.names) == PAGE + 4, "all")

        drive(shelf, scenario)


class TestScope:
    def test_only_of_a_source(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names("京都旅行の計画 🎉")
            await screen.until_status("from telegram")
            await screen.type("landlord")
            await screen.until_status("0 conversations")

        drive(shelf, scenario, wanted=BrowseFilter(source="telegram"))

    def test_only_archived(self, shelf: Hermes) -> None:
        with SessionDB(shelf.database) as db:
            db.set_session_archived(PLAIN, True)

        async def scenario(screen: Screen) -> None:
            await screen.until_names("What is the weather?")
            await screen.until_status("1 archived conversation")

        drive(shelf, scenario, wanted=BrowseFilter(archived_only=True))

    def test_what_agents_made_is_left_out_of_both_lists(self, shelf: Hermes) -> None:
        shelf.store(("helper", "subagent", None, "sub umbrella"))

        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("umbrella")
            await screen.until(lambda: screen.said_in == ["What is the weather?"], "what was said")

        drive(shelf, scenario, wanted=BrowseFilter(hidden_sources=("tool", "subagent")))


class TestSize:
    def test_a_narrow_screen_has_no_pane(self, shelf: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            assert screen.shelf.size.width > 70
            await screen.pilot.resize_terminal(120, 40)
            await screen.until(lambda: screen.shelf.size.width < 70, "the pane")

        drive(shelf, scenario, SMALL)

    @pytest.mark.parametrize("size", [(79, 24), (80, 23), (20, 5)])
    def test_too_small_a_screen_says_so_and_lets_one_leave(self, shelf: Hermes, size: tuple[int, int]) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until(lambda: screen.browser.has_class("small"), "the sentence")
            said = str(screen.browser.query_one("#small").render())
            assert f"needs a terminal of 80 columns and 24 lines; it has {size[0]} and {size[1]}." in said
            await screen.press("escape")

        assert drive(shelf, scenario, size).return_code == 0


@pytest.mark.parametrize(
    ("typed", "query"),
    [
        ("dep", "dep*"),
        ("docker dep", "docker dep*"),
        ("docker OR", "docker OR"),
        ('"docker dep', '"docker dep'),
        ('"docker dep"', '"docker dep"'),
        ("dep*", "dep*"),
        ("京", "京*"),
        ("", ""),
    ],
)
def test_the_last_word_may_not_be_complete(typed: str, query: str) -> None:
    assert prefix_query(typed) == query
