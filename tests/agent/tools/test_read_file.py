"""The read_file tool: free, approved and protected files."""

from __future__ import annotations

import os
import pwd
from pathlib import Path

import pytest

from hermes.agent.safety.approval import Approvals, Decision
from hermes.agent.safety.paths import ProtectedPlaces, ResolvedPath, is_too_wide
from hermes.agent.safety.permits import Permits
from hermes.agent.safety.protected_names import COPIES, DIRECTORIES, FILES, HOME_PLACES, SYSTEM_PLACES
from hermes.agent.tools.context import WorkingDirectory
from tests.agent.tools.workbench import Workbench


def put(path: Path, content: str | bytes = "text\n") -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


class TestText:
    def test_lines_have_numbers(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "one\ntwo\r\n\nfour")
        assert bench.call("read_file", path="a.txt") == "1\tone\n2\ttwo\n3\t\n4\tfour"

    def test_part_of_a_file_is_read(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "".join(f"line {number}\n" for number in range(1, 11)))
        text = bench.call("read_file", path="a.txt", start_line=4, lines=2)
        assert text == "4\tline 4\n5\tline 5\n[more lines follow: continue with start_line=6]"
        assert bench.call("read_file", path="a.txt", start_line=9, lines=2) == "9\tline 9\n10\tline 10"

    def test_start_line_after_the_end_is_an_error(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "one\n")
        assert (
            bench.refused("read_file", path="a.txt", start_line=2)
            == "start_line 2 is after the end of the file, which has 1 lines"
        )

    @pytest.mark.parametrize(("start_line", "lines"), [(0, 1), (-5, 0), (1, -1)])
    def test_numbers_below_one_count_as_one(self, bench: Workbench, start_line: int, lines: int) -> None:
        put(bench.work / "a.txt", "one\ntwo\n")
        text = bench.call("read_file", path="a.txt", start_line=start_line, lines=lines)
        assert text == "1\tone\n[more lines follow: continue with start_line=2]"

    def test_empty_file_is_reported(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "")
        assert bench.call("read_file", path="a.txt") == "[the file is empty]"

    def test_long_file_is_read_in_parts_that_fit(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "".join(f"{'x' * 90} {number}\n" for number in range(1, 2_001)))
        seen, start = [], 1
        while start:
            text = bench.call("read_file", path="a.txt", start_line=start)
            assert len(text) <= 50_000
            body, _, rest = text.partition("\n[more lines follow: continue with start_line=")
            seen += body.splitlines()
            start = int(rest.rstrip("]")) if rest else 0
        assert seen == [f"{number}\t{'x' * 90} {number}" for number in range(1, 2_001)]

    def test_very_long_line_is_cut(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "é" * 100_000 + "\nnext\n")
        assert (
            bench.call("read_file", path="a.txt") == f"1\t{'é' * 1_000} [... 198000 more bytes on this line]\n2\tnext"
        )

    def test_line_cut_inside_a_character_is_valid(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "x" + "é" * 100_000)
        assert bench.call("read_file", path="a.txt").startswith(f"1\tx{'é' * 999} [...")

    def test_line_at_the_limit_is_whole(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "x" * 2_000 + "\nnext\n")
        assert bench.call("read_file", path="a.txt") == f"1\t{'x' * 2_000}\n2\tnext"

    @pytest.mark.parametrize(
        ("data", "text"),
        [(b"\xef\xbb\xbfone\n", "1\tone"), ("größe\n".encode("latin-1"), "1\tgröße"), ("größe\n".encode(), "1\tgröße")],
    )
    def test_other_encodings_are_read_as_latin_1(self, bench: Workbench, data: bytes, text: str) -> None:
        put(bench.work / "a.txt", data)
        assert bench.call("read_file", path="a.txt") == text

    def test_binary_file_is_refused(self, bench: Workbench) -> None:
        put(bench.work / "a.bin", b"\x89PNG\x00\x01")
        assert bench.refused("read_file", path="a.bin") == "not a text file: 6 bytes of binary data"

    def test_directory_is_listed(self, bench: Workbench) -> None:
        put(bench.work / "b.txt", "12345")
        put(bench.work / "a" / "c.txt")
        assert bench.call("read_file", path=".") == f"{bench.work} has 2 entries\na/\nb.txt  5 bytes"

    def test_large_directory_is_listed_in_part(self, bench: Workbench) -> None:
        for number in range(510):
            put(bench.work / f"{number:03}")
        text = bench.call("read_file", path=".")
        assert text.endswith("499  5 bytes\n[... 10 more entries]")

    def test_odd_names_in_a_directory_are_shown_with_escapes(self, bench: Workbench) -> None:
        for name in ("a\nb.txt  9 bytes", "c\x1b[2J", "d\u202e"):
            (bench.work / name).write_text("there")
        lines = bench.call("read_file", path=".").split("\n")
        assert lines[1:] == [r"a\nb.txt  9 bytes  5 bytes", r"c\x1b[2J  5 bytes", r"d\u202e  5 bytes"]

    def test_pipe_is_refused_without_waiting(self, bench: Workbench) -> None:
        os.mkfifo(bench.work / "pipe")
        assert "is not a regular file" in bench.refused("read_file", path="pipe")

    def test_missing_file_is_an_error(self, bench: Workbench) -> None:
        assert "there is no file missing.txt" in bench.refused("read_file", path="missing.txt")

    @pytest.mark.parametrize("path", ["", "a\0b"])
    def test_invalid_path_is_an_error(self, bench: Workbench, path: str) -> None:
        assert "is not a path" in bench.refused("read_file", path=path)

    def test_paths_are_relative_to_the_current_directory(self, bench: Workbench) -> None:
        put(bench.work / "sub" / "a.txt")
        bench.call("terminal", command="pwd", cwd="sub")
        assert bench.call("read_file", path="a.txt") == "1\ttext"


class TestOutside:
    def test_reading_inside_the_directory_needs_no_approval(self, bench: Workbench) -> None:
        put(bench.work / "a.txt")
        bench.call("read_file", path=str(bench.work / "a.txt"))
        assert bench.person.asked == []

    def test_reading_outside_the_directory_needs_approval(self, bench: Workbench, tmp_path: Path) -> None:
        there = put(tmp_path / "elsewhere.txt")
        assert bench.call("read_file", path=str(there)) == "1\ttext"
        assert [(request.tool, request.detail) for request in bench.person.asked] == [("read_file", str(there))]

    def test_denied_file_is_not_read(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "elsewhere.txt")
        bench.person.decision = Decision.DENY
        assert "The user has not allowed this." in bench.refused("read_file", path="../../elsewhere.txt")

    def test_link_to_outside_is_asked_by_its_target(self, bench: Workbench, tmp_path: Path) -> None:
        there = put(tmp_path / "elsewhere.txt")
        (bench.work / "link").symlink_to(there)
        bench.call("read_file", path="link")
        (request,) = bench.person.asked
        assert request.detail == f"{there}\n\ngiven as {bench.work / 'link'}"

    def test_changing_the_directory_does_not_widen_access(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "elsewhere.txt")
        bench.call("terminal", command="true", cwd=str(tmp_path))
        bench.change(approve=None)
        assert "cannot be asked" in bench.refused("read_file", path="elsewhere.txt")


PROTECTED = [
    "~/.ssh/config",
    "~/.ssh",
    "~/.aws/credentials",
    "~/.gnupg/pubring.kbx",
    "~/.config/gh/hosts.yml",
    "~/.netrc",
    "~/.bashrc",
    "~/.bash_history",
    "~/.hermes/config.yaml",
    "~/.hermes/.env",
    "~/.hermes/state.db",
    "~/.hermes/state.db-wal",
    "~/.hermes/state.db.spool",
    "~/.hermes/memories/terminal.md",
    "~/.hermes/approvals/terminal.json",
    "~/.hermes/sessions/x.jsonl",
    "~/work/.env",
    "~/work/.env.production",
    "~/work/.ENV",
    "~/work/.envrc",
    "~/work/prod.env",
    "~/work/terraform.tfstate",
    "~/.claude/.credentials.json",
    "~/.cargo/credentials.toml",
    "~/.hermes/anything/at/all",
    "~/work/server.pem",
    "~/work/server.key",
    "~/work/id_rsa",
    "~/work/id_ed25519",
    "~/work/other.db",
    "~/work/cache.sqlite3",
    "/etc/shadow",
    "/proc/self/environ",
    "//proc/self/environ",
    "/proc/self/root/etc/passwd",
    "/dev/fd/0",
    "/proc/self/cwd/../../etc/shadow",
    "/dev/null",
]
"""Protected paths, as a user in `~/work` writes them."""


class TestProtected:
    @pytest.fixture(autouse=True)
    def with_everything_allowed(self, bench: Workbench, tmp_path: Path) -> None:
        bench.change(approvals=Approvals("allow", Permits(tmp_path)))

    @pytest.mark.parametrize("path", PROTECTED)
    def test_protected_file_cannot_be_allowed(self, bench: Workbench, tmp_path: Path, path: str) -> None:
        if path.startswith("~") and not path.startswith("~/.hermes/state.db") and path != "~/.ssh":
            put(tmp_path / "person" / path[2:])
        assert "cannot be read, because" in bench.refused("read_file", path=path)

    def test_link_to_a_protected_file_is_refused(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "person" / ".ssh" / "config")
        (bench.work / "innocent.txt").symlink_to(tmp_path / "person" / ".ssh" / "config")
        assert "cannot be read, because" in bench.refused("read_file", path="innocent.txt")

    def test_link_to_a_protected_directory_is_refused(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "person" / ".ssh" / "config")
        (bench.work / "sub").symlink_to(tmp_path / "person" / ".ssh")
        assert "cannot be read, because" in bench.refused("read_file", path="sub/config")

    def test_target_of_a_linked_protected_directory_is_protected(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "disk" / "config")
        (tmp_path / "person" / ".ssh").symlink_to(tmp_path / "disk")
        assert "cannot be read, because" in bench.refused("read_file", path=str(tmp_path / "disk" / "config"))

    def test_link_with_a_secret_name_is_protected(self, bench: Workbench) -> None:
        put(bench.work / "settings")
        (bench.work / ".env").symlink_to("settings")
        assert "cannot be read, because" in bench.refused("read_file", path=".env")

    def test_store_is_protected_under_any_name(self, bench: Workbench) -> None:
        os.link(bench.context.home / "state.db", bench.work / "innocent.txt")
        assert "Hermes stores its own files there" in bench.refused("read_file", path="innocent.txt")

    @pytest.mark.parametrize(
        "name", [".env.example", "id_rsa.pub", "id_map.py", "environment.py", "keys.txt", "credentials.py", "token.py"]
    )
    def test_harmless_similar_names_are_read(self, bench: Workbench, name: str) -> None:
        put(bench.work / name)
        assert bench.call("read_file", path=name) == "1\ttext"

    def test_project_inside_the_hermes_home_is_protected(self, bench: Workbench) -> None:
        project = bench.context.home / "workspace"
        put(project / "a.txt")
        assert "Hermes stores its own files there" in bench.refused("read_file", path=str(project / "a.txt"))

    @pytest.mark.parametrize(
        "name", [each.replace("*", "x") for each in (*FILES, *(f"{directory}/x" for directory in DIRECTORIES))]
    )
    @pytest.mark.parametrize("place", ["", "deep/down/"])
    def test_every_listed_name_is_protected_in_a_project(self, bench: Workbench, place: str, name: str) -> None:
        put(bench.work / f"{place}{name}")
        assert "cannot be read, because" in bench.refused("read_file", path=f"{place}{name}")

    @pytest.mark.parametrize("ending", COPIES)
    def test_backup_copy_of_a_protected_file_is_protected(self, bench: Workbench, ending: str) -> None:
        for name in ("server.key", ".netrc", "secrets.yaml", ".secrets.yaml", "data.db"):
            put(bench.work / f"{name}{ending}")
            assert "cannot be read, because" in bench.refused("read_file", path=f"{name}{ending}")

    @pytest.mark.parametrize("name", [*HOME_PLACES, ".anything", ".config/any/thing", ".anything.txt"])
    def test_hidden_entries_of_the_home_are_protected(self, bench: Workbench, tmp_path: Path, name: str) -> None:
        put(tmp_path / "person" / name)
        assert "cannot be read, because" in bench.refused("read_file", path=f"~/{name}")

    @pytest.mark.parametrize("name", SYSTEM_PLACES)
    @pytest.mark.parametrize("spelling", ["{}", "/{}", "//{}", "/.{}", "/usr/..{}", "/proc/self/root{}"])
    def test_system_places_are_protected_in_any_spelling(self, bench: Workbench, name: str, spelling: str) -> None:
        assert "it belongs to the system" in bench.refused("read_file", path=spelling.format(name))

    def test_shared_memory_is_treated_like_tmp(self, tmp_path: Path) -> None:
        places = ProtectedPlaces([tmp_path / "person"], tmp_path / "person" / ".hermes")
        for path, reason in [("/dev/shm/a.txt", None), ("/dev/sda", "it belongs to the system")]:
            assert places.reason(ResolvedPath(Path(path), Path(path))) == reason
        assert is_too_wide(Path("/dev/shm"), [tmp_path])

    def test_home_of_the_system_is_protected_too(self, bench: Workbench) -> None:
        home = pwd.getpwuid(os.getuid()).pw_dir
        assert "cannot be read, because" in bench.refused("read_file", path=f"{home}/.anything")

    def test_target_of_a_hidden_link_in_the_home_is_protected(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "disk" / "tool" / "config")
        (tmp_path / "person" / ".tool").symlink_to(tmp_path / "disk" / "tool")
        assert "cannot be read, because" in bench.refused("read_file", path=str(tmp_path / "disk" / "tool" / "config"))

    def test_too_long_path_is_an_error(self, bench: Workbench) -> None:
        assert "is not a path" in bench.refused("read_file", path="a/" * 50_000)


class TestWideRoots:
    """Directories that are too wide to read without approval, such as a home."""

    @pytest.mark.parametrize("root", ["{home}", "{home}/..", "{home}/../..", "/", "/home", "/etc", "/usr"])
    def test_nothing_in_a_wide_root_is_read_without_approval(self, bench: Workbench, tmp_path: Path, root: str) -> None:
        place = Path(root.format(home=tmp_path / "person"))
        inside = next(each for each in ("/etc/hostname", "/usr/bin/env", "/etc/passwd") if Path(each).exists())
        target = put(tmp_path / "person" / "a.txt") if root.startswith("{home}") else Path(inside)
        bench.change(working_directory=WorkingDirectory(place), approve=None)
        assert "cannot be asked" in bench.refused("read_file", path=str(target))
        assert "cannot be asked" in bench.refused("terminal", command="ls")
        assert "cannot be asked" in bench.refused("terminal", command=f"cat {target}")
        assert "cannot be asked" in bench.refused("terminal", command="pwd")

    @pytest.mark.parametrize("root", ["/home/ada", "/Users/ada", "/mnt/c", "/mnt/c/Users", "/mnt/c/Users/ada"])
    def test_home_of_another_user_or_system_is_a_wide_root(self, root: str) -> None:
        assert is_too_wide(Path(root), [Path("/root")])
        assert not is_too_wide(Path(root, "x", "project"), [Path("/root")])

    def test_link_to_the_home_counts_as_the_home(self, bench: Workbench, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "person")
        put(tmp_path / "person" / "a.txt")
        bench.change(working_directory=WorkingDirectory(tmp_path / "link"), approve=None)
        assert "cannot be asked" in bench.refused("read_file", path="a.txt")

    def test_home_that_is_a_link_counts_as_the_home(self, bench: Workbench, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "person")
        put(tmp_path / "person" / "a.txt")
        bench.change(
            working_directory=WorkingDirectory(tmp_path / "person"),
            environ={**bench.context.environ, "HOME": str(tmp_path / "link")},
            approve=None,
        )
        assert "cannot be asked" in bench.refused("read_file", path="a.txt")

    def test_command_in_a_wide_root_needs_approval_with_normal_risk(self, bench: Workbench, tmp_path: Path) -> None:
        bench.change(working_directory=WorkingDirectory(tmp_path / "person"))
        bench.call("terminal", command="ls")
        assert [request.risk for request in bench.person.asked] == ["normal"]

    def test_project_below_the_home_is_read_without_approval(self, bench: Workbench) -> None:
        put(bench.work / "a.txt")
        bench.change(approve=None)
        assert bench.call("read_file", path="a.txt") == "1\ttext"

    def test_project_in_a_hidden_directory_of_the_home_needs_approval(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "person" / ".dotfiles" / "a.txt")
        bench.change(working_directory=WorkingDirectory(tmp_path / "person" / ".dotfiles"))
        bench.call("terminal", command="ls")
        assert [request.risk for request in bench.person.asked] == ["high"]
