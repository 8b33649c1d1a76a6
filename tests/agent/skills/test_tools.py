"""The tools for skills: reading, changing, and the variables that skills need."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from hermes.agent.safety.approval import Approvals, Decision
from hermes.agent.safety.permits import Permits
from hermes.agent.skills.session_skills import MAX_SESSIONS, SecretRequest, SkillUse
from hermes.agent.skills.skill import RequiredVariable, Skill
from hermes.agent.skills.variables import store_variable, values_of
from hermes.config import load_variables
from hermes.errors import InvalidValue
from hermes.state.owner import owner_of
from tests.agent.skills.writing import skill_text, with_skills, write_skill
from tests.agent.tools.workbench import Workbench

NEEDS_TOKEN = "required_environment_variables: [{name: SHOP_TOKEN, prompt: Token of the shop, help: see x.example}]"


@dataclass
class Typist:
    """A user who types a fixed value."""

    value: str | None
    asked: list[SecretRequest] = field(default_factory=list)

    def __call__(self, request: SecretRequest) -> str | None:
        self.asked.append(request)
        return self.value


class TestView:
    def test_skill_is_returned_with_its_files(self, bench: Workbench, home: Path) -> None:
        write_skill(home, "deploy", api="# API")
        text = bench.call("skill_view", name="deploy")
        assert "Do it well." in text
        assert "[Other files of this skill, for path: api.md]" in text
        assert bench.call("skill_view", name="deploy", path="api.md") == "# API"
        assert bench.person.asked == []

    @pytest.mark.parametrize("path", ["../other/SKILL.md", "/etc/passwd", "../../config.yaml", ".env", "a/../../x"])
    def test_file_outside_the_skill_is_refused(self, bench: Workbench, home: Path, path: str) -> None:
        write_skill(home, "deploy")
        assert "is not a path inside a skill" in bench.refused("skill_view", name="deploy", path=path)

    def test_hidden_skill_is_refused_with_the_reason(self, bench: Workbench, home: Path) -> None:
        write_skill(home, "deploy", skill_text("deploy", "requires_tools: rocket"))
        assert "it needs the tool rocket" in bench.refused("skill_view", name="deploy")

    @pytest.mark.parametrize("name", ["nothing", "../deploy", "", "a/b", "x\x1b[2J"])
    def test_unknown_skill_is_refused(self, bench: Workbench, home: Path, name: str) -> None:
        write_skill(home, "deploy")
        assert "there is no skill" in bench.refused("skill_view", name=name)

    def test_long_skill_is_limited(self, bench: Workbench, home: Path) -> None:
        write_skill(home, "deploy", skill_text("deploy", body="word " * 40_000))
        assert len(bench.call("skill_view", name="deploy")) <= 50_000


class TestVariables:
    def test_missing_value_is_asked_for_and_stored(self, bench: Workbench, home: Path) -> None:
        write_skill(home, "shop", skill_text("shop", NEEDS_TOKEN))
        typist = Typist("s3cret'\"$x")
        bench.change(ask_secret=typist)
        assert "Setup needed" not in bench.call("skill_view", name="shop")
        (request,) = typist.asked
        assert request == SecretRequest("SHOP_TOKEN", "Token of the shop (for the skill shop)", "see x.example")
        assert load_variables(home, environ={}) == {"SHOP_TOKEN": "s3cret'\"$x"}
        assert (home / ".env").stat().st_mode & 0o777 == 0o600
        bench.call("skill_view", name="shop")
        assert len(typist.asked) == 1

    def test_secret_of_the_configuration_is_not_asked_for_and_not_replaced(self, bench: Workbench, home: Path) -> None:
        write_skill(home, "shop", skill_text("shop", NEEDS_TOKEN))
        (home / "config.yaml").write_text("model:\n  api_key: ${SHOP_TOKEN}\n")
        (home / ".env").write_text("SHOP_TOKEN=own\n")
        for each in ("config.yaml", ".env"):
            (home / each).chmod(0o600)
        typist = Typist("another")
        bench.change(ask_secret=typist)
        assert "no skill gets it" in bench.call("skill_view", name="shop")
        assert typist.asked == []
        with pytest.raises(InvalidValue):
            store_variable(home, "SHOP_TOKEN", "another")
        assert load_variables(home, environ={}) == {"SHOP_TOKEN": "own"}

    def test_no_value_leads_to_a_hint(self, bench: Workbench, home: Path) -> None:
        write_skill(home, "shop", skill_text("shop", NEEDS_TOKEN))
        bench.change(ask_secret=Typist(None))
        text = bench.call("skill_view", name="shop")
        assert "- SHOP_TOKEN (see x.example)" in text
        assert "Never ask for a value in the conversation" in text
        assert not (home / ".env").exists()

    def test_chat_is_never_asked(self, bench: Workbench, home: Path) -> None:
        write_skill(home, "shop", skill_text("shop", NEEDS_TOKEN))
        typist = Typist("value")
        bench.change(ask_secret=typist, source="telegram", owner=owner_of("telegram", "7"))
        assert "Setup needed" in bench.call("skill_view", name="shop")
        assert typist.asked == []

    def test_commands_get_the_variable_only_after_the_skill_is_in_use(self, bench: Workbench, home: Path) -> None:
        write_skill(home, "shop", skill_text("shop", NEEDS_TOKEN))
        store_variable(home, "SHOP_TOKEN", "s3cret")
        store_variable(home, "OTHER_TOKEN", "other")
        command = 'echo "${SHOP_TOKEN:-none} ${OTHER_TOKEN:-none}" | cat'
        assert bench.call("terminal", command=command).startswith("none none\n")
        bench.call("skill_view", name="shop")
        assert bench.call("terminal", command=command).startswith("s3cret none\n")
        assert "with the variables SHOP_TOKEN of the skills in use" in bench.person.asked[-1].detail
        assert "s3cret" not in bench.person.asked[-1].detail

    def test_other_session_gets_no_variable(self, bench: Workbench, home: Path) -> None:
        write_skill(home, "shop", skill_text("shop", NEEDS_TOKEN))
        store_variable(home, "SHOP_TOKEN", "s3cret")
        bench.call("skill_view", name="shop")
        with_skills(bench)
        assert bench.call("terminal", command='echo "${SHOP_TOKEN:-none}" | cat').startswith("none\n")

    def test_unasked_command_gets_no_variable(self, bench: Workbench, home: Path) -> None:
        write_skill(home, "shop", skill_text("shop", NEEDS_TOKEN))
        store_variable(home, "SHOP_TOKEN", "s3cret")
        skills = with_skills(bench)
        bench.call("skill_view", name="shop")
        assert skills.variables({}) == {"SHOP_TOKEN": "s3cret"}
        assert bench.call("terminal", command="pwd")
        assert bench.person.asked == []

    def test_variable_that_the_settings_use_is_not_passed(self, home: Path) -> None:
        (home / "config.yaml").write_text("sessiondb: {dsn: 'postgresql://x:${SHOP_TOKEN}@h/d'}")
        (home / "config.yaml").chmod(0o600)
        assert values_of(["SHOP_TOKEN", "A_TOKEN", "PATH"], home, {"SHOP_TOKEN": "x", "A_TOKEN": "y", "PATH": "z"}) == {
            "A_TOKEN": "y"
        }

    @pytest.mark.parametrize(
        "value", ["plain", "it's", 'quo"ted', "back\\slash", "a#b c", "  edge", "$X `x`", "ü", "'\"\\n"]
    )
    def test_stored_value_is_read_back(self, home: Path, value: str) -> None:
        (home / ".env").write_text("# mine\nA=1\nexport SHOP_TOKEN=old\nB=2")
        (home / ".env").chmod(0o600)
        store_variable(home, "SHOP_TOKEN", value)
        assert load_variables(home, environ={}) == {"A": "1", "B": "2", "SHOP_TOKEN": value}
        assert (home / ".env").read_text().startswith("# mine\nA=1\nB=2\n")

    @pytest.mark.parametrize(
        ("name", "value"),
        [("A", ""), ("A", "x\ny"), ("A", "x\0"), ("A", "x" * 9000), ("A B", "x"), ("PATH", "x"), ("A", "\ud800")],
    )
    def test_unusable_value_is_not_stored(self, home: Path, name: str, value: str) -> None:
        with pytest.raises(InvalidValue):
            store_variable(home, name, value)
        assert not (home / ".env").exists()

    def test_use_moves_with_a_session_and_ends_with_it(self, home: Path) -> None:
        use, skill = SkillUse(), Skill("a", "x", home, variables=(RequiredVariable("A_KEY"),))
        use.add("s1", skill)
        use.move("s1", "s2")
        assert (use.names("s1"), use.names("s2")) == ([], ["A_KEY"])
        use.forget("s2")
        assert use.names("s2") == []
        for number in range(MAX_SESSIONS + 1):
            use.add(f"n{number}", skill)
        assert use.names("n0") == []


class TestManage:
    def test_new_skill_is_written_after_the_user_has_seen_it(self, bench: Workbench, home: Path) -> None:
        bench.call("skill_manage", action="create", name="deploy", content=skill_text("deploy"), category="ops")
        (request,) = bench.person.asked
        assert request.summary == "create the skill ops/deploy"
        assert "+++ b/ops/deploy/SKILL.md" in request.detail
        assert "+Do it well." in request.detail
        file = home / "skills" / "ops" / "deploy" / "SKILL.md"
        assert file.read_text() == skill_text("deploy")
        assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
        assert "Do it well." in bench.call("skill_view", name="deploy")

    def test_update_shows_the_difference(self, bench: Workbench, home: Path) -> None:
        directory = write_skill(home, "deploy")
        bench.call("skill_manage", action="update", name="deploy", content=skill_text("deploy", body="Do it twice."))
        (request,) = bench.person.asked
        assert "-Do it well.\n+Do it twice." in request.detail
        assert "Do it twice." in (directory / "SKILL.md").read_text()

    def test_change_of_line_breaks_is_shown(self, bench: Workbench, home: Path) -> None:
        directory = write_skill(home, "deploy")
        (directory / "run.sh").write_text("echo a\n")
        bench.call("skill_manage", action="update", name="deploy", path="run.sh", content="echo a\r\n")
        (request,) = bench.person.asked
        assert "-echo a\n+echo a\\r" in request.detail

    def test_large_change_is_compared_quickly(self, bench: Workbench, home: Path) -> None:
        directory = write_skill(home, "deploy")
        (directory / "data.txt").write_text("".join(f"{number % 101}\n" for number in range(60_000)))
        content = "".join(f"{number * 7 % 101}\n" for number in range(60_000))
        bench.call("skill_manage", action="update", name="deploy", path="data.txt", content=content)
        assert (directory / "data.txt").read_text() == content

    @pytest.mark.parametrize(
        ("category", "reason"),
        [("deploy", "deploy is a skill"), ("deploy/inner", "deploy is a skill"), ("a/b/c/d", "at most 3 directories")],
    )
    def test_place_where_no_skill_is_found_is_refused(
        self, bench: Workbench, home: Path, category: str, reason: str
    ) -> None:
        write_skill(home, "deploy")
        said = bench.refused("skill_manage", action="create", name="new", content=skill_text("new"), category=category)
        assert reason in said
        bench.call("skill_manage", action="create", name="new", content=skill_text("new"), category="a/b/c")
        assert "Do it well." in bench.call("skill_view", name="new")

    def test_another_file_is_added_changed_and_deleted(self, bench: Workbench, home: Path) -> None:
        directory = write_skill(home, "deploy")
        for text in ("one\n", "two\n"):
            bench.call("skill_manage", action="update", name="deploy", path="references/a.md", content=text)
            assert (directory / "references" / "a.md").read_text() == text
        bench.call("skill_manage", action="delete", name="deploy", path="references/a.md")
        assert not (directory / "references" / "a.md").exists()
        assert (directory / "SKILL.md").exists()

    def test_deletion_names_all_files(self, bench: Workbench, home: Path) -> None:
        directory = write_skill(home, "deploy", notes="x")
        bench.call("skill_manage", action="delete", name="deploy")
        (request,) = bench.person.asked
        assert request.risk == "high"
        assert "- SKILL.md\n- notes.md" in request.detail
        assert not directory.exists()

    @pytest.mark.parametrize("action", ["create", "update", "delete"])
    def test_denied_change_changes_nothing(self, bench: Workbench, home: Path, action: str) -> None:
        directory = write_skill(home, "deploy")
        bench.person.decision = Decision.DENY
        name = "other" if action == "create" else "deploy"
        assert "has not allowed" in bench.refused(
            "skill_manage", action=action, name=name, content=skill_text(name, body="Other.")
        )
        assert (directory / "SKILL.md").read_text() == skill_text("deploy")
        assert sorted(os.listdir(home / "skills")) == ["deploy"]

    def test_every_change_is_asked_for(self, bench: Workbench, home: Path) -> None:
        bench.person.decision = Decision.ALWAYS
        for _ in range(2):
            bench.call("skill_manage", action="create", name="deploy", content=skill_text("deploy"))
            bench.call("skill_manage", action="delete", name="deploy")
        assert len(bench.person.asked) == 4
        assert not (home / "approvals").exists()

    def test_chat_never_changes_skills(self, bench: Workbench, home: Path) -> None:
        approvals = Approvals("ask", Permits(home), operator=lambda request, origin: Decision.ALWAYS)
        bench.change(source="telegram", owner=owner_of("telegram", "7"), approvals=approvals)
        refusal = bench.refused("skill_manage", action="create", name="deploy", content=skill_text("deploy"))
        assert "only at the terminal" in refusal
        assert not (home / "skills").exists()

    @pytest.mark.parametrize(
        ("arguments", "problem"),
        [
            ({"action": "create", "name": "../x", "content": skill_text("x")}, "consists of small letters"),
            ({"action": "create", "name": "x/y", "content": skill_text("x")}, "consists of small letters"),
            ({"action": "create", "name": ".x", "content": skill_text("x")}, "consists of small letters"),
            ({"action": "create", "name": "x", "content": skill_text("y")}, "has the name y, not x"),
            ({"action": "create", "name": "x", "content": "# No frontmatter"}, "is no SKILL.md"),
            ({"action": "create", "name": "x", "content": skill_text("x"), "category": "../.."}, "not a path inside"),
            ({"action": "create", "name": "x", "content": skill_text("x"), "category": "A b"}, "a category consists"),
            ({"action": "create", "name": "x"}, "needs content"),
            ({"action": "create", "name": "deploy", "content": skill_text("deploy")}, "already"),
            ({"action": "update", "name": "deploy", "content": "x", "path": "../x"}, "not a path inside"),
            ({"action": "update", "name": "deploy", "content": "x", "path": ".env"}, "not a path inside"),
            ({"action": "update", "name": "deploy", "content": "x" * 300_000, "path": "x.md"}, "at most"),
            ({"action": "update", "name": "nothing", "content": skill_text("x")}, "there is no skill"),
            ({"action": "delete", "name": "nothing"}, "there is no skill"),
            ({"action": "delete", "name": "deploy", "path": "nothing.md"}, "has no file"),
        ],
    )
    def test_unusable_change_is_refused_without_a_question(
        self, bench: Workbench, home: Path, arguments: dict[str, str], problem: str
    ) -> None:
        write_skill(home, "deploy")
        assert problem in bench.refused("skill_manage", **arguments)
        assert bench.person.asked == []
        assert sorted(os.listdir(home / "skills")) == ["deploy"]

    def test_file_that_changes_during_the_question_is_not_overwritten(self, bench: Workbench, home: Path) -> None:
        directory = write_skill(home, "deploy")

        def edit(_: object) -> Decision:
            (directory / "SKILL.md").write_text(skill_text("deploy", body="My own words."))
            return Decision.ONCE

        bench.change(approve=edit)
        content = skill_text("deploy", body="Other words.")
        assert "has changed meanwhile" in bench.refused("skill_manage", action="update", name="deploy", content=content)
        assert "My own words." in (directory / "SKILL.md").read_text()

    def test_new_file_is_not_written_through_a_link(self, bench: Workbench, home: Path, tmp_path: Path) -> None:
        directory = write_skill(home, "deploy")
        (tmp_path / "out").mkdir(0o700)
        (directory / "out").symlink_to(tmp_path / "out")
        assert "link" in bench.refused("skill_manage", action="update", name="deploy", path="out/x.md", content="x")
        assert os.listdir(tmp_path / "out") == []

    @pytest.mark.parametrize("category", ["ops", "ops/inner"])
    def test_new_skill_is_not_written_through_a_linked_category(
        self, bench: Workbench, home: Path, tmp_path: Path, category: str
    ) -> None:
        (tmp_path / "out").mkdir(0o700)
        (home / "skills").mkdir(0o700)
        (home / "skills" / "ops").symlink_to(tmp_path / "out")
        change = {"action": "create", "name": "deploy", "content": skill_text("deploy"), "category": category}
        assert "ops is a link, and links are not followed" in bench.refused("skill_manage", **change)
        assert os.listdir(tmp_path / "out") == []
        assert bench.person.asked == []

    def test_category_that_becomes_a_link_during_the_question_is_not_followed(
        self, bench: Workbench, home: Path, tmp_path: Path
    ) -> None:
        (tmp_path / "out").mkdir(0o700)

        def link(_: object) -> Decision:
            (home / "skills").mkdir(0o700)
            (home / "skills" / "ops").symlink_to(tmp_path / "out")
            return Decision.ONCE

        bench.change(approve=link)
        change = {"action": "create", "name": "deploy", "content": skill_text("deploy"), "category": "ops"}
        assert "ops is a link, and links are not followed" in bench.refused("skill_manage", **change)
        assert os.listdir(tmp_path / "out") == []

    def test_hidden_characters_are_shown_in_the_question(self, bench: Workbench) -> None:
        content = skill_text("deploy", body="run \u202e \x1b[2J this")
        bench.call("skill_manage", action="create", name="deploy", content=content)
        assert r"\u202e \x1b[2J" in bench.person.asked[0].detail
