"""Titles are cleaned, unique, numbered, and found again."""

from __future__ import annotations

import pytest

from hermes.errors import InvalidTitle, TitleTaken
from hermes.state.provider import SessionDBProvider
from tests.support.clock import FakeClock
from tests.support.conversations import at_once, session_of, start

DELETED = [
    *range(0x09), 0x0B, 0x0C, *range(0x0E, 0x20), 0x7F, *range(0x200B, 0x2010), *range(0x2028, 0x202F),
    *range(0x2060, 0x206A), 0xFEFF, 0xFFFC, 0xFFF9, 0xFFFA, 0xFFFB,
]  # fmt: skip
SPACED = [0x09, 0x0A, 0x0D, 0x20, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200B), 0x202F, 0x205F, 0x3000]
KEPT = [0x80, 0x9F, 0xAD, 0x061C, 0x180E, 0x206A, 0x206F, 0xFE0F]


def name_of(point: int) -> str:
    return f"U+{point:04X}"


def titled(store: SessionDBProvider, **titles: str) -> None:
    """Create sessions with these titles, in this order."""
    for session_id, title in titles.items():
        start(store, session_id)
        assert store.set_session_title(session_id, title)


class TestSanitize:
    @pytest.mark.parametrize(
        ("title", "cleaned"),
        [
            ("  hello world  ", "hello world"),
            ("hello\t\nworld", "hello world"),
            ("hello\x00world", "helloworld"),
            ("hello\u200bworld", "helloworld"),
            ("hello\u202eworld", "helloworld"),
            ("hello\x7fworld", "helloworld"),
            ("a\x0bb", "ab"),
            ("a\u2028b", "ab"),
            ("a\u00a0b", "a b"),
            ("a\u3000b", "a b"),
            ("a\x85b", "a b"),
            ("   \t\n", None),
            ("\x00\u200b\ufeff", None),
            ("", None),
            (None, None),
            ("A" * 100, "A" * 100),
            (" " + "A" * 100 + "\u200b", "A" * 100),
            ("🌍" * 100, "🌍" * 100),
            ("🌍 世界 café", "🌍 世界 café"),
            ("PR #438 — 'auth'", "PR #438 — 'auth'"),
            ("a  \x00  b", "a b"),
            ("👩\u200d👧 \u2764\ufe0f\u200d🔥", "👩\u200d👧 \u2764\ufe0f\u200d🔥"),
            ("می\u200cخواهم", "می\u200cخواهم"),
            ("क्\u200dष", "क्\u200dष"),
            ("pro\u200dject \u200d👧\u200d", "project 👧"),
            ("a\u200cb", "ab"),
        ],
    )
    def test_title_is_sanitized(self, title: str | None, cleaned: str | None) -> None:
        assert SessionDBProvider.sanitize_title(title) == cleaned

    @pytest.mark.parametrize("point", DELETED, ids=name_of)
    def test_invisible_character_is_deleted(self, point: int) -> None:
        assert SessionDBProvider.sanitize_title(f"a{chr(point)}b") == "ab"

    @pytest.mark.parametrize("point", SPACED, ids=name_of)
    def test_any_space_becomes_one_space(self, point: int) -> None:
        assert SessionDBProvider.sanitize_title(f"a{chr(point)}{chr(point)}b") == "a b"

    @pytest.mark.parametrize("point", KEPT, ids=name_of)
    def test_visible_character_in_a_title_is_kept(self, point: int) -> None:
        assert SessionDBProvider.sanitize_title(f"a{chr(point)}b") == f"a{chr(point)}b"

    def test_title_of_101_characters_is_too_long(self) -> None:
        with pytest.raises(InvalidTitle, match=r"too long.*101.*100"):
            SessionDBProvider.sanitize_title("A" * 101)

    def test_sanitize_title_is_a_method_of_the_store(self, store: SessionDBProvider) -> None:
        assert store.sanitize_title(" x ") == "x"

    def test_title_limit_is_public(self) -> None:
        assert SessionDBProvider.MAX_TITLE_LENGTH == 100


class TestSet:
    def test_title_is_stored_cleaned(self, store: SessionDBProvider) -> None:
        titled(store, s="  Docker\tBuild ")
        assert store.get_session_title("s") == "Docker Build"

    def test_own_title_can_be_set_again(self, store: SessionDBProvider) -> None:
        titled(store, s="Docker")
        assert store.set_session_title("s", "Docker")

    def test_title_can_be_changed(self, store: SessionDBProvider) -> None:
        titled(store, s="Docker")
        store.set_session_title("s", "Podman")
        assert store.get_session_title("s") == "Podman"

    @pytest.mark.parametrize("empty", ["", "   ", "\u200b", None])
    def test_empty_title_removes_the_title(self, store: SessionDBProvider, empty: str | None) -> None:
        titled(store, s="Docker")
        assert store.set_session_title("s", empty)
        assert store.get_session_title("s") is None

    def test_many_sessions_can_be_without_title(self, store: SessionDBProvider) -> None:
        titled(store, a="A", b="B")
        assert [store.set_session_title(each, "") for each in "ab"] == [True, True]

    def test_title_of_another_session_is_taken(self, store: SessionDBProvider) -> None:
        titled(store, a="Docker")
        start(store, "b")
        with pytest.raises(TitleTaken, match=r"already in use.*\ba\b"):
            store.set_session_title("b", "Docker")
        assert store.get_session_title("b") is None

    def test_title_is_taken_after_cleaning(self, store: SessionDBProvider) -> None:
        titled(store, a="Docker")
        start(store, "b")
        with pytest.raises(TitleTaken):
            store.set_session_title("b", " Doc\u200bker ")

    def test_titles_differ_by_case(self, store: SessionDBProvider) -> None:
        titled(store, a="Docker", b="docker")
        assert store.get_session_title("b") == "docker"

    def test_titles_differ_by_accent(self, store: SessionDBProvider) -> None:
        titled(store, a="resume", b="résumé")
        assert store.get_session_title("b") == "résumé"

    def test_title_of_a_deleted_session_is_free(self, store: SessionDBProvider) -> None:
        titled(store, a="Docker")
        store.delete_session("a")
        titled(store, b="Docker")
        assert store.resolve_session_by_title("Docker") == "b"

    def test_title_of_an_archived_session_is_taken(self, store: SessionDBProvider) -> None:
        titled(store, a="Docker")
        store.set_session_archived("a")
        start(store, "b")
        with pytest.raises(TitleTaken):
            store.set_session_title("b", "Docker")

    def test_title_of_another_owner_is_free(self, store: SessionDBProvider) -> None:
        start(store, "secret-session", source="telegram", user_id="1")
        store.set_session_title("secret-session", "Docker")
        start(store, "mine", source="telegram", user_id="2")
        assert store.set_session_title("mine", "Docker")
        assert store.get_session_title("mine") == store.get_session_title("secret-session") == "Docker"

    def test_eight_threads_racing_for_a_title_have_one_winner(self, store: SessionDBProvider) -> None:
        start(store, *(f"s{n}" for n in range(8)))

        def claim(number: int) -> bool:
            try:
                return store.set_session_title(f"s{number}", "Docker")
            except TitleTaken:
                return False

        assert sum(at_once(8, claim)) == 1


class TestLookup:
    def test_session_is_found_by_exact_title(self, store: SessionDBProvider) -> None:
        titled(store, s="Docker")
        assert store.get_session_by_title("Docker") == session_of(store, "s")

    @pytest.mark.parametrize("title", ["docker", "Dock", "Docker ", "", "%", "Docke_"])
    def test_unknown_title_finds_no_session(self, store: SessionDBProvider, title: str) -> None:
        titled(store, s="Docker")
        assert store.get_session_by_title(title) is None

    def test_title_of_an_unknown_session_is_none(self, store: SessionDBProvider) -> None:
        assert store.get_session_title("missing") is None


class TestNextTitle:
    @pytest.mark.parametrize(
        ("taken", "base", "expected"),
        [
            ([], "Docker", "Docker"),
            (["Docker"], "Docker", "Docker #2"),
            (["Docker", "Docker #2"], "Docker", "Docker #3"),
            (["Docker", "Docker #7"], "Docker", "Docker #8"),
            (["Docker #4"], "Docker", "Docker #5"),
            (["Docker", "Docker #2"], "Docker #2", "Docker #3"),
            (["Docker #9", "Docker #10"], "Docker", "Docker #11"),
            (["Docker", "docker #5"], "Docker", "Docker #2"),
            (["Docker #notes"], "Docker", "Docker"),
            (["Docker", "Docker #notes"], "Docker", "Docker #2"),
            (["Docker Compose", "Docker Compose #5"], "Docker", "Docker"),
            (["100%", "100x #7"], "100%", "100% #2"),
            (["a_b", "axb #7"], "a_b", "a_b #2"),
            (["a\\b"], "a\\b", "a\\b #2"),
            (["PR #438"], "PR", "PR #439"),
            (["世界"], "世界", "世界 #2"),
        ],
    )
    def test_next_title_has_the_next_number(
        self, store: SessionDBProvider, taken: list[str], base: str, expected: str
    ) -> None:
        titled(store, **{f"s{n}": title for n, title in enumerate(taken)})
        assert store.get_next_title_in_lineage(base) == expected

    @pytest.mark.parametrize("length", [96, 97, 98, 99, 100])
    def test_next_title_never_exceeds_the_limit(self, store: SessionDBProvider, length: int) -> None:
        titled(store, s="A" * length)
        start(store, "t")
        assert store.set_session_title("t", store.get_next_title_in_lineage("A" * length))

    def test_next_title_is_never_taken(self, store: SessionDBProvider) -> None:
        titled(store, long="A" * 99, short="A" * 97 + " #2")
        start(store, "t")
        assert store.set_session_title("t", store.get_next_title_in_lineage("A" * 99))


class TestResolve:
    @pytest.mark.parametrize(
        ("taken", "asked", "expected"),
        [
            (["Docker"], "Docker", "Docker"),
            (["Docker", "Docker #2"], "Docker", "Docker #2"),
            (["Docker #10", "Docker #9"], "Docker", "Docker #10"),
            (["Docker", "Docker #2", "Docker #3"], "Docker #2", "Docker #2"),
            (["Docker", "Docker #notes"], "Docker", "Docker"),
            (["Docker #2"], "Docker", "Docker #2"),
            (["Docker", "docker #5"], "Docker", "Docker"),
            (["100%", "100x #7"], "100%", "100%"),
        ],
    )
    def test_title_resolves_to_the_newest_of_its_lineage(
        self, store: SessionDBProvider, taken: list[str], asked: str, expected: str
    ) -> None:
        titled(store, **{f"s{n}": title for n, title in enumerate(taken)})
        found = store.resolve_session_by_title(asked)
        assert found is not None
        assert store.get_session_title(found) == expected

    @pytest.mark.parametrize("asked", ["docker", "Dock", "Docker #2", "", "nothing"])
    def test_unknown_title_resolves_to_none(self, store: SessionDBProvider, asked: str) -> None:
        titled(store, s="Docker")
        assert store.resolve_session_by_title(asked) is None

    def test_highest_number_wins_over_the_latest_start(self, store: SessionDBProvider, clock: FakeClock) -> None:
        titled(store, third="Docker #3")
        clock.advance(60)
        titled(store, second="Docker #2")
        assert store.resolve_session_by_title("Docker") == "third"

    def test_highest_number_wins_for_any_clock(self, store: SessionDBProvider, clock: FakeClock) -> None:
        titled(store, first="Docker")
        clock.advance(-3600)
        titled(store, second="Docker #2")
        assert store.resolve_session_by_title("Docker") == "second"


class TestAutomaticTitle:
    """An automatic title never replaces a title that a person set."""

    def test_automatic_title_is_set_on_an_untitled_session(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert store.set_title_if_untitled("s", "  Docker \n networks ") == "Docker networks"
        assert store.get_session_title("s") == "Docker networks"

    def test_automatic_title_leaves_an_existing_title_alone(self, store: SessionDBProvider) -> None:
        titled(store, s="Mine")
        assert store.set_title_if_untitled("s", "Docker networks") is None
        assert store.get_session_title("s") == "Mine"

    def test_automatic_title_gets_a_suffix_on_a_clash_and_joins_no_lineage(self, store: SessionDBProvider) -> None:
        titled(store, a="Docker", b="Docker #2")
        start(store, "s", "t", "u")
        assert store.set_title_if_untitled("s", "Docker") == "Docker (2)"
        assert store.set_title_if_untitled("t", "Docker #2") == "Docker #2 (2)"
        assert store.set_title_if_untitled("u", "Docker") == "Docker (3)"
        assert store.resolve_session_by_title("Docker") == "b"

    def test_automatic_title_stays_within_the_limit_on_a_clash(self, store: SessionDBProvider) -> None:
        titled(store, a="x" * 100)
        start(store, "s")
        assert store.set_title_if_untitled("s", "x" * 100) == "x" * 96 + " (2)"

    def test_automatic_title_finds_a_free_suffix_with_few_queries(self, store: SessionDBProvider) -> None:
        titled(store, a="Docker", **{f"s{number}": f"Docker ({number})" for number in range(2, 30)})
        start(store, "s")
        assert store.set_title_if_untitled("s", "Docker") == "Docker (30)"

    @pytest.mark.parametrize("title", ["", " \u200b "])
    def test_empty_automatic_title_sets_nothing(self, store: SessionDBProvider, title: str) -> None:
        start(store, "s")
        assert store.set_title_if_untitled("s", title) is None

    def test_automatic_title_of_an_unknown_session_is_none(self, store: SessionDBProvider) -> None:
        assert store.set_title_if_untitled("missing", "Docker") is None

    def test_automatic_title_that_is_too_long_is_refused(self, store: SessionDBProvider) -> None:
        start(store, "s")
        with pytest.raises(InvalidTitle):
            store.set_title_if_untitled("s", "x" * 101)

    def test_many_automatic_titles_at_once_are_all_different(self, store: SessionDBProvider) -> None:
        start(store, *(f"s{number}" for number in range(8)))
        given = at_once(8, lambda number: store.set_title_if_untitled(f"s{number}", "Docker"))
        assert set(given) == {"Docker", *(f"Docker ({number})" for number in range(2, 9))}

    def test_title_of_a_person_always_beats_the_automatic_one(self, store: SessionDBProvider) -> None:
        start(store, "s")
        at_once(
            2,
            lambda number: (
                store.set_session_title("s", "Mine") if number else store.set_title_if_untitled("s", "Docker")
            ),
        )
        assert store.get_session_title("s") == "Mine"
