"""Which texts are references, and what they name."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hermes.agent.references.parse import Lines, find_references, has_references, write_reference
from tests.support.quickness import is_quick

NAMED = [
    ("see @file:a.py", [("file", "a.py", None)]),
    ("@file:a.py:3", [("file", "a.py", Lines(3, 3))]),
    ("@file:a.py:3-9", [("file", "a.py", Lines(3, 9))]),
    ("@file:a.py:9-3", [("file", "a.py", Lines(9, 3))]),
    ("@file:a.py:0", [("file", "a.py", Lines(0, 0))]),
    ('@file:"my file.txt":3-9', [("file", "my file.txt", Lines(3, 9))]),
    ("@file:'my file.txt'", [("file", "my file.txt", None)]),
    ("@file:`my file.txt`.", [("file", "my file.txt", None)]),
    ('@file:"a:3"', [("file", "a:3", None)]),
    ('@file:"a.txt":x', [("file", "a.txt", None)]),
    ("@folder:src/", [("folder", "src/", None)]),
    ("@folder:.", [("folder", ".", None)]),
    ("@folder:. please", [("folder", ".", None)]),
    ("@folder:..", [("folder", "..", None)]),
    ("@folder:../..", [("folder", "../..", None)]),
    ("look at @folder:src/.", [("folder", "src/", None)]),
    ("@folder:src/...", [("folder", "src/", None)]),
    ('@folder:"a b":3', [("folder", "a b", None)]),
    ("@folder:...", [("folder", "..", None)]),
    ("@diff", [("diff", "", None)]),
    ("@staged", [("staged", "", None)]),
    ("(@diff)", [("diff", "", None)]),
    ("what about @diff? and @staged.", [("diff", "", None), ("staged", "", None)]),
    ("@diff: what is wrong", [("diff", "", None)]),
    ("@git:3", [("git", "3", None)]),
    ("@git:", [("git", "", None)]),
    ("@git:abc", [("git", "abc", None)]),
    ("what changed in @git:.", [("git", "", None)]),
    (
        "@file:a.py\u3002 @url:https://example.org/\uff01",
        [("file", "a.py", None), ("url", "https://example.org/", None)],
    ),
    ("@url:https://example.org/a_(b).", [("url", "https://example.org/a_(b)", None)]),
    ("(@url:https://example.org/a)", [("url", "https://example.org/a", None)]),
    ("see @file:a.py, @file:b.py; @file:c.py!", [("file", f"{name}.py", None) for name in "abc"]),
    ("[@file:a.py]", [("file", "a.py", None)]),
    ('"@file:a.py"', [("file", "a.py", None)]),
    ("@file:a(1).py", [("file", "a(1).py", None)]),
    ("@file:a.py: why?", [("file", "a.py", None)]),
    ("@file:a.py @file:a.py", [("file", "a.py", None)]),
    ("line\n\t@file:a.py\n", [("file", "a.py", None)]),
    ("see:@file:a.py", [("file", "a.py", None)]),
    ("@file:ä/日本.txt", [("file", "ä/日本.txt", None)]),
]

PLAIN = [
    "ada@example.org",
    "ada@file:x",
    "bob@diff",
    "@ada",
    "@everyone see this",
    "@files:x",
    "@File:x",
    "@difference",
    "@diff-tool",
    "@diff.com",
    "@diff/x",
    "@diff:x",
    "@diff@host",
    "@staging",
    "https://example.org/@diff",
    "a/@file:x",
    "@@diff",
    "\\@diff",
    "@ diff",
    "@file",
    "@file:",
    "@file: x",
    "@folder:",
    "@url:",
    "@url:!",
    "git@github.com:a/b",
    "",
]


@pytest.mark.parametrize(("text", "named"), NAMED, ids=[each[0] for each in NAMED])
def test_reference_names(text: str, named: list[tuple[str, str, Lines | None]]) -> None:
    found = find_references(text)
    assert [(each.kind, each.value, each.lines) for each in found] == named
    assert all(each.text in text for each in found)


@pytest.mark.parametrize("text", PLAIN)
def test_text_is_no_reference(text: str) -> None:
    assert find_references(text) == []


@pytest.mark.parametrize(
    ("path", "written"),
    [
        ("a.py", "@file:a.py"),
        ("my file.txt", '@file:"my file.txt"'),
        ("a.", '@file:"a."'),
        ("a:3", '@file:"a:3"'),
        ('a "b".txt', "@file:'a \"b\".txt'"),
        ("a(", "@file:a("),
        ("a)", '@file:"a)"'),
        ("a\nb", None),
        ("a\"b'c`d e", None),
    ],
)
def test_path_is_written_so_that_it_is_read_again(path: str, written: str | None) -> None:
    assert write_reference("file", path) == written


@given(st.text(min_size=1, max_size=30))
def test_every_written_reference_names_its_path(path: str) -> None:
    written = write_reference("file", path)
    if written is not None:
        (found,) = find_references(f"see {written} please")
        assert (found.value, found.lines) == (path, None)


@given(st.text(alphabet="@file:diff\"'`()[].,:0123456789- \n\\/a", max_size=200))
def test_any_text_is_read_without_an_error(text: str) -> None:
    assert all(each.text in text for each in find_references(text))


@pytest.mark.parametrize(
    ("text", "count"),
    [
        ('@file:"' * 50_000, 1),
        ("@file:" + ")" * 300_000, 0),
        ("@file:" + ")" * 4_000, 0),
        ("@" * 300_000, 0),
        ("@file:" * 50_000, 0),
        ("@url:" + "(" * 2_000 + ")." * 1_000, 1),
    ],
    ids=["quotes", "too many brackets", "brackets", "signs", "too long", "pairs"],
)
def test_long_hostile_text_is_read(text: str, count: int) -> None:
    assert len(find_references(text)) == count


@pytest.mark.parametrize("unit", ["@file: ", "@diff@", "@url:((( ", "@file:\n", "a@b.example "])
def test_long_text_is_examined_without_delay(unit: str) -> None:
    assert is_quick(lambda: has_references(unit * (10_000_000 // len(unit))))


@pytest.mark.parametrize(("text", "expected"), [("see @diff", True), ("a@b.example", False), ("@file: x", False)])
def test_text_has_references(text: str, expected: bool) -> None:
    assert has_references(text) is expected


def test_long_text_with_a_reference_has_one() -> None:
    assert has_references("word " * 10_000 + "@file:a.txt")
    assert not has_references("word " * 10_000 + "@ada")
