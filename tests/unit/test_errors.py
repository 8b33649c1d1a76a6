"""The tree of errors: class, code, message and hint of each."""

from __future__ import annotations

import re

import pytest

from hermes import errors
from hermes.errors import HermesError, MessageSpooled

DEFINED = [
    each
    for each in vars(errors).values()
    if isinstance(each, type) and issubclass(each, HermesError) and each.__module__ == "hermes.errors"
]


def make(error: type[HermesError]) -> HermesError:
    return MessageSpooled(uid="u1") if error is MessageSpooled else error()


def drawn_tree() -> dict[str, tuple[str, bool, bool]]:
    """Parse the module's docstring: name -> (parent, is also a ValueError, is retryable)."""
    tree: dict[str, tuple[str, bool, bool]] = {}
    open_branches: list[tuple[int, str]] = []
    for line in (errors.__doc__ or "").splitlines():
        found = re.fullmatch(
            r"(?P<lead>[ │├└─]+)(?P<name>[A-Z]\w+)(?P<rest>( \(also ValueError\))?( +retryable)?)", line
        )
        if found is None:
            continue
        depth = len(found["lead"])
        open_branches = [branch for branch in open_branches if branch[0] < depth]
        parent = open_branches[-1][1] if open_branches else "Exception"
        tree[found["name"]] = (parent, "ValueError" in found["rest"], "retryable" in found["rest"])
        open_branches.append((depth, found["name"]))
    return tree


def test_the_error_tree_is_as_drawn() -> None:
    real = {
        each.__name__: (each.__bases__[0].__name__, ValueError in each.__bases__, each.retryable) for each in DEFINED
    }
    assert drawn_tree() == real


def test_dunder_all_lists_every_error() -> None:
    assert sorted(errors.__all__) == sorted(each.__name__ for each in DEFINED)


def test_codes_are_unique() -> None:
    codes = [each.code for each in DEFINED]
    assert sorted(codes) == sorted(set(codes))


@pytest.mark.parametrize("error", DEFINED)
def test_each_error_has_a_code_a_message_and_a_hint(error: type[HermesError]) -> None:
    made = make(error)
    assert re.fullmatch(r"[a-z]+(_[a-z]+)*", made.code)
    assert made.message.endswith(".")
    assert isinstance(made.hint, str)


@pytest.mark.parametrize("error", DEFINED)
def test_each_error_declares_its_own_code(error: type[HermesError]) -> None:
    assert "code" in vars(error)


def test_the_text_of_an_error_ends_with_its_hint() -> None:
    assert str(HermesError("it broke", hint="mend it")) == "it broke (mend it)"


def test_an_empty_hint_replaces_the_default_hint() -> None:
    assert str(errors.UnknownSession("no session x", hint="")) == "no session x"


def test_a_spooled_message_has_its_uid_and_must_not_be_sent_again() -> None:
    spooled = MessageSpooled(uid="u1")
    assert (spooled.uid, spooled.retryable) == ("u1", False)
