"""The pages for people who change the code name only what exists, and leave no folder out."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
CODE = ROOT / "src" / "hermes"
PAGES = ["docs/reference/architecture.md", "CONTRIBUTING.md"]
ARCHITECTURE = (ROOT / PAGES[0]).read_text(encoding="utf-8")

SUFFIXES = (".py", ".sql", ".md", ".toml", ".txt")
NOT_OURS = {
    *(
        "hermes",
        "make",
        "uv",
        "HERMES_TEST_PG_DSN",
        "HERMES_TEST_MYSQL_DSN",
        "NNNN_name.sql",
        "x.py",
        "state.db",
        "talk.html",
        "talk.md",
        "titles.py",
        "resolve_title",
        "is_expired",
    ),
    *(
        "timeout_s",
        "deletion_rules",
        "disk_usage",
        "working_copy",
        "TypedDict",
        "test_repeated_uid_returns_the_first_id",
    ),
}
"""Words in backticks that name nothing here: examples, other programs, a database file, Python itself."""
NOTES = {"index_epoch", "making_tables"}
"""Keys of `state_meta`."""


def blocks(page: str) -> list[str]:
    """The paragraphs, items of lists and rows of tables of a page, without what is drawn or run."""
    text = re.sub(r"^```.*?^```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    return re.split(r"\n(?=\n|- |\d+\. |\|)", text)


def quoted(text: str) -> list[str]:
    """What is in backticks."""
    return re.findall(r"`([^`\n]+)`", text)


def paths_of(text: str) -> list[str]:
    """The paths of modules, folders and documents in a text."""
    found = [each for each in quoted(text) if re.fullmatch(r"[\w./-]+", each) and not each.startswith(("/", "."))]
    return [each for each in found if each not in NOT_OURS and ("/" in each or each.endswith(SUFFIXES))]


def located(path: str) -> Path | None:
    """Where a path leads: from the repository, or from the package."""
    return next((base / path for base in (ROOT, CODE) if (base / path).exists()), None)


def symbols_of(text: str) -> list[str]:
    """The names of classes, functions and constants in a text."""
    found = [each.removesuffix("()") for each in quoted(text) if re.fullmatch(r"[A-Za-z_][\w.]*(\(\))?", each)]
    return [each for each in found if not each.endswith(SUFFIXES) and each.split(".")[:2] != ["state", "db"]]


@cache
def defined_in(module: Path) -> frozenset[str]:
    """The names that a module defines, those inside of a class with its name before them too."""
    names: set[str] = set()

    def add(body: list[ast.stmt], prefix: str) -> None:
        for node in body:
            match node:
                case ast.ClassDef(name=name, body=inner):
                    names.add(prefix + name)
                    add(inner, f"{name}.")
                    names.update(each.removeprefix(f"{name}.") for each in list(names) if each.startswith(f"{name}."))
                case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                    names.add(prefix + name)
                case ast.Assign(targets=targets):
                    names.update(prefix + each.id for each in targets if isinstance(each, ast.Name))
                case ast.AnnAssign(target=ast.Name(id=name)):
                    names.add(prefix + name)

    add(ast.parse(module.read_text(encoding="utf-8")).body, "")
    return frozenset(names)


@cache
def names_of_the_schema() -> frozenset[str]:
    """Every word of the statements that create a store, among them its tables and columns."""
    scripts = [path.read_text(encoding="utf-8") for path in CODE.rglob("*.sql")]
    statements = [re.sub(r"--[^\n]*", "", script) for script in scripts]
    return frozenset(word for each in statements for word in re.findall(r"\w+", each))


@cache
def settings() -> frozenset[str]:
    """The names of all settings."""
    page = (ROOT / "docs/guide/configuration.md").read_text(encoding="utf-8")
    return frozenset(re.findall(r"^\| `([\w.]+)` \|", page, flags=re.MULTILINE))


def is_defined(symbol: str, block: str) -> bool:
    """Whether a symbol is defined in a module that the same block names, or is a word of the schema or a setting."""
    if symbol in NOT_OURS | NOTES or symbol in names_of_the_schema() or symbol in settings():
        return True
    modules = [path for path in map(located, paths_of(block)) if path is not None and path.suffix == ".py"]
    return any(symbol in defined_in(module) for module in modules)


@pytest.mark.parametrize("page", PAGES)
def test_every_path_on_the_page_exists(page: str) -> None:
    missing = [path for block in blocks(page) for path in paths_of(block) if located(path) is None]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_every_symbol_on_the_page_is_defined_in_the_module_named_with_it(page: str) -> None:
    missing = [
        symbol
        for block in blocks(page)
        for symbol in symbols_of(block)
        if not is_defined(symbol, block) and located(symbol) is None
    ]
    assert missing == []


@pytest.mark.parametrize("page", PAGES)
def test_every_make_target_on_the_page_exists(page: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    named = set(re.findall(r"`make ([a-z-]+)", (ROOT / page).read_text(encoding="utf-8")))
    assert named <= targets


def test_every_folder_of_the_code_is_in_the_folder_map() -> None:
    folders = [path for path in CODE.rglob("*") if path.is_dir() and path.name != "__pycache__"]
    with_files = [path for path in folders if any(each.is_file() for each in path.iterdir())]
    rows = re.findall(r"^\| `([\w/]+)/` \|", ARCHITECTURE, flags=re.MULTILINE)
    assert sorted(rows) == sorted(str(path.relative_to(CODE)) for path in with_files)


def test_every_page_of_decisions_has_a_row_with_its_number() -> None:
    pages = sorted(path.name for path in (ROOT / "docs" / "decisions").glob("0*.md"))
    index = (ROOT / "docs" / "decisions" / "README.md").read_text(encoding="utf-8")
    assert re.findall(r"^\| \[\d{4}\]\((\d{4}-[\w-]+\.md)\) \|", index, flags=re.MULTILINE) == pages
    assert [name[:4] for name in pages] == [f"{number:04}" for number in range(1, len(pages) + 1)]
