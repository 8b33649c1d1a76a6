"""Files of messages on their way to the store: fetched once, and removed if no stored message has them."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from hermes.gateway.engine.ports import Admission, Inbound
from hermes.gateway.platform import Platform
from hermes.gateway.source import SessionSource
from hermes.platforms.base.admissions import NotStored, Unstored

ACCEPTED, KNOWN = Admission("accepted", uid="u1"), Admission("known")
REFUSED, AWAY = Admission("refused", code="queue_full"), Admission("refused", code="store_full")


class Arriving:
    """Messages that arrive with a file, and a store with the given results."""

    def __init__(self, folder: Path, most: int = 10) -> None:
        self.folder, self.fetched = folder, 0
        self.unstored = Unstored(most)

    @property
    def files(self) -> int:
        return len(list(self.folder.iterdir()))

    async def make(self) -> Inbound | None:
        self.fetched += 1
        path = self.folder / f"{self.fetched}"
        path.write_bytes(b"x")
        return Inbound("look", SessionSource(Platform.LOCAL, "c"), media=[{"path": str(path)}])

    def arrive(self, result: Admission | Exception, key: str = "m1") -> None:
        async def receive(_: Inbound) -> Admission:
            if isinstance(result, Exception):
                raise result
            return result

        asyncio.run(self._store(key, receive))

    async def _store(self, key: str, receive: object) -> None:
        await self.unstored.store(key, self.make, receive)  # type: ignore[arg-type]


@pytest.fixture
def arriving(tmp_path: Path) -> Arriving:
    return Arriving(tmp_path)


@pytest.mark.parametrize("result", [ACCEPTED, KNOWN, REFUSED])
def test_file_stays_only_if_its_message_is_stored(arriving: Arriving, result: Admission) -> None:
    arriving.arrive(result)
    assert arriving.files == (1 if result is ACCEPTED else 0)


def test_file_is_fetched_once_while_the_store_is_away(arriving: Arriving) -> None:
    for failure in (OSError("gone"), RuntimeError("odd")):
        with pytest.raises(type(failure)):
            arriving.arrive(failure)
    with pytest.raises(NotStored):
        arriving.arrive(AWAY)
    assert (arriving.fetched, arriving.files) == (1, 1)
    arriving.arrive(KNOWN)  # the first attempt was stored after all, with this file
    assert (arriving.fetched, arriving.files) == (1, 1)


def test_refusal_after_a_failure_removes_the_file(arriving: Arriving) -> None:
    with pytest.raises(NotStored):
        arriving.arrive(AWAY)
    arriving.arrive(REFUSED)
    assert arriving.files == 0


def test_message_that_is_given_up_leaves_no_file(arriving: Arriving) -> None:
    with pytest.raises(NotStored):
        arriving.arrive(AWAY)
    asyncio.run(arriving.unstored.give_up("m1"))
    asyncio.run(arriving.unstored.give_up("m2"))
    assert arriving.files == 0


def test_files_of_too_many_waiting_messages_are_not_kept(tmp_path: Path) -> None:
    arriving = Arriving(tmp_path, most=2)
    for number in range(6):
        with pytest.raises(NotStored):
            arriving.arrive(AWAY, f"m{number % 3}")
    assert arriving.files == 2
