"""`hermes insights`."""

from __future__ import annotations

import json
import os
import re
import stat
import time
from pathlib import Path
from typing import Any

import pytest

from hermes.cli.display.terminal import display_width
from hermes_state import SessionDB
from tests.cli.conftest import Hermes

PAGE = Path(__file__).parents[2] / "docs" / "guide" / "insights.md"
HOSTILE = "ti\u202etle\x1b[2J"
STYLES = re.compile(r"\x1b\[\d+m")
DAY_S = 86_400


@pytest.fixture
def used(hermes: Hermes) -> Hermes:
    """A home with sessions of today, of a month ago and of an agent, with costs."""
    now = time.time()
    with SessionDB(hermes.database) as db:
        db.create_session("today", "cli", model="openai/gpt-5", started_at=now)
        db.set_session_title("today", "京都旅行の計画 🎉")
        db.append_message("today", "user", "hello")
        calls = [{"id": "1", "function": {"name": "terminal", "arguments": "{}"}}]
        db.append_message("today", "assistant", None, tool_calls=calls)
        db.append_message("today", "tool", "done", tool_name="terminal")
        db.update_token_counts("today", input_tokens=1000, output_tokens=50, estimated_cost_usd=1.25, api_call_count=1)
        db.update_token_counts("today", input_tokens=7, model="通义千问")
        db.create_session("helper", "subagent", parent_session_id="today", child_kind="delegate")
        db.create_session("old", "telegram", started_at=now - 45 * DAY_S)
        db.append_message("old", "user", "long ago", timestamp=now - 45 * DAY_S)
    return hermes


def section(lines: list[str], name: str) -> list[str]:
    """Return the lines of a section of the report."""
    start = lines.index(name) + 1
    return lines[start : lines.index("", start) if "" in lines[start:] else None]


class TestReport:
    def test_report_covers_the_last_thirty_days(self, used: Hermes) -> None:
        done = used("insights")
        assert (done.returncode, done.stderr) == (0, "")
        lines = done.stdout.splitlines()
        assert re.fullmatch(r"Insights: 30 days, \d{4}-\d\d-\d\d to \d{4}-\d\d-\d\d", lines[0])
        assert section(lines, "Overview")[0].split() == ["Conversations", "1", "with", "1", "delegate"]
        assert section(lines, "Cost")[0].split()[:2] == ["Total", "$1.25"]
        assert section(lines, "Cost")[-1].split() == ["Unknown", "?", "for", "7", "tokens", "of", "通义千问"]
        assert section(lines, "Tools")[-1].split()[:3] == ["terminal", "1", "100.0%"]

    def test_report_covers_the_requested_days(self, used: Hermes) -> None:
        assert "telegram" not in used("insights").stdout
        assert "telegram" in used("insights", "--days", "60").stdout

    def test_report_of_one_source(self, used: Hermes) -> None:
        lines = used("insights", "--days", "60", "--source", "telegram").stdout.splitlines()
        assert lines[0].endswith(", source=telegram")
        assert [line.split()[0] for line in section(lines, "Platforms")[2:]] == ["telegram"]

    @pytest.mark.parametrize("columns", [60, 80, 200])
    def test_report_fits_the_terminal(self, used: Hermes, columns: int) -> None:
        lines = used.on_terminal("insights", columns=columns, NO_COLOR="1")
        assert max(map(display_width, lines)) <= columns

    def test_report_has_bold_headings_and_no_colours(self, used: Hermes) -> None:
        styles = {line[:4] for line in used.on_terminal("insights") if STYLES.search(line)}
        assert styles == {"\x1b[1m"}
        assert not [line for line in used.on_terminal("insights", NO_COLOR="1") if STYLES.search(line)]

    def test_report_is_readable_without_unicode(self, used: Hermes) -> None:
        done = used("insights", LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0", PYTHONIOENCODING="ascii")
        assert done.returncode == 0
        assert done.stdout.isascii()
        assert r"\u4eac\u90fd" in done.stdout

    def test_report_escapes_control_characters(self, hermes: Hermes) -> None:
        with SessionDB(hermes.database) as db:
            db.create_session(HOSTILE, HOSTILE, model=HOSTILE)
            db.append_message(HOSTILE, "user", HOSTILE)
        done = hermes("insights")
        assert all(char.isprintable() or char == "\n" for char in done.stdout + done.stderr)
        assert r"ti\u202etle\x1b[2J" in done.stdout


class TestDays:
    @pytest.mark.parametrize(("zone", "day"), [("<-12>12", -1), ("<+14>-14", 1)])
    def test_days_are_in_local_time(self, hermes: Hermes, zone: str, day: int) -> None:
        at_noon = time.time() // DAY_S * DAY_S + DAY_S / 2 - DAY_S
        moment = at_noon + day * DAY_S * 11 / 24  # half past midnight or half past eleven, UTC
        with SessionDB(hermes.database) as db:
            db.create_session("a", "cli", started_at=moment)
            db.append_message("a", "user", "hello", timestamp=moment)
        done = hermes("insights", "--json", TZ=zone)
        activity = json.loads(done.stdout)["item"]["activity"]
        expected = time.gmtime(moment + (14 if day > 0 else -12) * 3600)
        assert [each["date"] for each in activity["days"]] == [time.strftime("%Y-%m-%d", expected)]
        assert activity["busiest_hour"] == expected.tm_hour
        assert activity["busiest_weekday"] == expected.tm_wday

    @pytest.mark.parametrize("days", ["0", "-1", "36501", "many"])
    def test_invalid_number_of_days_is_refused(self, hermes: Hermes, days: str) -> None:
        done = hermes("insights", "--days", days)
        assert (done.returncode, done.stdout) == (2, "")
        assert "--days" in done.stderr


class TestNothing:
    def test_home_without_sessions_is_reported(self, hermes: Hermes) -> None:
        done = hermes("insights")
        assert (done.returncode, done.stdout) == (0, "")
        assert "No sessions yet" in done.stderr
        assert not hermes.home.exists()

    def test_period_without_activity_is_reported(self, used: Hermes) -> None:
        done = used("insights", "--days", "30", "--source", "telegram")
        assert (done.returncode, done.stdout) == (0, "")
        assert re.match(r"No activity with source=telegram in the 30 days from \S+ to \S+\. Use --days", done.stderr)

    def test_unknown_source_lists_the_known_ones(self, used: Hermes) -> None:
        done = used("insights", "--source", "discrd")
        assert (done.returncode, done.stdout) == (0, "")
        assert "No sessions with source=discrd. Sources with sessions: cli (1)" in done.stderr

    def test_empty_report_prints_json(self, hermes: Hermes) -> None:
        item = hermes.json("insights")["item"]
        assert (item["empty"], item["overview"]["conversations"], item["models"]) == (True, 0, [])


class TestJson:
    def test_json_has_the_numbers(self, used: Hermes) -> None:
        output = used.json("insights")
        assert output.keys() == {"schema", "item"}
        assert output["schema"] == "hermes.insights/1"
        item = output["item"]
        assert (item["days"], item["source_filter"], item["empty"]) == (30, None, False)
        overview = item["overview"]
        assert {name: overview[name] for name in ("conversations", "sessions", "delegates", "messages")} == {
            "conversations": 1,
            "sessions": 2,
            "delegates": 1,
            "messages": 3,
        }
        assert (overview["total_tokens"], overview["cost_usd"], overview["unpriced_tokens"]) == (1057, 1.25, 7)
        assert [(each["model"], each["total_tokens"], each["cost_status"]) for each in item["models"]] == [
            ("gpt-5", 1050, "known"),
            ("通义千问", 7, "unknown"),
        ]
        assert {each["measure"]: each["id"] for each in item["top_sessions"]}["tokens"] == "today"

    def test_every_field_is_documented(self, used: Hermes) -> None:
        with SessionDB(used.database) as db:
            calls = [{"id": "1", "function": {"name": "skill_view", "arguments": '{"name": "x"}'}}]
            db.append_message("today", "assistant", None, tool_calls=calls)
        text = PAGE.read_text("utf-8")
        missing = [name for name in sorted(names_in(used.json("insights")["item"])) if f"`{name}`" not in text]
        assert missing == []


def names_in(value: Any) -> set[str]:
    """Yield all keys of an object at any depth."""
    if isinstance(value, list):
        return {name for each in value for name in names_in(each)}
    if isinstance(value, dict):
        return set(value) | {name for each in value.values() for name in names_in(each)}
    return set()


class TestPage:
    def test_page_is_readable_only_by_its_owner(self, used: Hermes, tmp_path: Path) -> None:
        file = tmp_path / "report.html"
        done = used("insights", "--html", str(file))
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.startswith(f"{file}: 30 days, ")
        assert file.read_text("utf-8").startswith("<!DOCTYPE html>")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert sorted(os.listdir(tmp_path)) == ["home", "report.html"]

    def test_page_does_not_replace_an_existing_file(self, used: Hermes, tmp_path: Path) -> None:
        file = tmp_path / "report.html"
        file.write_text("mine")
        done = used("insights", "--html", str(file))
        assert (done.returncode, done.stdout, file.read_text()) == (4, "", "mine")
        assert "--force" in done.stderr

    def test_page_replaces_a_file_with_force(self, used: Hermes, tmp_path: Path) -> None:
        file = tmp_path / "report.html"
        file.write_text("mine")
        assert used("insights", "--html", str(file), "--force").returncode == 0
        assert "京都旅行の計画" in file.read_text("utf-8")

    @pytest.mark.parametrize(("place", "exit_code"), [("nowhere/report.html", 3), (".", 2)])
    def test_page_in_an_unusable_place_is_an_error(
        self, used: Hermes, tmp_path: Path, place: str, exit_code: int
    ) -> None:
        done = used("insights", "--html", str(tmp_path / place))
        assert (done.returncode, done.stdout) == (exit_code, "")

    def test_failed_page_leaves_no_file(self, used: Hermes, tmp_path: Path) -> None:
        done = used("insights", "--html", str(tmp_path / ("x" * 300)))
        assert (done.returncode, done.stdout) == (1, "")
        assert "cannot be written: File name too long" in done.stderr
        assert os.listdir(tmp_path) == ["home"]

    def test_page_and_json_can_be_combined(self, used: Hermes, tmp_path: Path) -> None:
        file = tmp_path / "report.html"
        assert used.json("insights", "--html", str(file))["schema"] == "hermes.insights/1"
        assert file.exists()

    def test_force_without_a_page_is_a_usage_error(self, hermes: Hermes) -> None:
        done = hermes("insights", "--force")
        assert (done.returncode, done.stdout) == (2, "")


def test_insights_do_not_change_the_store(used: Hermes) -> None:
    before = used.database.read_bytes()
    used("insights", "--days", "400")
    assert used.database.read_bytes() == before
