"""Attacks on the tools that change files: other places, exchanged files, and files that are none."""

from __future__ import annotations

import os
import socket
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from hermes.agent.safety.approval import ApprovalRequest, Decision
from hermes.agent.tools.context import WorkingDirectory
from tests.agent.tools.workbench import Workbench

HOSTILE = "stolen\n"


@dataclass
class Meddler:
    """A user who allows everything; meanwhile another process does something."""

    meddle: Callable[[], object]

    def __call__(self, request: ApprovalRequest) -> Decision:
        self.meddle()
        return Decision.ONCE


def put(path: Path, content: str = "old\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content)
    return path


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    """A file outside of the session's directory."""
    return put(tmp_path / "outside" / "precious.txt", "old\n")


def attempt(bench: Workbench, path: str) -> str:
    """Try both tools on a path; both must be refused for the same reason."""
    asked = len(bench.person.asked)
    reasons = {
        bench.refused("write_file", path=path, content=HOSTILE),
        bench.refused("edit_file", path=path, old="old", new=HOSTILE),
    }
    assert len(bench.person.asked) == asked, "the user was asked"
    assert len(reasons) == 1, reasons
    return reasons.pop()


class TestPlaces:
    @pytest.mark.parametrize("path", ["../../outside/precious.txt", "a/../../../outside/precious.txt", ".", ".."])
    def test_path_out_of_the_directory_is_refused(self, bench: Workbench, outside: Path, path: str) -> None:
        assert "outside the session's directory" in attempt(bench, path)
        assert outside.read_text() == "old\n"

    def test_absolute_path_out_of_the_directory_is_refused(self, bench: Workbench, outside: Path) -> None:
        assert "outside the session's directory" in attempt(bench, str(outside))

    @pytest.mark.parametrize("is_directory", [True, False])
    def test_link_out_of_the_directory_is_refused(self, bench: Workbench, outside: Path, is_directory: bool) -> None:
        (bench.work / "way").symlink_to(outside.parent if is_directory else outside)
        assert "outside the session's directory" in attempt(bench, "way/precious.txt" if is_directory else "way")
        assert outside.read_text() == "old\n"

    def test_dangling_link_makes_no_file_outside(self, bench: Workbench, outside: Path) -> None:
        (bench.work / "way").symlink_to(outside.with_name("new.txt"))
        assert "outside the session's directory" in attempt(bench, "way")
        assert os.listdir(outside.parent) == ["precious.txt"]

    def test_hard_link_is_refused_and_its_content_not_shown(self, bench: Workbench, outside: Path) -> None:
        os.link(outside, bench.work / "innocent.txt")
        assert "has 2 names (hard links)" in attempt(bench, "innocent.txt")
        assert outside.read_text() == "old\n"

    def test_link_inside_changes_its_target_and_says_so(self, bench: Workbench) -> None:
        target = put(bench.work / "real.txt")
        (bench.work / "link.txt").symlink_to("real.txt")
        bench.call("edit_file", path="link.txt", old="old", new="new")
        assert target.read_text() == "new\n"
        assert (bench.work / "link.txt").is_symlink()
        assert f"(given as {bench.work}/link.txt)" in bench.person.asked[0].detail

    @pytest.mark.parametrize(
        "path",
        [
            *(
                ".git/hooks/pre-commit",
                ".git/config",
                ".GIT/HOOKS/pre-commit",
                ".Git/info/attributes",
                ".git",
                ".git/HEAD",
            ),
            *(
                "vendor/lib/.git/hooks/post-checkout",
                "bare.git/hooks/update",
                "GIT~1/config",
                ".git /config",
                ".git./config",
            ),
            *(".g\u200cit/hooks/pre-commit", ".hg/hgrc", ".svn/hooks/a", ".jj/repo/config.toml", "a/../.git/config"),
        ],
    )
    def test_version_control_is_never_changed(self, bench: Workbench, path: str) -> None:
        assert "cannot be changed, because" in attempt(bench, path)

    @pytest.mark.parametrize(
        "path",
        [
            *(".bashrc", ".BASHRC", ".zshenv", "sub/.profile", ".env", ".ENV.local", ".ssh/authorized_keys", ".npmrc"),
            *("id_rsa", "server.pem", "Secrets.YAML", "state.db", ".aws/credentials", ".netrc~", ".envrc"),
        ],
    )
    def test_protected_names_are_never_changed(self, bench: Workbench, path: str) -> None:
        assert "cannot be changed, because" in attempt(bench, path)
        assert os.listdir(bench.work) == []

    @pytest.mark.parametrize(
        "path", ["/proc/self/mem", "/proc/self/cwd/a.txt", "/dev/null", "/dev/sda", "/sys/a", "/etc/profile"]
    )
    def test_system_is_never_changed_even_from_its_root(self, bench: Workbench, path: str) -> None:
        bench.change(working_directory=WorkingDirectory(Path("/")))
        assert "cannot be changed, because" in attempt(bench, path)

    def test_own_home_and_store_are_never_changed(self, bench: Workbench) -> None:
        home = bench.context.home
        bench.change(working_directory=WorkingDirectory(home.parent))
        for path in (
            home / "config.yaml",
            home / "state.db",
            home / "skills" / "a" / "SKILL.md",
            home / "approvals" / "terminal.json",
        ):
            assert "Hermes stores its own files there" in attempt(bench, str(path))
        os.link(home / "state.db", home.parent / "work" / "notes.txt")
        assert "Hermes stores its own files there" in attempt(bench, "work/notes.txt")

    def test_repository_with_another_name_is_never_changed(self, bench: Workbench) -> None:
        put(bench.work / "store" / "HEAD", "ref: refs/heads/main\n")
        for name in ("objects", "refs", "hooks"):
            (bench.work / "store" / name).mkdir()
        for path in ("store/config", "store/hooks/pre-commit", "store/HEAD"):
            assert "version control" in attempt(bench, path)

    def test_link_to_a_repository_inside_is_refused(self, bench: Workbench) -> None:
        put(bench.work / ".git" / "hooks" / "a")
        (bench.work / "tools").symlink_to(".git/hooks")
        assert "version control" in attempt(bench, "tools/pre-commit")


class TestKinds:
    def test_pipe_is_refused_without_waiting(self, bench: Workbench) -> None:
        os.mkfifo(bench.work / "pipe")
        assert attempt(bench, "pipe").endswith("/pipe is not a regular file")

    def test_socket_is_refused(self, bench: Workbench, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.chdir(bench.work)
        with socket.socket(socket.AF_UNIX) as server:
            server.bind("door")
            assert attempt(bench, "door").endswith("/door is not a regular file")

    def test_directory_is_refused(self, bench: Workbench) -> None:
        (bench.work / "src").mkdir()
        assert attempt(bench, "src").endswith("/src is a directory")

    def test_file_is_no_directory(self, bench: Workbench) -> None:
        put(bench.work / "a.txt")
        assert attempt(bench, "a.txt/b.txt").endswith("/a.txt is not a directory")

    def test_huge_file_is_not_read(self, bench: Workbench) -> None:
        with open(bench.work / "huge.txt", "wb") as file:
            file.truncate(1 << 40)
        assert "1099511627776 bytes; at most 1000000 can be changed" in attempt(bench, "huge.txt")


class TestRaces:
    def meddled(self, bench: Workbench, meddle: Callable[[], object], **arguments: str) -> str:
        bench.change(approve=Meddler(meddle))
        tool = "edit_file" if "old" in arguments else "write_file"
        return bench.refused(tool, **arguments)

    def test_file_changed_after_the_question_is_not_overwritten(self, bench: Workbench) -> None:
        file = put(bench.work / "a.txt")
        reason = self.meddled(bench, lambda: file.write_text("old, by me\n"), path="a.txt", old="old", new="new")
        assert "has changed since it was read; nothing was written" in reason
        assert file.read_text() == "old, by me\n"

    def test_file_made_after_the_question_is_not_overwritten(self, bench: Workbench) -> None:
        file = bench.work / "a.txt"
        assert "nothing was written" in self.meddled(bench, lambda: put(file, "mine\n"), path="a.txt", content="x\n")
        assert file.read_text() == "mine\n"

    def test_file_removed_after_the_question_is_not_made_again(self, bench: Workbench) -> None:
        file = put(bench.work / "a.txt")
        assert "nothing was written" in self.meddled(bench, file.unlink, path="a.txt", old="old", new="new")
        assert os.listdir(bench.work) == []

    def test_link_put_in_place_of_the_file_is_not_followed(self, bench: Workbench, outside: Path) -> None:
        file = put(bench.work / "a.txt")

        def exchange() -> None:
            file.unlink()
            file.symlink_to(outside)

        self.meddled(bench, exchange, path="a.txt", old="old", new="new")
        assert outside.read_text() == "old\n"
        assert file.is_symlink()

    def test_link_put_in_place_of_a_new_file_is_not_followed(self, bench: Workbench, outside: Path) -> None:
        self.meddled(bench, lambda: (bench.work / "a.txt").symlink_to(outside), path="a.txt", content="x\n")
        assert outside.read_text() == "old\n"

    @pytest.mark.parametrize("is_new", [True, False])
    def test_link_put_in_place_of_a_directory_is_not_followed(
        self, bench: Workbench, outside: Path, is_new: bool
    ) -> None:
        put(bench.work / "src" / "a.txt")

        def exchange() -> None:
            (bench.work / "src").rename(bench.work / "moved")
            (bench.work / "src").symlink_to(outside.parent)

        name = "new.txt" if is_new else "precious.txt"
        if not is_new:
            put(bench.work / "src" / name)
        reason = self.meddled(bench, exchange, path=f"src/{name}", content="x\n")
        assert "exchanged meanwhile; nothing was written" in reason
        assert outside.read_text() == "old\n"
        assert os.listdir(outside.parent) == ["precious.txt"]

    def test_pipe_put_in_place_of_the_file_is_refused(self, bench: Workbench) -> None:
        file = put(bench.work / "a.txt")

        def exchange() -> None:
            file.unlink()
            os.mkfifo(file)

        assert "is not a regular file" in self.meddled(bench, exchange, path="a.txt", content="x\n")

    def test_change_is_not_made_after_the_user_stopped_the_turn(self, bench: Workbench) -> None:
        assert "stopped" in self.meddled(bench, bench.cancellation.cancel, path="a.txt", content="x\n")
        assert os.listdir(bench.work) == []


def test_question_shows_what_hides(bench: Workbench) -> None:
    content = "a\x1b[2Kb\rc\n\u202eevil\n# p\u0430ypal\n\t\tif x:\n"
    bench.call("write_file", path="a.py", content=content)
    assert (bench.work / "a.py").read_bytes() == content.encode()
    lines = bench.person.asked[0].detail.split("\n")
    assert lines[3:] == ["+a\\x1b[2Kb\\rc", "+\\u202eevil", "+# p\\u0430ypal", "+→   →   if x:"]


def test_name_cannot_look_like_a_line_of_the_question(bench: Workbench) -> None:
    bench.call("write_file", path="a\n[y]es.txt", content="x\n")
    assert bench.person.asked[0].detail.startswith(f"{bench.work}/a\\n[y]es.txt\n1 line added\n")
