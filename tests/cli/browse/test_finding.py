"""Finding a conversation on the screen."""

from __future__ import annotations

import time
from functools import partial
from threading import Event, Timer
from typing import Any

import pytest
from textual.widgets import Input, Static

from hermes.cli.browse.queries import PAGE, Hit, SessionQueries, prefix_query
from hermes.state.sessions.lists.browsing import BrowseFilter, ListedConversation
from hermes_state import SessionDB
from tests.cli.browse.conftest import AUTH, LETTER, PLAIN, TRIP
from tests.cli.browse.driving import LIMIT_S, SMALL, Screen, drive
from tests.cli.conftest import Hermes

WITH_COLUMNS = {
    60: (False, False, False),
    99: (False, True, True),
    100: (False, False, False),
    220: (True, True, True),
    240: (True, True, True),
}
"""Whether a terminal of this width has columns for source, cost and model: with 100 columns it has the preview too."""
ALL = ("refactoring auth", "京都旅行の計画 🎉", "a letter", "What is the weather?")


def is_fitted(screen: Screen, header: Static, columns: int) -> bool:
    """Whether the screen has this width, and the header the columns of the list."""
    return screen.browser.size.width == columns and str(header.content) == screen.sessions.header()


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
    def test_filter_narrows_while_typing(self, stored: Hermes, typed: str, names: list[str]) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type(typed)
            await screen.until_names(*names)

        drive(stored, scenario)

    def test_filter_may_start_with_a_letter_that_is_a_key_in_the_list(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("qdaprs")
            await screen.until_names()
            assert screen.selected is None

        assert drive(stored, scenario).changes == []

    def test_messages_are_found_with_their_snippet(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("umbrel")
            await screen.until(lambda: screen.hit_names == ["What is the weather?"], "the hits")
            assert screen.names == []
            assert "1 more by message" in screen.status
            assert screen.selected == PLAIN
            lines = [screen.sessions.render_line(line).text for line in range(2)]
            assert lines[0].strip() == "Messages match in 1 more conversation"
            assert "is the umbrella?" in lines[1]

        drive(stored, scenario)

    def test_hits_stay_when_the_list_arrives_later(self, stored: Hermes, monkeypatch: pytest.MonkeyPatch) -> None:
        searched, listed, looked = Event(), Event(), SessionQueries.page

        def page_after_search(*args: Any) -> list[ListedConversation]:
            if args[1].words == "umbrella":
                assert searched.wait(LIMIT_S)
                Timer(0.3, listed.set).start()
            return looked(*args)

        search_messages = SessionQueries.search_messages

        def search(*args: Any) -> list[Hit]:
            hits = search_messages(*args)
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
            assert screen.hit_names == ["What is the weather?"]

        drive(stored, scenario)

    def test_conversation_that_matches_by_title_is_not_listed_twice(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("weather")
            await screen.until_names("What is the weather?")
            await screen.until_status("by title or preview")
            await screen.pilot.pause(0.5)
            assert screen.hit_names == []

        drive(stored, scenario)

    def test_escape_clears_the_filter_and_then_leaves(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.type("auth")
            await screen.until_names("refactoring auth")
            await screen.press("escape")
            await screen.until_names(*ALL)
            await screen.press("escape")

        browser = drive(stored, scenario)
        assert (browser.return_value, browser.return_code) == (None, 0)

    def test_empty_result_is_reported(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.type("xyzzy")
            await screen.until_status("0 conversations by title or preview")
            await screen.press("enter", "f2", "f4", "f6", "f8", "down", "end")
            assert screen.selected is None

        assert drive(stored, scenario).return_value is None


class TestOrder:
    def test_sort_key_cycles_through_all_orders(self, stored: Hermes) -> None:
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

        drive(stored, scenario)


class TestSelection:
    def test_keys_move_the_selection_from_filter_and_list(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            assert screen.selected == AUTH
            await screen.press("down")
            assert screen.selected == TRIP
            await screen.press("tab", "down")
            assert screen.selected == LETTER
            await screen.press("end")
            assert screen.selected == PLAIN
            await screen.press("pagedown")
            assert screen.selected == PLAIN
            await screen.press("down")
            assert screen.selected == AUTH
            await screen.press("up")
            assert screen.selected == PLAIN
            await screen.press("home", "pageup")
            assert screen.selected == AUTH
            await screen.press("pagedown", "pageup")
            assert screen.selected == AUTH

        drive(stored, scenario)

    def test_selection_skips_the_heading_of_the_hits(self, stored: Hermes) -> None:
        with SessionDB(stored.database) as db:
            db.append_message(PLAIN, "assistant", "a letter lay in the rain")

        async def scenario(screen: Screen) -> None:
            await screen.type("letter")
            await screen.until(lambda: screen.hit_names == ["What is the weather?"], "the hits")
            assert screen.selected == LETTER
            await screen.press("down")
            assert screen.selected == PLAIN
            await screen.press("up")
            assert screen.selected == LETTER

        drive(stored, scenario)

    def test_preview_shows_the_last_exchanges(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("tab", "end")
            await screen.until(lambda: "◆ Hermes: It rains cats and dogs." in screen.pane, "the recap")
            assert "● You: Where is the umbrella?" in screen.pane
            assert PLAIN in screen.pane

        drive(stored, scenario)

    def test_click_selects_and_double_click_resumes(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.pilot.click("SessionList", offset=(5, 1))
            assert screen.selected == TRIP
            await screen.pilot.click("SessionList", offset=(5, 20))
            assert screen.selected == TRIP
            await screen.pilot.double_click("SessionList", offset=(5, 2))

        assert drive(stored, scenario).return_value == LETTER

    @pytest.mark.parametrize("keys", [("enter",), ("tab", "enter")])
    def test_enter_resumes_the_selected_conversation(self, stored: Hermes, keys: tuple[str, ...]) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.press("down", *keys)

        assert drive(stored, scenario).return_value == TRIP


class TestPages:
    def test_long_list_loads_further_pages(self, stored: Hermes) -> None:
        stored.store(*((f"s{number:04}", "cli", None, f"number {number}") for number in range(PAGE * 2 + 10)))

        async def scenario(screen: Screen) -> None:
            await screen.until(lambda: len(screen.names) == PAGE, "a page")
            assert f"{PAGE * 2 + 14} conversations" in screen.status
            await screen.press("tab", "end")
            await screen.until(lambda: len(screen.names) == 2 * PAGE, "two pages")
            assert screen.sessions.at == PAGE - 1
            await screen.press("end")
            await screen.until(lambda: len(screen.names) == 2 * PAGE + 14, "all")
            await screen.press("end")
            assert screen.selected == f"s{PAGE * 2 + 9:04}"
            assert len(set(screen.names)) == 2 * PAGE + 14

        drive(stored, scenario)

    def test_mouse_wheel_loads_further_pages(self, stored: Hermes) -> None:
        stored.store(*((f"s{number:04}", "cli", None, f"number {number}") for number in range(PAGE)))

        async def scenario(screen: Screen) -> None:
            await screen.until(lambda: len(screen.names) == PAGE, "a page")
            screen.sessions.scroll_to(y=PAGE - 30, animate=False)
            await screen.until(lambda: len(screen.names) == PAGE + 4, "all")

        drive(stored, scenario)


class TestScope:
    def test_source_option_limits_both_lists(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names("京都旅行の計画 🎉")
            await screen.until_status("from telegram")
            await screen.type("landlord")
            await screen.until_status("0 conversations")

        drive(stored, scenario, wanted=BrowseFilter(source="telegram"))

    def test_archived_option_shows_only_archived_conversations(self, stored: Hermes) -> None:
        with SessionDB(stored.database) as db:
            db.set_session_archived(PLAIN, True)

        async def scenario(screen: Screen) -> None:
            await screen.until_names("What is the weather?")
            await screen.until_status("1 archived conversation")

        drive(stored, scenario, wanted=BrowseFilter(archived_only=True))

    def test_agent_sessions_are_left_out_of_both_lists(self, stored: Hermes) -> None:
        stored.store(("helper", "subagent", None, "sub umbrella"))

        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.type("umbrella")
            await screen.until(lambda: screen.hit_names == ["What is the weather?"], "the hits")

        drive(stored, scenario, wanted=BrowseFilter(hidden_sources=("tool", "subagent")))


def is_small(screen: Screen, wanted: bool) -> bool:
    return screen.browser.has_class("small") is wanted


class TestSize:
    def test_narrow_screen_has_no_preview(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            assert screen.sessions.size.width > 70
            await screen.pilot.resize_terminal(120, 40)
            await screen.until(lambda: screen.sessions.size.width < 70, "the pane")

        drive(stored, scenario, SMALL)

    def test_wider_screen_shows_the_messages_of_the_selected_conversation(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            await screen.pilot.resize_terminal(120, 40)
            await screen.until(lambda: "Help me refactor" in screen.pane, "the messages")

        drive(stored, scenario, SMALL)

    def test_header_and_lines_follow_every_resize(self, stored: Hermes) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until_names(*ALL)
            header = screen.browser.query_one("#header", Static)
            for columns, lines in ((60, 16), (100, 24), (220, 50), (99, 20), (60, 16), (240, 30)):
                await screen.pilot.resize_terminal(columns, lines)
                await screen.until(partial(is_fitted, screen, header, columns), f"the header for {columns} columns")
                names = str(header.content).split()
                row = screen.sessions.render_line(0).text
                assert row.index("Help me") == str(header.content).index("Beginning")
                assert ("Source" in names, "Cost" in names, "Model" in names) == WITH_COLUMNS[columns]

        drive(stored, scenario, SMALL)

    def test_wide_list_has_cost_and_model(self, stored: Hermes) -> None:
        with SessionDB(stored.database) as db:
            db.update_token_counts(AUTH, 100, 10, model="openai/gpt-5-mini", estimated_cost_usd=1.5)
            db.create_session("auth-child", "cli", parent_session_id=AUTH, child_kind="compression")
            db.update_token_counts("auth-child", 100, 10, model="gpt-5", actual_cost_usd=0.75)
            db.append_message("auth-child", "user", "go on", timestamp=time.time())

        async def scenario(screen: Screen) -> None:
            await screen.until(lambda: len(screen.names) == len(ALL), "the list")
            assert screen.sessions.render_line(0).text.split()[-3:] == ["$2.25", "gpt-5", "cli"]
            assert screen.sessions.render_line(1).text.rstrip().endswith("telegram")
            await screen.until(lambda: "gpt-5, $2.25" in screen.pane, "the facts in the pane")

        drive(stored, scenario, (240, 30))

    @pytest.mark.parametrize("size", [(59, 16), (60, 15), (20, 5)])
    def test_too_small_screen_is_reported_and_can_be_left(self, stored: Hermes, size: tuple[int, int]) -> None:
        async def scenario(screen: Screen) -> None:
            await screen.until(lambda: screen.browser.has_class("small"), "the sentence")
            notice = str(screen.browser.query_one("#small").render())
            assert f"Terminal too small: {size[0]}x{size[1]}; at least 60x16 is needed." in notice
            await screen.press("escape")

        assert drive(stored, scenario, size).return_code == 0

    @pytest.mark.parametrize("size", [(80, 24), (40, 10)])
    def test_keys_work_again_after_the_screen_was_too_small(self, stored: Hermes, size: tuple[int, int]) -> None:
        async def scenario(screen: Screen) -> None:
            for columns, lines in ((40, 10), (80, 24)):
                await screen.pilot.resize_terminal(columns, lines)
                await screen.until(partial(is_small, screen, columns < 60), f"the layout for {columns} columns")
            await screen.until(lambda: screen.browser.screen.focused is not None, "the focus")
            await screen.press("k", "y", "o")
            assert screen.browser.query_one("#filter", Input).value == "kyo"
            await screen.press("escape", "escape")

        assert drive(stored, scenario, size).return_code == 0


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
def test_last_word_of_the_filter_matches_as_a_prefix(typed: str, query: str) -> None:
    assert prefix_query(typed) == query
