"""No text makes a regular expression of the project slow: every pattern is tried on 100 KB of its worst input."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from hermes.cli.display import times
from hermes.query import analyze, snippet
from hermes.query.tree import Part, Words
from hermes.state import json_text, owner
from hermes.state.sessions import title_rules
from hermes.state.sqlite.schema import definitions
from hermes.state.sqlite.search import trigrams
from tests.support.patterns import attacks, is_quick_on, patterns, unnamed

MADE_OF_WORDS: list[Words | Part] = [
    Words(("alpha", "beta", "gamma"), "alpha beta-gamma"),
    Words(("a", "a", "a", "b"), "a a a b"),
    Words(("__init__",), "__init__"),
    Part("over the sea"),
]
MADE_LATER: dict[str, Callable[[], list[re.Pattern[str]]]] = {
    "hermes.query.analyze:_joints": lambda: [analyze._joints()],
    "hermes.query.analyze:_patterns": lambda: list(analyze._patterns()),
    "hermes.query.snippet:_patterns": lambda: [each for leaf in MADE_OF_WORDS for each in snippet._patterns(leaf)],
    "hermes.state.sqlite.search.trigrams:_inside": lambda: [trigrams._inside()],
    # At most three letters.
    "hermes.query.rank:_mentions": lambda: [re.compile(r"\babc")],
    # Looks at the names of a few programs.
    "hermes.agent.safety.scanning.programs:is_computed": list,
    # Alternatives of a table, for single words.
    "hermes.agent.safety.commands:bare_command": list,
    # The end tag of one element.
    "hermes.web.html_text:_raw": lambda: [re.compile(r"</script(?=[\s/>])", re.IGNORECASE)],
    # Looks at each line of a small file of settings; it is made of the name of a variable.
    "hermes.agent.skills.variables:write_variable": list,
    # Its module holds what it makes.
    "hermes.agent.safety.protected_names:_one_of": list,
    "hermes.agent.safety.changeable_places:_one_of": list,
    # The end tag of a thought.
    "hermes.cli.chat.terminal.folded_thoughts:_partition": lambda: [re.compile("</think>", re.IGNORECASE)],
    # Text that stands for itself, with both kinds of line breaks.
    "hermes.agent.tools.editing.replacement:replace_part": lambda: [re.compile("aa\r?\naa\r?\naa"), re.compile("aaab")],
    # Compiled on first use, because commands must start fast.
    "hermes.cli.display.times:parse_moment": lambda: [re.compile(times._AGE)],
    "hermes.gateway.platform:_make": lambda: [re.compile(r"\W")],
    "hermes.state.json_text:mark_surrogates": lambda: [re.compile(json_text._PAIR)],
    "hermes.state.json_text:unmark_surrogates": lambda: [re.compile(json_text._MARKED_PAIR)],
    "hermes.state.owner:whatsapp_digits": lambda: [*map(re.compile, (owner._WHATSAPP_NUMBER, owner._SEPARATORS))],
    "hermes.state.sessions.title_rules:sanitize": lambda: [re.compile(title_rules._INVISIBLE)],
    "hermes.state.sqlite.schema.definitions:_kind_and_name": lambda: [re.compile(definitions._BEGINNING)],
    "hermes.state.sqlite.schema.definitions:_must_be_removed": lambda: [re.compile(definitions._PLAIN_INDEX)],
    "hermes.state.sqlite.schema.definitions:_rules": lambda: [
        *map(re.compile, (definitions._WORD, definitions._EXPRESSION_AS_DEFAULT, definitions._REFERENCES))
    ],
    "hermes.state.sqlite.schema.definitions:_without_literals": lambda: [re.compile(definitions._COMMENT_OR_QUOTED)],
    # These look at the names of files, which are short, and are made of the name of the database.
    "hermes.state.sqlite.backup.backup:backups_in": list,
    "hermes.state.sqlite.backup.backup:_next_name": list,
    "hermes.state.sqlite.backup.backup:_remove_leftovers": list,
    "hermes.state.sqlite.backup.copies:copies_of": list,
    "hermes.state.sqlite.repair.working_copy:remove_leftovers": list,
}
"""Patterns that a function compiles when it is called, with their functions."""


def slow_attack(pattern: re.Pattern[Any], methods: set[str]) -> str | None:
    """Return the first input that takes too long, shortened."""
    for attack in attacks(pattern):
        for method in sorted(methods):
            if not is_quick_on(pattern, method, attack):
                return f"{method} on {attack.text()[:80]!r}..."
    return None


@pytest.mark.parametrize("name", sorted(patterns()))
def test_pattern_is_fast_on_100_kb_of_its_own_prefixes(name: str) -> None:
    known = patterns()[name]
    assert slow_attack(known.pattern, known.methods) is None, known.pattern.pattern


@pytest.mark.parametrize("place", MADE_LATER)
def test_pattern_compiled_later_is_fast_too(place: str) -> None:
    assert [slow for each in MADE_LATER[place]() if (slow := slow_attack(each, {"search", "sub"}))] == []


def test_every_pattern_has_a_name_in_its_module_or_is_listed_here() -> None:
    assert unnamed() == sorted(MADE_LATER)


@pytest.mark.parametrize("bad", [r"(a+)+$", r"\b[\w-]*token[\w-]*=", r"<x>.*?</x>", r"://[^:/@\s]*:[^@\s]*@"])
def test_slow_patterns_are_detected(bad: str) -> None:
    assert slow_attack(re.compile(bad, re.DOTALL), {"search"}) is not None
