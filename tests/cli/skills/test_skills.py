"""`hermes skills`: lists and shows skills, and says why one is hidden."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hermes.cli.skills.group import COMMANDS
from tests.agent.skills.writing import skill_text, write_skill
from tests.cli.chat.terminal import ENTER, Terminal
from tests.cli.conftest import Hermes
from tests.cli.test_command import imported_by

NEEDS = "required_environment_variables: [{name: SHOP_TOKEN, help: see x.example, optional: true}]"


@pytest.fixture(autouse=True)
def some_skills(hermes: Hermes) -> Path:
    hermes.home.mkdir(mode=0o700, exist_ok=True)
    write_skill(hermes.home, "shop", skill_text("shop", NEEDS), notes="x")
    write_skill(hermes.home, "ops/deploy", skill_text("deploy", "requires_tools: rocket"))
    write_skill(hermes.home, "search", skill_text("search", "fallback_for_toolsets: web"))
    write_skill(hermes.home, "broken", "nothing")
    return hermes.home / "skills"


def test_summaries_equal_those_of_the_commands() -> None:
    assert {name: lazy.load().get_short_help_str(limit=200) for name, lazy in COMMANDS.items()} == {
        name: lazy.summary for name, lazy in COMMANDS.items()
    }


def test_help_imports_no_skills(hermes: Hermes) -> None:
    assert not any(each.startswith("hermes.agent") for each in imported_by(hermes, "skills"))


class TestList:
    def test_list_says_why_a_skill_is_hidden(self, hermes: Hermes) -> None:
        done = hermes("skills", "list")
        assert (done.returncode, done.stderr) == (0, "")
        lines = {line.split()[0]: line for line in done.stdout.splitlines()[2:]}
        assert list(lines) == ["broken", "deploy", "search", "shop"]
        assert "it needs the tool rocket, which this conversation does not have" in lines["deploy"]
        assert "it only replaces the toolset web, which this conversation has" in lines["search"]
        assert "does not begin with frontmatter" in lines["broken"]
        assert lines["shop"].split()[:2] == ["shop", "visible"]

    def test_json_has_every_condition(self, hermes: Hermes) -> None:
        data = json.loads(hermes("skills", "list", "--json").stdout)
        assert data["schema"] == "hermes.skills/1"
        items = {each["name"]: each for each in data["items"]}
        assert {name: each["state"] for name, each in items.items()} == {
            "broken": "invalid",
            "deploy": "hidden",
            "search": "hidden",
            "shop": "visible",
        }
        assert items["deploy"]["category"] == "ops"
        assert items["shop"]["required_environment_variables"] == [
            {"name": "SHOP_TOKEN", "is_set": False, "is_optional": True, "help": "see x.example"}
        ]

    def test_chat_sees_none_unless_the_toolset_is_on(self, hermes: Hermes) -> None:
        assert "the toolset skills is off" in hermes("skills", "list", "--source", "telegram").stdout
        (hermes.home / "config.yaml").write_text("tools: {telegram: [skills]}")
        items = json.loads(hermes("skills", "list", "-s", "telegram", "--json").stdout)["items"]
        assert {each["name"] for each in items if each["state"] == "visible"} == {"shop", "search"}

    def test_home_without_skills_is_no_error(self, hermes: Hermes, tmp_path: Path) -> None:
        done = hermes("skills", "list", HERMES_HOME=str(tmp_path / "empty"))
        assert (done.returncode, done.stdout) == (0, "")
        assert done.stderr.startswith("No skills in ")


class TestShow:
    def test_skill_is_shown_with_its_text(self, hermes: Hermes) -> None:
        done = hermes("skills", "show", "shop", SHOP_TOKEN="s3cret")
        assert done.returncode == 0
        assert "SHOP_TOKEN (set, optional; see x.example)" in done.stdout
        assert "SKILL.md, notes.md" in done.stdout
        assert done.stdout.endswith("# shop\n\nDo it well.\n")
        assert "s3cret" not in done.stdout

    def test_reason_is_shown(self, hermes: Hermes) -> None:
        assert "hidden: it needs the tool rocket" in hermes("skills", "show", "deploy").stdout
        assert "invalid: it does not begin" in hermes("skills", "show", "broken").stdout

    def test_json_has_text_and_files(self, hermes: Hermes) -> None:
        item = json.loads(hermes("skills", "show", "shop", "--json").stdout)["item"]
        assert (item["files"], item["text"]) == (["SKILL.md", "notes.md"], "# shop\n\nDo it well.")

    def test_unknown_skill_exits_with_3(self, hermes: Hermes) -> None:
        done = hermes("skills", "show", "shopp")
        assert (done.returncode, done.stdout) == (3, "")
        assert "did you mean shop?" in done.stderr

    def test_terminal_codes_of_a_skill_are_not_written(self, hermes: Hermes) -> None:
        write_skill(hermes.home, "evil", skill_text("evil", body="\x1b]0;title\x07 \x1b[2J"))
        assert "\x1b" not in hermes("skills", "show", "evil").stdout


class TestQuestion:
    ASK = '!tool skill_view {"name": "shop"}'

    def test_value_is_asked_for_without_showing_it(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().enter(self.ASK).until("(not shown; Enter for none):")
            terminal.type(f"s3cret{ENTER}").until("Do it well.").until_prompt()
            assert "SHOP_TOKEN is not set." in terminal.text
            assert b"s3cret" not in terminal.raw
        assert (hermes.home / ".env").read_text() == "SHOP_TOKEN='s3cret'\n"
        assert (hermes.home / ".env").stat().st_mode & 0o777 == 0o600
        assert b"s3cret" not in hermes.database.read_bytes()

    def test_enter_gives_no_value(self, hermes: Hermes) -> None:
        with Terminal(hermes) as terminal:
            terminal.until_prompt().enter(self.ASK).until("(not shown; Enter for none):")
            terminal.type(ENTER).until("Setup needed").until_prompt()
        assert not (hermes.home / ".env").exists()

    def test_without_a_terminal_nothing_is_asked(self, hermes: Hermes) -> None:
        done = hermes("-Q", "-q", self.ASK)
        assert "Setup needed" in done.stdout
        assert not (hermes.home / ".env").exists()
