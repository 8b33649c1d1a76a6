"""The lock of a node: one process per name and home, whatever is in the file."""

from __future__ import annotations

import errno
import fcntl
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hermes.errors import Conflict
from hermes.gateway.node.node_lock import NodeLock, running_gateways

HOLD = """
import sys
from pathlib import Path
from hermes.gateway.node.node_lock import NodeLock
NodeLock(Path(sys.argv[1]), "n1", "n1/0000000a").acquire()
print("locked", flush=True)
sys.stdin.read()
"""


def lock(home: Path, node: str = "n1", holder: str = "n1/0000000b") -> NodeLock:
    return NodeLock(home, node, holder)


def test_a_second_process_is_refused_and_after_a_kill_learns_the_holder_of_the_first(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"locked\n"
        second = lock(tmp_path)
        with pytest.raises(Conflict, match=rf"'n1' is running .*process {process.pid}") as error:
            second.acquire()
        assert "--node NAME" in (error.value.hint or "")
        assert [each["holder"] for each in running_gateways(tmp_path)] == ["n1/0000000a"]
        process.kill()
        process.wait()
    second.acquire()
    assert second.previous == "n1/0000000a"
    second.release()
    assert running_gateways(tmp_path) == []


def test_nodes_of_different_names_share_a_home(tmp_path: Path) -> None:
    first, second = lock(tmp_path), lock(tmp_path, "n2", "n2/0000000c")
    first.acquire()
    second.acquire()
    assert sorted(each["node"] for each in running_gateways(tmp_path)) == ["n1", "n2"]
    first.release()
    first.release()
    second.release()


def test_the_lock_can_be_taken_again_after_it_was_given_back(tmp_path: Path) -> None:
    first = lock(tmp_path)
    first.acquire()
    first.release()
    again = lock(tmp_path, holder="n1/0000000d")
    again.acquire()
    assert again.previous == "n1/0000000b"
    again.release()


def test_the_last_holder_is_named_until_its_leases_have_ended(tmp_path: Path) -> None:
    holders = ["n1/0000000a", "n1/0000000b", "n1/0000000c", "n1/0000000d"]
    locks = [lock(tmp_path, holder=each) for each in holders]
    for each in locks[:3]:
        each.acquire()
        each.release()
    assert [each.previous for each in locks[:3]] == [None, holders[0], holders[0]]
    locks[3].acquire()
    locks[3].forget_previous()
    assert [each["holder"] for each in running_gateways(tmp_path)] == [holders[3]]
    locks[3].release()
    after = lock(tmp_path)
    after.acquire()
    assert after.previous == holders[3]
    after.release()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"garbage",
        b"\xff\xfe\x00",
        b"[" * 4096,
        b"[1, 2]",
        b"null",
        b'{"holder": 7}',
        b'{"holder": ["n1/0000000a"]}',
        b'{"holder": "n1/0000000a; drop"}',
        b'{"holder": "n2/0000000a"}',
        b'{"holder": "n1/' + b"0" * 5000 + b'"}',
    ],
)
def test_a_file_with_garbage_is_taken_over_and_names_no_earlier_holder(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "gateway-n1.lock").write_bytes(content)
    taken = lock(tmp_path)
    taken.acquire()
    assert taken.previous is None
    assert [each["holder"] for each in running_gateways(tmp_path)] == ["n1/0000000b"]
    taken.release()


def test_a_link_instead_of_the_file_is_refused_and_its_target_is_not_touched(tmp_path: Path) -> None:
    target = tmp_path / "precious"
    target.write_text("data")
    (tmp_path / "gateway-n1.lock").symlink_to(target)
    with pytest.raises(Conflict, match="cannot be used"):
        lock(tmp_path).acquire()
    assert target.read_text() == "data"
    assert running_gateways(tmp_path) == []


def test_a_directory_instead_of_the_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "gateway-n1.lock").mkdir()
    with pytest.raises(Conflict, match="cannot be used"):
        lock(tmp_path).acquire()


def test_the_file_is_readable_only_by_its_user(tmp_path: Path) -> None:
    taken = lock(tmp_path)
    taken.acquire()
    assert taken.path.stat().st_mode & 0o077 == 0
    taken.release()


def test_a_full_disk_leaves_no_lock_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*arguments: object) -> int:
        raise OSError(errno.ENOSPC, "no space")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pwrite", full)
        with pytest.raises(OSError, match="no space"):
            lock(tmp_path).acquire()
    again = lock(tmp_path)
    again.acquire()
    again.release()


def test_a_start_is_not_refused_because_the_running_gateways_are_listed_at_that_moment(tmp_path: Path) -> None:
    file = os.open(tmp_path / "gateway-n1.lock", os.O_RDWR | os.O_CREAT)
    fcntl.flock(file, fcntl.LOCK_EX)  # as `running_gateways` does for a moment
    timer = threading.Timer(0.02, os.close, [file])
    timer.start()
    taken = lock(tmp_path)
    taken.acquire()
    timer.join()
    assert [each["node"] for each in running_gateways(tmp_path)] == ["n1"]
    taken.release()
