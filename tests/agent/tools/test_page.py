"""The page about tools matches the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from hermes.agent.safety.commands import HARMLESS_OPTIONS, READERS
from hermes.agent.safety.environment import NEEDED
from hermes.agent.safety.protected_names import DIRECTORIES, FILES, HARMLESS, HOME_PLACES, SYSTEM_PLACES
from hermes.agent.tools.toolbox import TOOLBOX

PAGE = (Path(__file__).parents[3] / "docs" / "guide" / "tools.md").read_text()
TOOLS = {each["function"]["name"]: each["function"] for each in TOOLBOX.schemas(TOOLBOX.toolsets)}


PROTECTED = {*DIRECTORIES, *FILES, *HARMLESS, *HOME_PLACES, *SYSTEM_PLACES}


@pytest.mark.parametrize("word", sorted({*TOOLS, *TOOLBOX.toolsets, *READERS, *NEEDED, *PROTECTED}))
def test_page_lists_every_protected_name(word: str) -> None:
    assert f"`{word}`" in PAGE


@pytest.mark.parametrize(("command", "options"), HARMLESS_OPTIONS.items())
def test_page_lists_the_harmless_options(command: str, options: tuple[str, ...]) -> None:
    rows = [line for line in PAGE.splitlines() if line.startswith("| ") and f"`{command}`" in line]
    assert any(line.endswith(f"| {', '.join(f'`{each}`' for each in options)} |") for line in rows)


@pytest.mark.parametrize("name", sorted(set(TOOLS) - {"session_search"}))
def test_page_describes_every_parameter_of_each_tool(name: str) -> None:
    section = PAGE.partition(f"\n## `{name}`\n")[2].partition("\n## ")[0]
    assert [each for each in TOOLS[name]["parameters"]["properties"] if f"`{each}`" not in section] == []
