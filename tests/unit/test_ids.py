"""Identifiers: readable for sessions, short and random for messages."""

from __future__ import annotations

import re
import time

from hermes.ids import new_message_uid, new_session_id


def test_a_session_id_is_the_local_time_and_eight_hex_digits() -> None:
    now = 1_790_000_000.75
    stamp = time.strftime("%Y%m%d_%H%M%S", time.localtime(now))
    assert re.fullmatch(rf"{stamp}_[0-9a-f]{{8}}", new_session_id(now))


def test_session_ids_sort_by_time() -> None:
    assert new_session_id(1_790_000_000) < new_session_id(1_790_000_001)


def test_session_ids_of_one_second_differ() -> None:
    assert len({new_session_id(1_790_000_000) for _ in range(100)}) == 100


def test_message_uids_differ() -> None:
    assert len({new_message_uid() for _ in range(1_000)}) == 1_000


def test_a_message_uid_is_short_and_safe_in_urls_and_file_names() -> None:
    assert re.fullmatch(r"~[A-Za-z0-9_-]{12}", new_message_uid())
