"""The table of the gateway's numbered faults names every one, and each with tests that exist."""

from __future__ import annotations

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
TESTS = ROOT / "tests" / "gateway" / "reliability"
PAGE = ROOT / "docs" / "reference" / "reliability.md"
FAULTS = 24


def numbered_tests() -> dict[int, set[str]]:
    """The tests that exist, by the number of their fault, as `file: name`."""
    found: dict[int, set[str]] = {}
    for file in TESTS.glob("test_*.py"):
        for node in ast.parse(file.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef) and (match := re.match(r"test_(\d\d)_", node.name)):
                found.setdefault(int(match[1]), set()).add(f"{file.name}: {node.name}")
    return found


def listed_tests() -> dict[int, set[str]]:
    """The tests that the table names."""
    rows = re.findall(r"^\| (\d+) \|[^|]+\|([^|]+)\|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return {
        int(number): {f"{file}: {name}" for file, name in re.findall(r"`(test_\w+\.py)`: `(test_\w+)`", cell)}
        for number, cell in rows
    }


def test_each_fault_has_a_test() -> None:
    assert sorted(numbered_tests()) == list(range(1, FAULTS + 1))


def test_the_table_names_the_tests_of_each_fault() -> None:
    assert listed_tests() == numbered_tests()
