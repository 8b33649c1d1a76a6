"""Every input is parsed into a query."""

from __future__ import annotations

from random import Random

import pytest

from hermes.query.parse import MAX_LEAVES, MAX_WORDS, Query, parse
from hermes.query.tree import Node, Part, Words, all_leaves, replace_leaves, wanted_leaves
from tests.support.trees import tree_text

NASTY = (
    *"\"“”„«»()*-+^:{}[]\\/|&%_#@!?.,;<>=~`$'",
    *" \t\n\u00a0\u3000\u200b\u200d\u200e\u202e\ufeff\0\x01\x1f\x7f\x85",
    *"aZ9ßİıŁéﬁ²½",
    *"世界カガ안ไทय्مُשָ",
    *"👍🏽🇩❤️⃣",
    "\ud800",
    "\udc00",
    "a\u0301",
    " AND ",
    " OR ",
    " NOT ",
    " and ",
    " or ",
    " not ",
    "NEAR(",
    "content:",
    "C++",
    "F#",
    "--",
    "->",
)


def tree_of(typed: str) -> Node:
    tree = parse(typed).tree
    assert tree is not None
    return tree


@pytest.mark.parametrize(
    ("typed", "tree"),
    [
        ("docker", "docker"),
        ("docker compose", "(docker & compose)"),
        ("  docker\t\n compose ", "(docker & compose)"),
        ("docker AND compose", "(docker & compose)"),
        ("docker OR podman", "(docker | podman)"),
        ("docker NOT compose", "(docker & !compose)"),
        ("docker AND NOT compose", "(docker & !compose)"),
        ("docker -compose", "(docker & !compose)"),
        ("-compose docker", "(!compose & docker)"),
        ("NOT docker", "!docker"),
        ("-docker", "!docker"),
        ("NOT NOT docker", "docker"),
        ("NOT -docker", "docker"),
        ("NOT NOT NOT docker", "!docker"),
        ("-docker -compose", "(!docker & !compose)"),
        ("docker docker", "docker"),
        ("docker OR docker", "docker"),
        ("Docker DOCKER docker", "docker"),
        ("NEAR(a b)", "(near_a & b)"),
    ],
)
def test_words_and_operators_form_a_tree(typed: str, tree: str) -> None:
    assert tree_text(parse(typed).tree) == tree


@pytest.mark.parametrize(
    ("typed", "tree"),
    [
        ("a b OR c d", "((a & b) | (c & d))"),
        ("a OR b c", "(a | (b & c))"),
        ("a AND b OR c", "((a & b) | c)"),
        ("a OR b AND c", "(a | (b & c))"),
        ("NOT a b", "(!a & b)"),
        ("NOT a OR b", "(!a | b)"),
        ("a OR NOT b", "(a | !b)"),
        ("NOT a AND NOT b", "(!a & !b)"),
        ("a OR b NOT c", "(a | (b & !c))"),
        ("a OR b OR c", "(a | b | c)"),
        ("(a OR b) c", "((a | b) & c)"),
        ("a (b OR c)", "(a & (b | c))"),
        ("a AND (b OR c) AND d", "(a & (b | c) & d)"),
        ("NOT (a b)", "!(a & b)"),
        ("NOT (a OR b)", "!(a | b)"),
        ("-(a OR b) c", "(!(a | b) & c)"),
        ("NOT (NOT a)", "a"),
        ("((a))", "a"),
        ("(a b) (c d)", "(a & b & c & d)"),
        ("(a OR (b OR c))", "(a | b | c)"),
        ("((a OR b) (c OR d)) OR e", "(((a | b) & (c | d)) | e)"),
        ('"a b" OR c', "(a_b | c)"),
        ('NOT "a b" c', "(!a_b & c)"),
        ('-"a b" c', "(!a_b & c)"),
        ("a OR -b", "(a | !b)"),
    ],
)
def test_not_binds_tightest_then_and_then_or(typed: str, tree: str) -> None:
    assert tree_text(parse(typed).tree) == tree


@pytest.mark.parametrize(
    ("typed", "tree"),
    [
        ("and", "and"),
        ("or", "or"),
        ("not", "not"),
        ("AND", "and"),
        ("OR", "or"),
        ("NOT", "not"),
        ("AND OR", "(and & or)"),
        ("and or not", "(and & or & not)"),
        ("docker and compose", "(docker & and & compose)"),
        ("docker or compose", "(docker & or & compose)"),
        ("docker not compose", "(docker & not & compose)"),
        ("docker and", "docker"),
        ("docker or not", "docker"),
        ("and docker", "docker"),
        ("or not docker", "docker"),
        ("docker AND", "docker"),
        ("docker OR", "docker"),
        ("docker NOT", "docker"),
        ("docker AND OR NOT", "docker"),
        ("AND docker", "docker"),
        ("OR docker", "docker"),
        ("AND OR docker", "docker"),
        ("AND NOT docker", "!docker"),
        ("a AND AND b", "(a & b)"),
        ("a AND OR b", "(a | b)"),
        ("a OR OR b", "(a | b)"),
        ("a OR AND b", "(a | b)"),
        ("a NOT AND b", "(a & b)"),
        ("a NOT OR b", "(a | b)"),
        ("(a AND) b", "(a & b)"),
        ("(OR a) b", "(a & b)"),
        ("(a NOT) b", "(a & b)"),
        ('"AND"', "and"),
        ('a "OR" b', "(a & or & b)"),
        ("And Or", "(and & or)"),
        ("AND,", "and"),
        ("a ORB", "(a & orb)"),
        ("ANDa", "anda"),
    ],
)
def test_dangling_operators_are_dropped_and_lower_case_ones_are_words(typed: str, tree: str) -> None:
    assert tree_text(parse(typed).tree) == tree


@pytest.mark.parametrize("typed", ["", " ", "\t\n", "\u3000", "\u200d", "\ufeff", "\u0301"])
def test_a_query_of_invisible_characters_is_empty(typed: str) -> None:
    assert parse(typed).tree is None


@pytest.mark.parametrize(
    "typed",
    ["docker", "a OR b", "NOT a", "-a", '"a b"', "a*", "*a*", "(a OR b) c", "foo-bar", "世界", "++", "and", "AND"],
)
def test_a_valid_query_is_not_repaired(typed: str) -> None:
    assert parse(typed).repairs == ()


@pytest.mark.parametrize(
    ("typed", "message"),
    [
        ("docker AND", "AND at the end"),
        ("docker or", "or at the end"),
        ("OR docker", "OR at the start"),
        ("(docker", "parenthesis"),
        ('"docker', "quotation mark"),
        ('"" docker', "empty phrase"),
        ("docker ++", "++ has no letters"),
        ("*docker", "inside words"),
        ("(docker NOT) x", "NOT with nothing"),
        (" ".join(f"w{number}" for number in range(MAX_LEAVES + 1)), "only the first"),
        ("-".join(f"w{number}" for number in range(MAX_WORDS + 1)), "only the first"),
        ("(" * 30 + "docker" + ")" * 30, "deeper than"),
    ],
)
def test_a_repair_is_reported(typed: str, message: str) -> None:
    (repair,) = parse(typed).repairs
    assert message in repair


def test_the_same_repair_is_reported_once() -> None:
    assert len(parse('"" "" "" docker').repairs) == 1


def test_a_query_of_five_thousand_words_searches_the_first_ones() -> None:
    tree = tree_of(" ".join(f"w{number}" for number in range(5_000)))
    assert len(list(all_leaves(tree))) == MAX_LEAVES


def test_a_phrase_of_five_thousand_words_searches_the_first_ones() -> None:
    tree = tree_of('"' + " ".join(f"w{number}" for number in range(5_000)) + '"')
    assert isinstance(tree, Words)
    assert len(tree.words) == MAX_WORDS


def test_deep_parentheses_around_a_word_are_the_word() -> None:
    assert tree_text(tree_of("(" * 100 + "docker" + ")" * 100)) == "docker"


def test_excluded_words_are_not_wanted() -> None:
    tree = tree_of("a -b (c OR NOT d) -(e f)")
    assert [leaf.text for leaf in wanted_leaves(tree)] == ["a", "c"]
    assert [leaf.text for leaf in all_leaves(tree)] == list("abcdef")


def test_only_wanted_words_are_replaced() -> None:
    tree = tree_of("a OR (b -a)")
    (first, *_) = all_leaves(tree)
    assert tree_text(replace_leaves(tree, {first: Part("a")})) == "(*a* | (b & !a))"


def random_query(random: Random) -> str:
    return "".join(random.choice(NASTY) for _ in range(random.randint(1, 30)))


@pytest.mark.parametrize("seed", range(4))
def test_nothing_that_can_be_typed_is_an_error(seed: int) -> None:
    random = Random(seed)
    for _ in range(5_000):
        typed = random_query(random)
        assert isinstance(parse(typed), Query), typed


def test_the_same_query_means_the_same_twice() -> None:
    random = Random(5)
    for _ in range(500):
        typed = random_query(random)
        assert parse(typed) == parse(typed)


def test_a_query_in_parentheses_means_the_same() -> None:
    random = Random(6)
    plain = [f"word{number}" for number in range(6)]
    for _ in range(500):
        typed = f" {random.choice(('', 'OR ', 'AND ', 'NOT ', '-'))}".join(random.sample(plain, random.randint(1, 5)))
        assert parse(f"({typed})").tree == parse(typed).tree
