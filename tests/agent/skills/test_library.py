"""Skills in the Hermes home, also hostile directories."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.agent.skills.files import MAX_BYTES, check_path, list_files, read_skill_file
from hermes.agent.skills.library import MAX_SKILLS, SkillLibrary
from hermes.agent.skills.skill import BrokenSkill, Skill
from hermes.agent.skills.texts import MAX_LIST_CHARACTERS, skill_list
from hermes.errors import HermesError, InvalidValue, NotFound
from tests.agent.skills.writing import skill_text, write_skill


def problem_of(home: Path, name: str) -> str:
    found = SkillLibrary(home).get(name)
    assert isinstance(found, BrokenSkill)
    return found.problem


class TestFinding:
    def test_home_without_skills_has_none(self, home: Path) -> None:
        assert SkillLibrary(home).all() == []

    def test_skills_are_found_in_categories_and_sorted_by_name(self, home: Path) -> None:
        write_skill(home, "zip")
        write_skill(home, "ops/deploy")
        write_skill(home, "ops/web/check")
        found = SkillLibrary(home).usable()
        assert [(each.name, each.category) for each in found] == [("check", "ops/web"), ("deploy", "ops"), ("zip", "")]

    def test_directory_inside_a_skill_is_no_skill(self, home: Path) -> None:
        write_skill(home, "deploy")
        write_skill(home, "deploy/inner")
        assert [each.name for each in SkillLibrary(home).all()] == ["deploy"]

    def test_hidden_directories_and_loose_files_are_ignored(self, home: Path) -> None:
        write_skill(home, ".hub/secret")
        (home / "skills" / "SKILL.md").write_text(skill_text("loose"))
        assert SkillLibrary(home).all() == []

    def test_of_two_skills_with_one_name_the_first_counts(self, home: Path) -> None:
        write_skill(home, "b/deploy")
        write_skill(home, "a/deploy")
        found = SkillLibrary(home).all()
        assert [type(each) for each in found] == [Skill, BrokenSkill]
        assert found[0].directory.parent.name == "a"
        assert "has the same name" in getattr(found[1], "problem", "")

    def test_skill_does_not_take_the_place_of_another_one_by_its_frontmatter(self, home: Path) -> None:
        write_skill(home, "z/deploy")
        write_skill(home, "a/innocent", skill_text("deploy"))
        found = SkillLibrary(home).get("deploy")
        assert (type(found), found.directory.name) == (Skill, "deploy")

    def test_change_of_a_file_is_seen(self, home: Path) -> None:
        library = SkillLibrary(home)
        directory = write_skill(home, "deploy")
        assert library.usable()[0].description == "How to deploy"
        (directory / "SKILL.md").write_text("---\ndescription: New\n---\n")
        assert library.usable()[0].description == "New"

    def test_unknown_name_suggests_a_similar_one(self, home: Path) -> None:
        write_skill(home, "deploy")
        with pytest.raises(NotFound, match="did you mean deploy"):
            SkillLibrary(home).get("deplyo")

    def test_number_of_skills_is_limited(self, home: Path) -> None:
        for number in range(MAX_SKILLS + 5):
            write_skill(home, f"s{number}", "---\ndescription: x\n---\n")
        found = SkillLibrary(home).all()
        assert sum(isinstance(each, Skill) for each in found) == MAX_SKILLS
        assert any(isinstance(each, BrokenSkill) and "too many" in each.problem for each in found)


class TestHostileDirectories:
    def test_skill_that_others_can_write_is_refused(self, home: Path) -> None:
        (write_skill(home, "deploy") / "SKILL.md").chmod(0o666)
        assert "other users can write" in problem_of(home, "deploy")

    def test_directory_that_others_can_write_is_refused(self, home: Path) -> None:
        write_skill(home, "deploy").chmod(0o777)
        assert "other users can write" in problem_of(home, "deploy")

    def test_category_that_others_can_write_is_refused(self, home: Path) -> None:
        write_skill(home, "ops/deploy").parent.chmod(0o777)
        assert "other users can write" in problem_of(home, "ops")
        assert SkillLibrary(home).usable() == []

    def test_open_skills_directory_is_refused(self, home: Path) -> None:
        write_skill(home, "deploy")
        (home / "skills").chmod(0o777)
        assert SkillLibrary(home).usable() == []

    @pytest.mark.skipif(os.getuid() != 0, reason="only root can give a file away")
    @pytest.mark.parametrize("part", ["SKILL.md", "."])
    def test_skill_of_another_user_is_refused(self, home: Path, part: str) -> None:
        os.chown(write_skill(home, "deploy") / part, 12345, 12345)
        assert "belongs to" in problem_of(home, "deploy")

    def test_linked_directory_is_not_followed(self, home: Path, tmp_path: Path) -> None:
        write_skill(home, "deploy")
        elsewhere = write_skill(tmp_path, "elsewhere")
        (home / "skills" / "link").symlink_to(elsewhere)
        assert "it is a link" in problem_of(home, "link")

    @pytest.mark.parametrize("target", ["/etc/passwd", "other.md", "/nowhere"])
    def test_linked_skill_file_is_not_followed(self, home: Path, target: str) -> None:
        directory = write_skill(home, "deploy", other=skill_text("deploy"))
        (directory / "SKILL.md").unlink()
        (directory / "SKILL.md").symlink_to(target)
        assert "links are not followed" in problem_of(home, "deploy")

    def test_pipe_directory_and_device_are_no_skill_files(self, home: Path) -> None:
        for name in ("pipe", "folder"):
            (write_skill(home, name) / "SKILL.md").unlink()
        os.mkfifo(home / "skills" / "pipe" / "SKILL.md", 0o600)
        (home / "skills" / "folder" / "SKILL.md").mkdir(0o700)
        assert "not a plain file" in problem_of(home, "pipe")
        assert "not a plain file" in problem_of(home, "folder")

    def test_hard_link_to_another_file_is_refused(self, home: Path, tmp_path: Path) -> None:
        (tmp_path / "key").write_text(skill_text("deploy"))
        (tmp_path / "key").chmod(0o600)
        directory = write_skill(home, "deploy")
        (directory / "SKILL.md").unlink()
        os.link(tmp_path / "key", directory / "SKILL.md")
        assert "hard link" in problem_of(home, "deploy")

    @pytest.mark.parametrize("data", [b"\0" * 100, b"\xff\xfe", b"x" * (MAX_BYTES + 1)])
    def test_file_that_is_no_text_or_too_large_is_refused(self, home: Path, data: bytes) -> None:
        (write_skill(home, "deploy") / "SKILL.md").write_bytes(data)
        assert problem_of(home, "deploy")

    def test_name_with_terminal_codes_is_shown_by_numbers(self, home: Path) -> None:
        directory = write_skill(home, "deploy")
        directory.rename(directory.with_name("x\x1b[2J\n"))
        (directory.with_name("x\x1b[2J\n") / "SKILL.md").write_text("---\ndescription: x\n---\n")
        (found,) = SkillLibrary(home).all()
        assert isinstance(found, BrokenSkill)
        assert found.name.isprintable()


class TestFiles:
    @pytest.mark.parametrize(
        "path",
        ["../x", "a/../../x", "/etc/passwd", "a//b", "", ".", "..", ".git/config", "a/.env", "a\\b", "x\n",
         "a/b/c/d/e/f/g", "x" * 400, "\x1b[2J", "id_rsa", "certs/server.pem", "prod.env", "~/x/.ssh"],
    )  # fmt: skip
    def test_path_out_of_the_skill_or_of_a_secret_is_refused(self, path: str) -> None:
        with pytest.raises(InvalidValue):
            check_path(path)

    def test_file_in_a_subdirectory_is_read(self, home: Path) -> None:
        directory = write_skill(home, "deploy")
        (directory / "references").mkdir(0o700)
        (directory / "references" / "api.md").write_text("# API")
        assert read_skill_file(directory, "references/api.md") == "# API"
        assert list_files(directory) == ["SKILL.md", "references/api.md"]

    def test_link_on_the_way_is_refused(self, home: Path, tmp_path: Path) -> None:
        directory = write_skill(home, "deploy")
        (tmp_path / "secret").mkdir(0o700)
        (tmp_path / "secret" / "x.md").write_text("secret")
        (directory / "out").symlink_to(tmp_path / "secret")
        (directory / "x.md").symlink_to(tmp_path / "secret" / "x.md")
        for path in ("out/x.md", "x.md"):
            with pytest.raises(HermesError, match="links are not followed"):
                read_skill_file(directory, path)
        assert list_files(directory) == ["SKILL.md"]

    def test_missing_file_is_reported(self, home: Path) -> None:
        with pytest.raises(NotFound, match="no file"):
            read_skill_file(write_skill(home, "deploy"), "nothing.md")


class TestList:
    def test_list_is_sorted_and_always_the_same(self, home: Path) -> None:
        for name in ("zip", "ops/deploy", "a/bake"):
            write_skill(home, name)
        first, second = SkillLibrary(home).usable(), SkillLibrary(home).usable()
        assert skill_list(first) == skill_list(reversed(second))
        assert skill_list(first).splitlines()[1:] == [
            "- bake: How to bake",
            "- deploy: How to deploy",
            "- zip: How to zip",
        ]

    def test_no_skills_have_no_list(self) -> None:
        assert skill_list([]) == ""

    def test_list_is_limited(self, home: Path) -> None:
        skills = [Skill(f"s{number:04}", "x" * 1000, home) for number in range(400)]
        text = skill_list(skills)
        assert len(text) < MAX_LIST_CHARACTERS + 500
        assert "more are not listed" in text
