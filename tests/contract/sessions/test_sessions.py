"""Sessions are created once, read, changed, ended and reopened."""

from __future__ import annotations

import json

import pytest

from hermes.errors import UnknownSession
from hermes.state.provider import SessionDBProvider
from tests.support.clock import NOW, FakeClock
from tests.support.conversations import at_once, column, compress, ids, session_of, start
from tests.support.stores import Opener

DOCUMENTED_COLUMNS = {
    "id", "source", "user_id", "model", "model_config", "system_prompt", "parent_session_id", "started_at", "ended_at",
    "end_reason", "message_count", "tool_call_count", "input_tokens", "output_tokens", "cache_read_tokens",
    "cache_write_tokens", "reasoning_tokens", "billing_provider", "billing_base_url", "billing_mode",
    "estimated_cost_usd", "actual_cost_usd", "cost_status", "cost_source", "pricing_version", "title", "api_call_count",
    "cwd", "handoff_state", "handoff_platform", "handoff_error", "rewind_count", "archived", "pinned", "owner",
    "child_kind", "last_active",
}  # fmt: skip
COUNTERS = (
    "message_count", "tool_call_count", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens",
    "reasoning_tokens", "api_call_count", "rewind_count", "archived", "pinned",
)  # fmt: skip
UNUSUAL_TEXTS = ["", "a\0b", "\ud800", "\x00json:[1]", "\x01json:[1]", "世界 🌍", "x" * 100_000]


class TestCreate:
    def test_create_session_returns_the_id(self, store: SessionDBProvider) -> None:
        assert store.create_session("any string will do: ü/\n", "cli") == "any string will do: ü/\n"

    def test_row_has_every_documented_column(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert set(session_of(store, "s")) >= DOCUMENTED_COLUMNS

    def test_start_is_the_time_of_the_clock(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert session_of(store, "s")["started_at"] == NOW

    def test_start_can_be_given(self, store: SessionDBProvider) -> None:
        start(store, "s", started_at=12.5)
        assert session_of(store, "s")["started_at"] == 12.5

    def test_every_counter_starts_at_zero(self, store: SessionDBProvider) -> None:
        start(store, "s")
        row = session_of(store, "s")
        assert {name: row[name] for name in COUNTERS} == dict.fromkeys(COUNTERS, 0)

    @pytest.mark.parametrize("field", ["model", "system_prompt", "user_id", "cwd"])
    def test_field_of_a_session_is_stored(self, store: SessionDBProvider, field: str) -> None:
        start(store, "s", **{field: "value"})
        assert session_of(store, "s")[field] == "value"

    @pytest.mark.parametrize("text", UNUSUAL_TEXTS, ids=lambda text: ascii(text[:12]))
    def test_text_of_a_session_round_trips_exactly(self, store: SessionDBProvider, text: str) -> None:
        start(store, "s", model=text, system_prompt=text, cwd=text)
        row = session_of(store, "s")
        assert (row["model"], row["system_prompt"], row["cwd"]) == (text, text, text)

    def test_model_config_is_kept_as_json(self, store: SessionDBProvider) -> None:
        start(store, "s", model_config={"temperature": 0.5, "stop": ["ü"]})
        assert json.loads(session_of(store, "s")["model_config"]) == {"temperature": 0.5, "stop": ["ü"]}

    def test_empty_model_config_is_none(self, store: SessionDBProvider) -> None:
        start(store, "s", model_config={})
        assert session_of(store, "s")["model_config"] is None

    def test_second_create_changes_nothing(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s", model="first")
        before = session_of(store, "s")
        clock.advance(5)
        assert store.create_session("s", "telegram", model="second", user_id="9") == "s"
        assert session_of(store, "s") == before

    def test_unknown_parent_is_an_error(self, store: SessionDBProvider) -> None:
        with pytest.raises(UnknownSession, match="missing"):
            store.create_session("s", "cli", parent_session_id="missing")
        assert store.get_session("s") is None

    def test_racing_creates_make_one_session(self, store: SessionDBProvider) -> None:
        at_once(8, lambda n: store.create_session("s", "cli", model=f"model {n}"))
        assert store.session_count() == 1

    def test_create_session_is_durable(self, open_store: Opener) -> None:
        with open_store() as first:
            start(first, "s", model="m")
        assert session_of(open_store(), "s")["model"] == "m"

    def test_created_session_is_seen_by_another_handle_at_once(
        self, store: SessionDBProvider, open_store: Opener
    ) -> None:
        other = open_store()
        start(store, "s")
        assert other.get_session("s") is not None


class TestEnsure:
    def test_ensure_session_creates_a_session_of_unknown_source(self, store: SessionDBProvider) -> None:
        assert store.ensure_session("s", model="m") == "s"
        assert (session_of(store, "s")["source"], session_of(store, "s")["model"]) == ("unknown", "m")

    def test_ensure_session_leaves_an_existing_session_alone(self, store: SessionDBProvider) -> None:
        start(store, "s", model="first")
        store.ensure_session("s", "telegram", "second")
        assert (session_of(store, "s")["source"], session_of(store, "s")["model"]) == ("cli", "first")

    def test_ensure_session_takes_the_fields_of_create(self, store: SessionDBProvider) -> None:
        store.ensure_session("s", "telegram", user_id="7", cwd="/srv")
        assert (session_of(store, "s")["user_id"], session_of(store, "s")["cwd"]) == ("7", "/srv")


class TestGet:
    def test_get_unknown_session_returns_none(self, store: SessionDBProvider) -> None:
        assert store.get_session("missing") is None

    def test_ids_differ_by_case(self, store: SessionDBProvider) -> None:
        start(store, "abc")
        assert store.get_session("ABC") is None

    def test_returned_row_belongs_to_the_caller(self, store: SessionDBProvider) -> None:
        start(store, "s")
        session_of(store, "s")["source"] = "changed"
        assert session_of(store, "s")["source"] == "cli"


class TestEnd:
    def test_end_session_stores_time_and_reason(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        clock.advance(60)
        assert store.end_session("s", "user_exit")
        row = session_of(store, "s")
        assert (row["ended_at"], row["end_reason"]) == (NOW + 60, "user_exit")

    def test_first_end_reason_stays(self, store: SessionDBProvider, clock: FakeClock) -> None:
        start(store, "s")
        store.end_session("s", "compression")
        clock.advance(60)
        assert not store.end_session("s", "user_exit")
        row = session_of(store, "s")
        assert (row["ended_at"], row["end_reason"]) == (NOW, "compression")

    def test_end_session_keeps_the_title(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.set_session_title("s", "Docker")
        store.end_session("s", "user_exit")
        assert store.get_session_title("s") == "Docker"

    def test_reopen_removes_the_end(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.end_session("s", "user_exit")
        assert store.reopen_session("s")
        row = session_of(store, "s")
        assert (row["ended_at"], row["end_reason"]) == (None, None)

    def test_reopened_session_can_end_for_another_reason(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.end_session("s", "user_exit")
        store.reopen_session("s")
        store.end_session("s", "session_reset")
        assert session_of(store, "s")["end_reason"] == "session_reset"

    def test_reopening_an_open_session_is_fine(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert store.reopen_session("s")


class TestUpdate:
    def test_cwd_is_updated(self, store: SessionDBProvider) -> None:
        start(store, "s", cwd="/old")
        assert store.update_session_cwd("s", "/new")
        assert session_of(store, "s")["cwd"] == "/new"

    def test_empty_cwd_changes_nothing(self, store: SessionDBProvider) -> None:
        start(store, "s", cwd="/old")
        store.update_session_cwd("s", "")
        assert session_of(store, "s")["cwd"] == "/old"

    def test_meta_replaces_the_configuration(self, store: SessionDBProvider) -> None:
        start(store, "s", model_config={"a": 1})
        assert store.update_session_meta("s", '{"b": 2}')
        assert json.loads(session_of(store, "s")["model_config"]) == {"b": 2}

    def test_meta_takes_a_dict_too(self, store: SessionDBProvider) -> None:
        start(store, "s")
        store.update_session_meta("s", {"b": 2})
        assert json.loads(session_of(store, "s")["model_config"]) == {"b": 2}

    def test_meta_keeps_the_model_unless_one_is_given(self, store: SessionDBProvider) -> None:
        start(store, "s", model="old")
        store.update_session_meta("s", "{}")
        assert session_of(store, "s")["model"] == "old"

    def test_meta_changes_the_model_that_is_given(self, store: SessionDBProvider) -> None:
        start(store, "s", model="old")
        store.update_session_meta("s", "{}", "new")
        assert session_of(store, "s")["model"] == "new"

    def test_system_prompt_is_updated(self, store: SessionDBProvider) -> None:
        start(store, "s")
        assert store.update_system_prompt("s", "You are \0 Hermes")
        assert session_of(store, "s")["system_prompt"] == "You are \0 Hermes"

    def test_model_is_updated(self, store: SessionDBProvider) -> None:
        start(store, "s", model="old")
        assert store.update_session_model("s", "new")
        assert session_of(store, "s")["model"] == "new"

    def test_an_update_to_the_same_value_is_still_true(self, store: SessionDBProvider) -> None:
        start(store, "s", model="same")
        assert store.update_session_model("s", "same")


class TestBrokenModelConfig:
    """One session with a broken model_config must never break the store."""

    @pytest.fixture
    def broken(self, store: SessionDBProvider) -> SessionDBProvider:
        start(store, "healthy", "broken")
        store.update_session_meta("broken", "{not json")
        return store

    def test_broken_model_config_is_kept_unchanged(self, broken: SessionDBProvider) -> None:
        assert session_of(broken, "broken")["model_config"] == "{not json"

    def test_broken_model_config_does_not_break_lists(self, broken: SessionDBProvider) -> None:
        assert set(ids(broken.list_sessions_rich())) == {"healthy", "broken"}

    def test_broken_model_config_does_not_break_counts(self, broken: SessionDBProvider) -> None:
        assert broken.session_count(exclude_children=True) == 2

    def test_broken_model_config_does_not_break_deleting_another(self, broken: SessionDBProvider) -> None:
        assert broken.delete_session("healthy")

    def test_broken_model_config_does_not_break_its_children(self, broken: SessionDBProvider) -> None:
        start(broken, "child", parent_session_id="broken", model_config="{neither")
        assert session_of(broken, "child")["child_kind"] is None


class TestArchiveAndPin:
    @pytest.fixture
    def chain(self, store: SessionDBProvider, clock: FakeClock) -> SessionDBProvider:
        start(store, "root")
        compress(store, clock, "root", "middle")
        compress(store, clock, "middle", "tip")
        start(store, "branch", parent_session_id="middle", child_kind="branch")
        return store

    @pytest.mark.parametrize("member", ["root", "middle", "tip"])
    def test_archiving_any_link_archives_the_chain(self, chain: SessionDBProvider, member: str) -> None:
        assert chain.set_session_archived(member, True)
        assert [session_of(chain, link)["archived"] for link in ("root", "middle", "tip")] == [1, 1, 1]

    @pytest.mark.parametrize("member", ["root", "middle", "tip"])
    def test_pinning_any_link_pins_the_chain(self, chain: SessionDBProvider, member: str) -> None:
        assert chain.set_session_pinned(member, True)
        assert [session_of(chain, link)["pinned"] for link in ("root", "middle", "tip")] == [1, 1, 1]

    def test_archiving_leaves_branches_alone(self, chain: SessionDBProvider) -> None:
        chain.set_session_archived("root", True)
        assert session_of(chain, "branch")["archived"] == 0

    def test_archiving_can_be_reversed(self, chain: SessionDBProvider) -> None:
        chain.set_session_archived("root", True)
        chain.set_session_archived("tip", False)
        assert [session_of(chain, link)["archived"] for link in ("root", "middle", "tip")] == [0, 0, 0]

    def test_pinning_can_be_reversed(self, chain: SessionDBProvider) -> None:
        chain.set_session_pinned("root", True)
        chain.set_session_pinned("tip", False)
        assert [session_of(chain, link)["pinned"] for link in ("root", "middle", "tip")] == [0, 0, 0]

    def test_archiving_twice_is_still_true(self, chain: SessionDBProvider) -> None:
        chain.set_session_archived("root")
        assert chain.set_session_archived("root")

    def test_continuation_of_a_pinned_conversation_is_pinned(self, chain: SessionDBProvider, clock: FakeClock) -> None:
        chain.set_session_pinned("root", True)
        compress(chain, clock, "tip", "newest")
        assert session_of(chain, "newest")["pinned"] == 1


class TestOwner:
    @pytest.mark.parametrize(
        ("fields", "owner"),
        [
            ({"source": "telegram", "user_id": "42"}, "telegram:42"),
            ({"source": "discord", "user_id": "42"}, "discord:42"),
            (
                {"source": "telegram", "user_id": "42", "owner": "agent:main:telegram:group:9"},
                "agent:main:telegram:group:9",
            ),
            ({"source": "telegram"}, None),
            ({"source": "telegram", "user_id": ""}, None),
            ({"source": "cli", "user_id": "root"}, None),
            ({"source": "cli"}, None),
        ],
    )
    def test_owner_follows_from_source_and_user(
        self, store: SessionDBProvider, fields: dict[str, str], owner: str | None
    ) -> None:
        start(store, "s", **fields)
        assert session_of(store, "s")["owner"] == owner

    def test_rows_of_a_list_have_the_owner(self, store: SessionDBProvider) -> None:
        start(store, "s", source="telegram", user_id="42")
        assert column(store.list_sessions_rich(), "owner") == ["telegram:42"]
