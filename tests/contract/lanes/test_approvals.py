"""Approvals: a request waits durably for one decision, and an approval is used once, for exactly what was approved."""

from __future__ import annotations

from typing import Any

import pytest

from hermes.errors import InvalidValue, UnknownSession
from hermes.state.lanes.approvals import ALPHABET, ApprovalRow, approval_digest
from hermes.state.lanes.identity import MAX_PAYLOAD_BYTES
from hermes.state.provider import SessionDBProvider
from tests.support.conversations import at_once
from tests.support.lanes import KEY, OTHER, start_lane
from tests.support.stores import Opener, engine_of

ARGUMENTS = '{"command":  "rm -r build",\n"n": 1e2, "a": "\\u00e9"}'


@pytest.fixture
def asked(store: SessionDBProvider) -> SessionDBProvider:
    """A store with a lane and its session `s1`."""
    start_lane(store)
    return store


def ask(store: SessionDBProvider, arguments: str = ARGUMENTS, key: str = KEY, **fields: Any) -> ApprovalRow:
    """Request the approval of a command."""
    given = {"ttl_seconds": 600.0, "directory": "/srv", **fields}
    return store.approvals.request(key, "s1", "terminal", arguments, **given)


def end_time(store: SessionDBProvider, approval_id: str) -> None:
    """Let the time of a request end now."""
    sql = "UPDATE approvals SET expires_at = 1 WHERE id = :id"
    assert engine_of(store).write(lambda tx: tx.run(sql, id=approval_id)) == 1


def state_of(store: SessionDBProvider, approval_id: str) -> str:
    """The state of a request."""
    row = store.approvals.get(approval_id)
    assert row is not None
    return row["state"]


class TestRequest:
    def test_a_request_is_stored_as_it_was_made(self, asked: SessionDBProvider) -> None:
        texts = {"subject": "rm -r build", "summary": "Delete a\0 folder", "detail": "x" * 5_000, "risk": "high"}
        row = ask(asked, owner="telegram:1", platform="telegram", **texts)
        assert row == asked.approvals.get(row["id"])
        assert {name: row[name] for name in texts} == texts  # type: ignore[literal-required]
        assert (row["session_key"], row["session_id"], row["owner"], row["platform"]) == (
            KEY,
            "s1",
            "telegram:1",
            "telegram",
        )
        assert (row["tool"], row["arguments"], row["directory"]) == ("terminal", ARGUMENTS, "/srv")
        assert (row["state"], row["scope"], row["decided_at"], row["decided_by"]) == ("pending", None, None, None)
        assert row["expires_at"] == pytest.approx(row["asked_at"] + 600)
        assert row["digest"] == approval_digest("s1", "terminal", ARGUMENTS, "/srv")

    def test_arguments_and_names_may_have_any_characters(self, asked: SessionDBProvider) -> None:
        for number, text in enumerate(("", "nul \0", "\ud800", "\x01json:", "not { JSON", "😀" * 70_000)):
            row = ask(asked, text, f"lane \0 {number} " + "k" * 400, directory="/d\udcff", subject=text)
            assert (row["arguments"], row["subject"], row["directory"]) == (text, text, "/d\udcff")
            assert row["session_key"] == f"lane \0 {number} " + "k" * 400
            assert asked.approvals.pending(session_key=row["session_key"]) == [row]

    def test_an_id_is_short_and_easy_to_type(self, asked: SessionDBProvider) -> None:
        ids = [ask(asked, f"{number}")["id"] for number in range(50)]
        assert len(set(ids)) == 50
        assert all(len(each) == 6 and set(each) <= set(ALPHABET) for each in ids)
        assert not set(ALPHABET) & set("01258BILOSZ")
        row = asked.approvals.get(f" {ids[7].lower()} ")
        assert row is not None
        assert row["arguments"] == "7"

    def test_an_id_that_is_taken_is_not_given_out_again(
        self, asked: SessionDBProvider, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        letters = iter("AAAAAAAAAAAAAAAAAC")
        monkeypatch.setattr("hermes.state.lanes.approvals.secrets.choice", lambda _: next(letters))
        assert [ask(asked, text)["id"] for text in ("a", "b")] == ["AAAAAA", "AAAAAC"]

    def test_the_same_request_is_made_once(self, asked: SessionDBProvider) -> None:
        first = ask(asked)
        assert ask(asked, summary="other words", ttl_seconds=9) == first
        assert ask(asked, directory="/other")["id"] != first["id"]
        assert ask(asked, ARGUMENTS + " ")["id"] != first["id"]
        assert len(asked.approvals.pending()) == 3

    def test_the_same_request_after_a_decision_is_a_new_one(self, asked: SessionDBProvider) -> None:
        first = ask(asked)
        asked.approvals.decide(first["id"], False, "ann")
        second = ask(asked)
        assert second["id"] != first["id"]
        assert state_of(asked, first["id"]) == "denied"

    def test_the_same_request_after_its_time_is_a_new_one_and_the_old_one_still_expires(
        self, asked: SessionDBProvider
    ) -> None:
        first = ask(asked)
        end_time(asked, first["id"])
        second = ask(asked)
        assert second["id"] != first["id"]
        assert [row["id"] for row in asked.approvals.expire_due()] == [first["id"]]
        assert asked.approvals.pending() == [second]

    def test_the_same_request_from_many_nodes_at_once_is_one(self, open_store: Opener) -> None:
        stores = [open_store() for _ in range(6)]
        start_lane(stores[0])
        rows = at_once(6, lambda number: [ask(stores[number], f"{each}")["id"] for each in range(8)])
        assert all(ids == rows[0] for ids in rows)
        assert len(stores[0].approvals.pending()) == 8

    def test_requests_are_deleted_with_their_session(self, asked: SessionDBProvider) -> None:
        row = ask(asked)
        asked.delete_session("s1")
        assert asked.approvals.get(row["id"]) is None

    def test_a_request_needs_a_session(self, store: SessionDBProvider) -> None:
        with pytest.raises(UnknownSession):
            ask(store)

    @pytest.mark.parametrize(
        "fields",
        [
            {"ttl_seconds": 0},
            {"ttl_seconds": float("nan")},
            {"ttl_seconds": None},
            {"key": ""},
            {"key": 1},
            {"arguments": None},
            {"arguments": {"a": 1}},
            {"arguments": "x" * (MAX_PAYLOAD_BYTES + 1)},
            {"detail": None},
            {"directory": 5},
            {"platform": ""},
        ],
    )
    def test_wrong_values_are_refused(self, asked: SessionDBProvider, fields: dict[str, Any]) -> None:
        with pytest.raises(InvalidValue):
            ask(asked, **fields)
        assert asked.approvals.pending() == []


class TestPending:
    def test_requests_are_listed_by_lane_and_page(self, asked: SessionDBProvider) -> None:
        rows = [ask(asked, f"{number}", KEY if number % 2 else OTHER) for number in range(6)]
        assert asked.approvals.pending() == rows
        assert asked.approvals.pending(session_key=KEY) == rows[1::2]
        page = asked.approvals.pending(limit=4)
        assert page + asked.approvals.pending(after=page[-1]["number"], limit=4) == rows
        assert asked.approvals.pending(session_key=KEY, after=rows[1]["number"], limit=1) == [rows[3]]

    def test_only_those_that_can_be_decided_are_listed(self, asked: SessionDBProvider) -> None:
        rows = [ask(asked, f"{number}") for number in range(3)]
        asked.approvals.decide(rows[0]["id"], True, "ann")
        end_time(asked, rows[1]["id"])
        assert asked.approvals.pending() == [rows[2]]


class TestDecide:
    @pytest.mark.parametrize("scope", ["once", "session", "always"])
    @pytest.mark.parametrize("approve", [True, False])
    def test_a_decision_is_stored(self, asked: SessionDBProvider, approve: bool, scope: Any) -> None:
        row = ask(asked)
        decided = asked.approvals.decide(row["id"].lower(), approve, "ann\0", scope)
        assert decided is not None
        assert decided == asked.approvals.get(row["id"])
        assert (decided["state"], decided["scope"]) == ("approved" if approve else "denied", scope)
        assert decided["decided_by"] == "ann\0"
        assert decided["decided_at"] is not None
        assert decided["decided_at"] >= row["asked_at"]

    def test_only_the_first_decision_counts(self, asked: SessionDBProvider) -> None:
        row = ask(asked)
        first = asked.approvals.decide(row["id"], False, "ann")
        assert asked.approvals.decide(row["id"], True, "bob") is None
        assert asked.approvals.get(row["id"]) == first

    def test_an_expired_or_unknown_request_cannot_be_decided(self, asked: SessionDBProvider) -> None:
        row = ask(asked)
        end_time(asked, row["id"])
        assert asked.approvals.decide(row["id"], True, "ann") is None
        assert state_of(asked, row["id"]) == "expired"
        asked.approvals.expire_due()
        assert asked.approvals.decide(row["id"], True, "ann") is None
        assert asked.approvals.decide("AAAAAA", True, "ann") is None

    def test_one_of_many_decisions_at_once_counts(self, open_store: Opener) -> None:
        stores = [open_store() for _ in range(6)]
        start_lane(stores[0])
        ids = [ask(stores[0], f"{number}")["id"] for number in range(8)]
        found = at_once(
            6, lambda number: [stores[number].approvals.decide(each, number % 2 == 0, f"{number}") for each in ids]
        )
        for place, approval_id in enumerate(ids):
            (winner,) = [rows[place] for rows in found if rows[place] is not None]
            assert stores[0].approvals.get(approval_id) == winner

    @pytest.mark.parametrize(
        "wrong",
        [("", True, "ann"), (None, True, "ann"), ("A", "yes", "ann"), ("A", True, ""), ("A", True, "ann", "ever")],
    )
    def test_wrong_values_are_refused(self, store: SessionDBProvider, wrong: Any) -> None:
        with pytest.raises(InvalidValue):
            store.approvals.decide(*wrong)


class TestUse:
    def test_an_approval_is_used_once(self, asked: SessionDBProvider) -> None:
        row = ask(asked)
        asked.approvals.decide(row["id"], True, "ann")
        assert [asked.approvals.use(row["id"], row["digest"]) for _ in range(3)] == [True, False, False]
        assert state_of(asked, row["id"]) == "used"

    def test_other_arguments_make_it_void(self, asked: SessionDBProvider) -> None:
        row = ask(asked)
        asked.approvals.decide(row["id"], True, "ann")
        changed = approval_digest("s1", "terminal", ARGUMENTS.replace("build", "/"), "/srv")
        assert not asked.approvals.use(row["id"], changed)
        assert not asked.approvals.use(row["id"], row["digest"])
        assert state_of(asked, row["id"]) == "void"

    def test_what_was_not_approved_is_not_used(self, asked: SessionDBProvider) -> None:
        pending, denied, expired = (ask(asked, text) for text in "pde")
        asked.approvals.decide(denied["id"], False, "ann")
        end_time(asked, expired["id"])
        for row, state in ((pending, "pending"), (denied, "denied"), (expired, "expired")):
            assert not asked.approvals.use(row["id"], row["digest"])
            assert not asked.approvals.use(row["id"], "other")
            assert state_of(asked, row["id"]) == state
        assert not asked.approvals.use("AAAAAA", "x")

    def test_many_nodes_at_once_use_it_once(self, open_store: Opener) -> None:
        stores = [open_store() for _ in range(6)]
        start_lane(stores[0])
        rows = [ask(stores[0], f"{number}") for number in range(10)]
        for row in rows:
            stores[0].approvals.decide(row["id"], True, "ann")
        found = at_once(6, lambda number: [stores[number].approvals.use(row["id"], row["digest"]) for row in rows])
        assert [sum(used) for used in zip(*found, strict=True)] == [1] * 10

    def test_the_digest_tells_every_part_apart(self) -> None:
        parts: list[Any] = [
            ("s", "t", "a", "d"),
            ("s", "t", "ad", ""),
            ("st", "", "a", "d"),
            ("s", "t", "a", None),
            ("s", "t", "a", "None"),
        ]
        assert len({approval_digest(*each) for each in parts}) == len(parts)


class TestExpiry:
    def test_each_expired_request_is_returned_once(self, open_store: Opener) -> None:
        stores = [open_store() for _ in range(4)]
        start_lane(stores[0])
        rows = [ask(stores[0], f"{number}") for number in range(20)]
        for row in rows[:15]:
            end_time(stores[0], row["id"])
        found = at_once(4, lambda number: [stores[number].approvals.expire_due(limit=2) for _ in range(10)])
        expired = [row for pages in found for page in pages for row in page]
        assert sorted(row["id"] for row in expired) == sorted(row["id"] for row in rows[:15])
        assert {row["state"] for row in expired} == {"expired"}
        assert all(row == stores[0].approvals.get(row["id"]) for row in expired)
        assert stores[0].approvals.expire_due() == []

    def test_sweep_removes_what_ended_long_ago(self, asked: SessionDBProvider) -> None:
        rows = [ask(asked, f"{number}") for number in range(6)]
        for row in rows[:3]:
            asked.approvals.decide(row["id"], True, "ann")
        asked.approvals.use(rows[0]["id"], rows[0]["digest"])
        end_time(asked, rows[3]["id"])
        asked.approvals.expire_due()
        assert asked.approvals.sweep(3_600) == 0
        assert [asked.approvals.sweep(0, limit=3) for _ in range(3)] == [3, 1, 0]
        assert asked.approvals.pending() == rows[4:]
        with pytest.raises(InvalidValue):
            asked.approvals.sweep(-1)
