"""The output of `hermes sessions search`: styles, widths and safe text."""

from __future__ import annotations

import json
import re

import pytest

from hermes.cli.display.terminal import display_width
from tests.cli.conftest import DAY, HOUR, Hermes, store_session

STYLES = re.compile(r"\x1b\[\d+m")
HIT, PLAIN = "\x1b[31m\x1b[1m", "\x1b[0m"


class TestStyle:
    def test_terminal_highlights_hits_and_headings(self, talks: Hermes) -> None:
        heading, first, _ = talks.on_terminal("sessions", "search", "京都", columns=100)
        assert STYLES.findall(heading) == ["\x1b[1m", "\x1b[0m"]
        assert f"{HIT}京都{PLAIN}" in first
        assert len(STYLES.findall(first)) == 3

    @pytest.mark.parametrize("variables", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
    def test_plain_terminal_shows_plain_text(self, talks: Hermes, variables: dict[str, str]) -> None:
        text = "\n".join(talks.on_terminal("sessions", "search", "docker", columns=100, **variables))
        assert "The docker deploy to staging fails again" in text
        assert re.search(r"\x1b|>>>|<<<", text) is None

    def test_pipe_gets_plain_text(self, talks: Hermes) -> None:
        assert re.search(r"\x1b|>>>|<<<", talks("sessions", "search", "docker").stdout) is None

    def test_marks_in_the_message_itself_stay(self, hermes: Hermes) -> None:
        store_session(hermes, "a", "cli", None, HOUR, ("user", ">>> import zebra\n<<<<<<< HEAD\na>zebra<b >>> x <<<"))
        assert (
            hermes("sessions", "search", "zebra")
            .stdout.splitlines()[1]
            .endswith(">>> import zebra <<<<<<< HEAD a>zebra<b >>> x <<<")
        )
        (_, line) = hermes.on_terminal("sessions", "search", "zebra", columns=100)
        assert line.endswith(f">>> import {HIT}zebra{PLAIN} <<<<<<< HEAD a>{HIT}zebra{PLAIN}<b >>> x <<<")


class TestWidths:
    TEXTS = (
        "認証モジュールをリファクタリングしてください、そして京都旅行の計画も立ててください。" * 3,
        "👍🏽 thumbs ❤️ hearts 🇩🇪 flags 👨\u200d👩\u200d👧 families and 京都 all over the place " * 4,
        "plain words " * 12 + "京都" + " and more plain words" * 5,
        "https://example.org/" + "x" * 300 + "/京都",
        "京都",
    )

    @pytest.fixture(autouse=True)
    def wide(self, hermes: Hermes) -> None:
        store_session(
            hermes,
            "20250305_091523_00000001",
            "a source with a long name",
            "日本語のとても長いタイトルです、もっと長い 👨\u200d👩\u200d👧",
            30 * DAY,
            *(("user", text) for text in self.TEXTS),
            ("tool:a_tool_with_a_very_long_name", "京都 " + "output " * 30),
            ("ein Sprecher 日本語日本語日本語日本語", "京都"),
        )

    @pytest.mark.parametrize("columns", [30, 40, 41, 60, 80, 100, 200])
    def test_no_line_is_wider_than_the_terminal(self, hermes: Hermes, columns: int) -> None:
        lines = hermes.on_terminal("sessions", "search", "京都", columns=columns)
        assert max(display_width(STYLES.sub("", line)) for line in lines) <= columns

    @pytest.mark.parametrize("columns", [30, 40, 80, 200])
    def test_every_hit_shows_its_match(self, hermes: Hermes, columns: int) -> None:
        text = "\n".join(hermes.on_terminal("sessions", "search", "京都", columns=columns))
        assert text.count(f"{HIT}京") >= len(self.TEXTS) + 2

    @pytest.mark.parametrize("columns", [20, 40])
    def test_id_is_not_cut_on_a_tiny_terminal(self, hermes: Hermes, columns: int) -> None:
        lines = hermes.on_terminal("sessions", "search", "京都", columns=columns, NO_COLOR="1")
        assert "  20250305_091523_00000001" in lines

    def test_columns_variable_overrides_the_terminal_width(self, hermes: Hermes) -> None:
        lines = hermes("sessions", "search", "京都", COLUMNS="40").stdout.splitlines()
        assert 30 < max(map(display_width, lines)) <= 40

    def test_terminal_of_one_column_works(self, hermes: Hermes) -> None:
        assert hermes("sessions", "search", "京都", COLUMNS="1").returncode == 0


class TestSafety:
    def test_no_control_character_reaches_the_terminal(self, hermes: Hermes) -> None:
        hostile = "\x1b]0;owned\x07 \x9b31m zebra\x1b[2J \x08\x08\x7f ti\u202etle"
        store_session(
            hermes, "id\x1b[2J", "te\x1b[31mle", None, HOUR, (f"tool:{hostile}", hostile), ("us\x1b[0mer", hostile)
        )
        text = "\n".join(hermes.on_terminal("sessions", "search", "zebra", columns=200, NO_COLOR="1"))
        assert all(char.isprintable() or char == "\n" for char in text)
        assert r"\x1b]0;owned\x07 \x9b31m zebra\x1b[2J" in text
        assert r"id\x1b[2J" in text

    def test_no_control_character_of_the_query_reaches_the_terminal(self, talks: Hermes) -> None:
        for args in (["\x1b[31mqq"], ["qq", "-s", "\x1b[31m"], ["qq", "--since", "\x1b[31m"], ["--\x1b[31m"]):
            done = talks("sessions", "search", *args)
            assert all(char.isprintable() or char == "\n" for char in done.stdout + done.stderr)

    def test_json_has_the_stored_text(self, hermes: Hermes) -> None:
        store_session(hermes, "id\x1b[2J", "cli", None, HOUR, ("user", "zebra \x1b[31m"))
        done = hermes("sessions", "search", "zebra", "--json")
        assert done.stdout.isascii()
        assert "\x1b" not in done.stdout
        assert json.loads(done.stdout)["items"][0]["snippet"] == ">>>zebra<<< \x1b[31m"

    def test_locale_without_unicode_works(self, talks: Hermes) -> None:
        done = talks("sessions", "search", "京都", PYTHONIOENCODING="ascii")
        assert done.returncode == 0
        assert r"\u4eac\u90fd" in done.stdout
