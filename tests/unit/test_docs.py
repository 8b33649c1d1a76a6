"""The documents and the locked requirements agree with the code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import MISSING, is_dataclass
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from hermes import errors
from hermes.config import Config
from hermes.section import setting_fields
from hermes.state.provider import SessionDBProvider

ROOT = Path(__file__).parents[2]
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])
CONCEPTS = [
    "session",
    "message",
    "turn",
    "conversation",
    "uid",
    "rewind",
    "lineage",
    "compression child",
    "chain",
    "root",
    "tip",
    "branch",
    "delegate",
    "owner",
    "operator",
    "everybody",
    "asker",
    "view",
    "lane",
    "store",
    "engine",
    "spool",
    "ledger",
    "migration",
    "usage event",
    "compression lock",
    "index",
    "backlog",
    "stale",
    "epoch",
    "budget",
    "snippet",
    "window",
    "recall",
]


def settings(section: Any, prefix: str = "") -> Iterator[tuple[str, object]]:
    """Yield every dotted key with its default."""
    hints = get_type_hints(section)
    for name, declared in setting_fields(section).items():
        if is_dataclass(hints[name]):
            yield from settings(hints[name], f"{prefix}{name}.")
        else:
            yield f"{prefix}{name}", declared.default


def as_written(default: object) -> str:
    if default is None or default is MISSING:
        return "none"
    if isinstance(default, float):
        return f"`{default:g}`"
    return f"`{str(default).lower()}`"


def pins(lock: str) -> dict[str, str]:
    text = (ROOT / "requirements" / lock).read_text()
    return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", text, flags=re.MULTILINE))


@pytest.mark.parametrize(("key", "default"), list(settings(Config)))
def test_every_setting_is_documented_with_its_default(key: str, default: object) -> None:
    text = (ROOT / "docs" / "guide" / "configuration.md").read_text()
    row = re.search(rf"^\| `{re.escape(key)}` \|.*", text, flags=re.MULTILINE)
    assert row, f"docs/guide/configuration.md has no row for {key}"
    assert f"| {as_written(default)} |" in row[0]


@pytest.mark.parametrize("concept", CONCEPTS)
def test_every_concept_is_defined(concept: str) -> None:
    assert f"**{concept}**" in (ROOT / "docs" / "guide" / "concepts.md").read_text().lower()


@pytest.mark.parametrize("command", ["make run", "make test"])
def test_the_readme_shows_the_command_early(command: str) -> None:
    assert command in "\n".join((ROOT / "README.md").read_text().splitlines()[:20])


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_link_between_documents_leads_somewhere(document: Path) -> None:
    links = re.findall(r"\]\((?!https?:|#)([^)#]+)", document.read_text())
    missing = [link for link in links if not (document.parent / link).exists()]
    assert missing == []


def test_every_document_is_in_the_index() -> None:
    index = (ROOT / "docs" / "README.md").read_text() + (ROOT / "docs" / "decisions" / "README.md").read_text()
    unlisted = [
        each.name for each in (ROOT / "docs").rglob("*.md") if each.name != "README.md" and each.name not in index
    ]
    assert unlisted == []


def test_development_and_use_agree_on_versions() -> None:
    dev = pins("dev.txt")
    assert {name: dev.get(name) for name in pins("run.txt")} == pins("run.txt")


@pytest.mark.parametrize("lock", ["run.txt", "dev.txt"])
def test_a_lock_has_hashes_and_names_no_host(lock: str) -> None:
    text = (ROOT / "requirements" / lock).read_text()
    assert text.count("--hash=sha256:") >= len(pins(lock)) > 0
    assert "://" not in text


@pytest.mark.parametrize("name", [name for name in dir(SessionDBProvider) if name.islower() and name[0] != "_"])
def test_every_operation_of_the_store_is_in_its_reference(name: str) -> None:
    assert re.search(rf"`[^`]*\b{name}\b", (ROOT / "docs/reference/state.md").read_text())


@pytest.mark.parametrize("name", errors.__all__)
def test_every_error_is_documented_where_it_belongs(name: str) -> None:
    pages = {errors.ModelError: "docs/guide/models.md", errors.WebError: "docs/guide/web.md"}
    page = next((page for kind, page in pages.items() if issubclass(getattr(errors, name), kind)), None)
    page = page or "docs/reference/state.md"
    assert f"`{name}`" in (ROOT / page).read_text()
