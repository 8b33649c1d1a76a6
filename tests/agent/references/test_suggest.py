"""Completions of references, and the files that they come from."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.agent.references import listing
from hermes.agent.references.listing import list_project, walk
from hermes.agent.references.suggest import FORMS, MAX_SUGGESTIONS, suggest_references, typed_reference
from tests.agent.tools.test_repositories import Repository
from tests.agent.tools.workbench import Workbench

FILES = (
    "README.md",
    "docs/my guide.md",
    "src/app.py",
    "src/deep/parse.py",
    "src/deep/.env",
    "src/key.pem",
    "a\x1b.txt",
)


@pytest.mark.parametrize(
    ("text", "typed"),
    [
        ("see @", "@"),
        ("see @fi", "@fi"),
        ("see @file:src/a", "@file:src/a"),
        ('see @file:"my fi', '@file:"my fi'),
        ("@folder:sr", "@folder:sr"),
        ("ada@exa", ""),
        ("see @file:a.py ", ""),
        ("\\@di", ""),
        ("", ""),
    ],
)
def test_reference_being_typed_is_found(text: str, typed: str) -> None:
    assert typed_reference(text) == typed


@pytest.mark.parametrize(
    ("typed", "suggested"),
    [
        ("@", list(FORMS)),
        ("@f", ["@file:", "@folder:"]),
        ("@file:app", ["@file:src/app.py"]),
        ("@file:SRC/", ["@file:src/app.py", "@file:src/deep/parse.py"]),
        ("@file:spy", ["@file:src/deep/parse.py", "@file:src/app.py"]),
        ("@file:guide", ['@file:"docs/my guide.md"']),
        ('@file:"my', ['@file:"docs/my guide.md"']),
        ("@folder:d", ["@folder:docs", "@folder:src/deep"]),
        ("@pars", ["@file:src/deep/parse.py"]),
        ("@file:env", []),
        ("@file:pem", []),
        ("@file:zzz", []),
        ("@git:", []),
        ("@url:h", []),
    ],
)
def test_best_references_are_suggested(typed: str, suggested: list[str]) -> None:
    found = suggest_references(typed, lambda: FILES)
    assert [each for each in found if "\x1b" not in each][: len(suggested)] == suggested
    assert bool(found) == bool(suggested)


def test_number_of_suggestions_is_limited() -> None:
    found = suggest_references("@file:a", lambda: [f"a{number}.txt" for number in range(20_000)])
    assert len(found) == MAX_SUGGESTIONS
    assert found[0] == "@file:a0.txt"


def test_list_leaves_out_files_that_git_ignores(bench: Workbench, repo: Repository) -> None:
    for name in ("kept.txt", "built.o", "private.txt", "dir/inner.txt"):
        (bench.work / name).parent.mkdir(exist_ok=True)
        (bench.work / name).write_text("x")
    (bench.work / ".gitignore").write_text("*.o\n")
    (bench.work / ".git" / "info" / "exclude").write_text("private.txt\n")
    assert list_project(bench.context).paths == (".gitignore", "a.txt", "dir/inner.txt", "kept.txt")


def test_list_without_a_repository_leaves_out_hidden_files_and_links_to_directories(
    bench: Workbench, tmp_path: Path
) -> None:
    for name in (".hidden/a", "node_modules/b", "src/c.py"):
        (bench.work / name).parent.mkdir()
        (bench.work / name).write_text("x")
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "secret.txt").write_text("x")
    (bench.work / "link").symlink_to(tmp_path / "other")
    assert list_project(bench.context).paths == ("link", "src/c.py")


def test_list_is_limited(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(10):
        (tmp_path / f"{number}.txt").write_text("")
    monkeypatch.setattr(listing, "MAX_FILES", 4)
    found = walk(tmp_path)
    assert (len(found.paths), found.is_complete) == (4, False)
    assert walk(tmp_path, seconds=-1).is_complete is False


def test_unreadable_directory_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("")
    assert walk(tmp_path / "missing").paths == ()
    (tmp_path / "closed").mkdir(mode=0o000)
    assert "a.txt" in walk(tmp_path).paths
    os.chmod(tmp_path / "closed", 0o700)
