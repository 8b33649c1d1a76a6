"""The names in a shared session: one user for each name, whatever users call themselves."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from hermes.gateway.engine.turns.sender_labels import MOST_NAMES, choose_labels
from tests.gateway.engine.conftest import RunScenario
from tests.gateway.engine.engine_node import GROUP_ALICE, GROUP_BOB, EngineNode, shared_chats

USERS = st.text(alphabet="12[]é", min_size=1, max_size=3)
NAMES = st.sampled_from(
    ("Alice", "ALICE", "Ａlice", "Alice (user 1)", "Alice (user 2)", "Alice (user 2, 2)", "[Bob]", "x")
)


def test_the_first_user_of_a_name_has_it_and_others_are_named_with_their_ids() -> None:
    labels, taken = choose_labels({}, [("1", "Ann"), ("2", "ann"), ("3", "Eve")])
    assert labels == {"1": "Ann", "2": "ann (user 2)", "3": "Eve"}
    later, _ = choose_labels(taken, [("2", "Ann"), ("1", "Ann"), ("4", "Ann (user 2)")])
    assert later == {"2": "Ann (user 2)", "1": "Ann", "4": "Ann (user 2) (user 4)"}


@given(st.lists(st.tuples(USERS, NAMES), max_size=30))
def test_no_label_ever_stands_for_two_users(senders: list[tuple[str, str]]) -> None:
    known: dict[str, str] = {}
    users_of: dict[str, set[str]] = {}
    for user, name in senders:
        labels, known = choose_labels(known, [(user, name)])
        users_of.setdefault(labels[user].casefold(), set()).add(user)
    assert all(len(users) == 1 for users in users_of.values())


def test_what_is_remembered_is_bounded_and_later_users_have_their_ids() -> None:
    known: dict[str, str] = {}
    for number in range(MOST_NAMES + 50):
        _, known = choose_labels(known, [(f"u{number}", f"name {number}")])
    assert len(known) == MOST_NAMES
    labels, _ = choose_labels(known, [("late", "Late"), ("u1", "name 1"), ("other", "name 1")])
    assert labels == {"late": "Late (user late)", "u1": "name 1", "other": "name 1 (user other)"}


def test_two_users_with_one_name_are_two_for_the_model_also_in_later_turns(run: RunScenario, home: Path) -> None:
    async def scenario(node: EngineNode) -> None:
        node.brain.auto = lambda request: " ".join(each.text for each in request.messages)
        twin = replace(GROUP_BOB, user_name="Alice")
        for source in (GROUP_ALICE, twin, GROUP_ALICE, twin):
            await node.say("hi", source)
            await node.idle()
        assert [turn.texts for turn in node.brain.turns] == [
            ["[Alice] hi"],
            ["[Alice (user 2)] hi"],
            ["[Alice] hi"],
            ["[Alice (user 2)] hi"],
        ]

    run(scenario, chats=shared_chats(home))
