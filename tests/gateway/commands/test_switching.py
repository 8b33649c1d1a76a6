"""/sessions, /resume, /title and /branch."""

from __future__ import annotations

import pytest

from hermes.gateway.commands.switching import strip_brackets
from hermes.gateway.source import SessionSource
from hermes.state.owner import owner_of
from tests.gateway.commands.chats import ALICE, ALICE_IN_GROUP, BOB, BOB_IN_GROUP, CAROL, Chats
from tests.support.clock import DAY_S


def three_sessions(chats: Chats, source: SessionSource = ALICE) -> list[str]:
    """Have a user talk in three sessions, an hour apart; the last one is the present one."""
    ids: list[str] = []
    for number in (1, 2, 3):
        if ids:
            chats.time.advance(3600)
            chats.send(source, "/new")
        ids.append(chats.talk(source, f"topic {number}"))
    return ids


def test_sessions_are_listed_with_the_latest_first(chats: Chats) -> None:
    first, second, third = three_sessions(chats)
    chats.provider.set_session_title(second, "Second")
    assert chats.reply(ALICE, "/sessions") == (
        "Your sessions:\n"
        f"1. topic 3 (just now, this one)\n{third}\n"
        f"2. Second (1 hour ago)\n{second}\n"
        f"3. topic 1 (2 hours ago)\n{first}\n"
        "/resume NUMBER continues one of them."
    )


def test_empty_sessions_are_not_listed(chats: Chats) -> None:
    assert chats.reply(ALICE, "/sessions") == "There are no sessions yet."
    chats.send(ALICE, "/new")
    assert chats.reply(ALICE, "/sessions") == "There are no sessions yet."


def test_at_most_ten_sessions_are_listed(chats: Chats) -> None:
    for number in range(12):
        chats.time.advance(60)
        chats.send(ALICE, "/new")
        chats.talk(ALICE, f"topic {number}")
    text = chats.reply(ALICE, "/sessions")
    assert "10. topic 2" in text
    assert "11." not in text


def test_a_group_sees_titles_but_nothing_that_a_user_wrote_in_private(chats: Chats) -> None:
    titled = chats.talk(ALICE, "private question")
    chats.send(ALICE, "/new")
    chats.talk(ALICE, "other secret")
    chats.provider.set_session_title(titled, "Trip")
    text = chats.reply(ALICE_IN_GROUP, "/sessions")
    assert "Trip" in text
    assert "no title" in text
    assert "secret" not in text
    assert "private" not in text


def test_listing_does_not_count_as_activity(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "hello")
    before = chats.lane(ALICE)["updated_at"]
    chats.time.advance(2 * DAY_S)
    for command in ("/sessions", "/resume", "/title", "/status", "/usage", "/help", "/model", "/queue", "/steer"):
        chats.send(ALICE, command)
    assert chats.lane(ALICE)["updated_at"] == before
    assert chats.session(ALICE) == session_id


@pytest.mark.parametrize("command", ["/sessions", "/resume", "/title", "/status", "/usage", "/help", "/model", "/undo"])
def test_reading_commands_create_no_lane(chats: Chats, command: str) -> None:
    assert chats.reply(ALICE, command)
    assert chats.provider.lanes.get(chats.key(ALICE)) is None


@pytest.mark.parametrize("form", ["{}", "<{}>", "[{}]", '"{}"', "'{}'", " {} "])
def test_resume_by_id_title_and_number(chats: Chats, form: str) -> None:
    first, second, third = three_sessions(chats)
    chats.provider.set_session_title(second, "Second")
    chats.send(ALICE, "/sessions")
    for given, session_id in ((first, first), ("Second", second), ("1", third), ("second", second), ("3", first)):
        text = chats.reply(ALICE, f"/resume {form.format(given)}")
        assert chats.session(ALICE) == session_id, given
        assert text.startswith("Continuing session ")
        assert "with 2 messages." in text


def test_numbers_mean_the_list_that_the_user_has_seen(chats: Chats) -> None:
    first, second, third = three_sessions(chats)
    chats.send(ALICE, "/sessions")
    chats.time.advance(60)
    chats.provider.append_message(first, role="user", content="later")
    chats.send(ALICE, "/resume 2")
    assert chats.session(ALICE) == second
    assert third != second


def test_a_number_without_a_list_means_the_list_that_would_be_shown(chats: Chats) -> None:
    _, second, _ = three_sessions(chats)
    chats.send(ALICE, "/resume 2")
    assert chats.session(ALICE) == second


def test_a_title_that_is_a_number_comes_before_the_list(chats: Chats) -> None:
    first, _, _ = three_sessions(chats)
    chats.provider.set_session_title(first, "1")
    chats.send(ALICE, "/sessions")
    chats.send(ALICE, "/resume 1")
    assert chats.session(ALICE) == first


def test_resume_ends_the_session_that_is_left_and_forgets_nothing_of_the_lane(chats: Chats) -> None:
    first, _, third = three_sessions(chats)
    chats.send(ALICE, "/model offline")
    chats.send(ALICE, f"/resume {first}")
    left = chats.provider.get_session(third)
    assert left is not None
    assert left["end_reason"] == "session_switch"
    assert chats.lane(ALICE)["extra"]["model"] == "offline"


def test_resume_of_the_present_session_says_so(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "hello")
    assert chats.reply(ALICE, f"/resume {session_id}") == f"This chat is in session {session_id} already."


def test_resume_follows_a_compression(chats: Chats) -> None:
    first, _, _ = three_sessions(chats)
    last = chats.provider.get_messages(first)[-1]["id"]
    chats.provider.compress_session(first, "child", "a summary", tail_from=last)
    assert chats.reply(ALICE, f"/resume {first}").startswith("Continuing session child")
    assert chats.session(ALICE) == "child"


def test_resume_by_title_continues_the_newest_of_its_lineage(chats: Chats) -> None:
    first, second, _ = three_sessions(chats)
    chats.provider.set_session_title(first, "Plan")
    chats.provider.set_session_title(second, "Plan #2")
    chats.send(ALICE, "/resume Plan")
    assert chats.session(ALICE) == second


def test_resume_continues_a_stopped_session(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "hello")
    chats.send(ALICE, "/stop")
    assert chats.reply(ALICE, f"/resume {session_id}") == f"Continuing session {session_id} with 2 messages."
    assert not chats.lane(ALICE)["suspended"]
    assert chats.run(chats.store.get_or_create_session(ALICE)).session_id == session_id


def test_resume_in_an_unknown_lane_creates_it_and_leaves_no_empty_session(chats: Chats) -> None:
    chats.talk(ALICE, "hello")
    session_id = chats.session(ALICE)
    assert chats.reply(ALICE_IN_GROUP, f"/resume {session_id}").startswith("Continuing session")
    assert chats.session(ALICE_IN_GROUP) == session_id
    assert chats.provider.session_count() == 1


@pytest.mark.parametrize("name", ["nothing", "99", "0", "\x00", "%", "x" * 5000, "<>", "\ud800"])
def test_resume_of_an_unknown_session_changes_nothing(chats: Chats, name: str) -> None:
    session_id = chats.talk(ALICE, "hello")
    text = chats.reply(ALICE, f"/resume {name}")
    assert text.startswith(("You have no session ", "Your sessions:"))
    assert len(text) < 300
    assert chats.session(ALICE) == session_id


def test_several_sessions_that_match_are_not_guessed(chats: Chats) -> None:
    three_sessions(chats)
    assert chats.reply(ALICE, "/resume 2025") == (
        "Several of your sessions match. /sessions lists them with their ids."
    )


@pytest.mark.parametrize("by_title", [True, False])
def test_sessions_of_others_are_unknown_in_every_chat(chats: Chats, by_title: bool) -> None:
    bobs = chats.talk(BOB, "bob's secret")
    chats.provider.set_session_title(bobs, "Bob's plan")
    own = chats.talk(ALICE, "hello")
    for given in ("Bob's plan", "bob's plan") if by_title else (bobs, bobs[:-1], "2"):
        assert chats.reply(ALICE, f"/resume {given}") == f'You have no session "{given}". /sessions lists yours.'
        assert chats.session(ALICE) == own
        assert chats.reply(CAROL, f"/resume {given}") == f'You have no session "{given}". /sessions lists yours.'
    assert "Bob" not in chats.reply(ALICE, "/sessions")
    assert bobs not in chats.reply(ALICE, "/sessions")


def test_the_sessions_of_the_terminal_are_unknown_in_chats(chats: Chats) -> None:
    chats.provider.create_session("terminals", "cli")
    chats.provider.append_message("terminals", role="user", content="hello")
    assert chats.reply(ALICE, "/resume terminals") == 'You have no session "terminals". /sessions lists yours.'
    assert chats.reply(ALICE, "/sessions") == "There are no sessions yet."


def test_a_shared_group_has_the_sessions_of_the_group_only(shared: Chats) -> None:
    private = shared.talk(ALICE, "private")
    first = shared.talk(ALICE_IN_GROUP, "question of the group")
    shared.send(BOB_IN_GROUP, "/new")
    shared.talk(BOB_IN_GROUP, "second question")
    listed = shared.reply(BOB_IN_GROUP, "/sessions")
    assert listed.startswith("The sessions of this chat:")
    assert first in listed
    assert private not in listed
    assert shared.reply(ALICE_IN_GROUP, f"/resume {private}").startswith("You have no session")
    assert shared.reply(ALICE, f"/resume {first}").startswith("You have no session")
    assert shared.reply(BOB_IN_GROUP, f"/resume {first}").startswith("Continuing session")
    assert shared.session(ALICE_IN_GROUP) == first


def test_the_title_is_shown_and_set(chats: Chats) -> None:
    session_id = chats.talk(ALICE, "hello")
    assert chats.reply(ALICE, "/title") == "This session has no title. /title TEXT sets one."
    assert chats.reply(ALICE, "/title  My\u200b research ") == 'The title is now "My research".'
    assert chats.reply(ALICE, "/title") == 'The title is "My research".'
    assert chats.provider.get_session_title(session_id) == "My research"


def test_a_title_before_the_first_message_is_that_of_the_session_that_starts(chats: Chats) -> None:
    assert chats.reply(ALICE, "/title") == "There is no session yet. Your next message starts one."
    assert chats.reply(ALICE, "/title Trip") == 'The title is now "Trip".'
    assert chats.lane(ALICE)["is_fresh_reset"]
    assert chats.provider.get_session_title(chats.talk(ALICE, "hello")) == "Trip"


def test_bad_and_taken_titles_are_refused(chats: Chats) -> None:
    first, _, third = three_sessions(chats)
    chats.provider.set_session_title(first, "Trip")
    assert chats.reply(ALICE, "/title Trip") == 'Another session has the title "Trip" already.'
    assert chats.reply(ALICE, "/title \u200b") == "A title needs visible characters."
    assert chats.reply(ALICE, f"/title {'x' * 101}") == "Title too long: 101 characters, at most 100 are allowed."
    assert chats.provider.get_session_title(third) is None


def test_the_title_of_another_user_neither_shows_nor_clashes(chats: Chats) -> None:
    chats.provider.set_session_title(chats.talk(BOB, "hello"), "Trip")
    chats.talk(ALICE, "hello")
    assert chats.reply(ALICE, "/title Trip") == 'The title is now "Trip".'
    assert chats.reply(BOB, "/title") == 'The title is "Trip".'


def test_branch_continues_in_a_copy(chats: Chats) -> None:
    parent = chats.talk(ALICE, "one", "two")
    text = chats.reply(ALICE, "/branch Other way")
    child = chats.session(ALICE)
    assert child != parent
    assert text == (
        f'This chat continues in the branch "Other way" ({child}) with 4 messages.\n'
        f"/resume {parent} returns to the original."
    )
    assert chats.texts(child) == chats.texts(parent)
    row = chats.provider.get_session(child, owner=owner_of("telegram", "1"))
    assert row is not None
    assert row["parent_session_id"] == parent


def test_a_branch_that_runs_again_after_a_crash_makes_one_copy(chats: Chats) -> None:
    chats.talk(ALICE, "one")
    row = chats.accept(ALICE, "/branch", "command")
    first = chats.run(chats.obey(ALICE, "/branch", row, crashes=True))
    assert chats.run(chats.obey(ALICE, "/branch", row)) == first
    assert chats.provider.session_count() == 2


def test_nothing_to_branch_from(chats: Chats) -> None:
    assert chats.reply(ALICE, "/branch") == "There are no messages yet, so nothing to branch from."
    chats.talk(ALICE, "one")
    chats.send(ALICE, "/stop")
    assert chats.reply(ALICE, "/branch").startswith("The session of this chat was stopped.")


@pytest.mark.parametrize(
    ("given", "name"), [("<a>", "a"), ('"[a b]"', "a b"), ("<a", "<a"), ("", ""), ("[]", ""), ("''", ""), ("'", "'")]
)
def test_brackets_and_quotes_around_a_name_are_removed(given: str, name: str) -> None:
    assert strip_brackets(given) == name
