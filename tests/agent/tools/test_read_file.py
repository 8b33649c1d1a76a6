"""Files that an agent reads, asks for, and never gets."""

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

    def test_a_part(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "".join(f"line {number}\n" for number in range(1, 11)))
        text = bench.call("read_file", path="a.txt", start_line=4, lines=2)
        assert text == "4\tline 4\n5\tline 5\n[the file goes on: read on with start_line=6]"
        assert bench.call("read_file", path="a.txt", start_line=9, lines=2) == "9\tline 9\n10\tline 10"

    def test_behind_the_end(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "one\n")
        assert (
            bench.refused("read_file", path="a.txt", start_line=2)
            == "start_line 2 is behind the end: the file has 1 lines"
        )

    @pytest.mark.parametrize(("start_line", "lines"), [(0, 1), (-5, 0), (1, -1)])
    def test_odd_numbers_mean_the_least(self, bench: Workbench, start_line: int, lines: int) -> None:
        put(bench.work / "a.txt", "one\ntwo\n")
        text = bench.call("read_file", path="a.txt", start_line=start_line, lines=lines)
        assert text == "1\tone\n[the file goes on: read on with start_line=2]"

    def test_an_empty_file(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "")
        assert bench.call("read_file", path="a.txt") == "[the file is empty]"

    def test_a_long_file_is_read_in_parts_that_fit(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "".join(f"{'x' * 90} {number}\n" for number in range(1, 2_001)))
        seen, start = [], 1
        while start:
            text = bench.call("read_file", path="a.txt", start_line=start)
            assert len(text) <= 50_000
            body, _, rest = text.partition("\n[the file goes on: read on with start_line=")
            seen += body.splitlines()
            start = int(rest.rstrip("]")) if rest else 0
        assert seen == [f"{number}\t{'x' * 90} {number}" for number in range(1, 2_001)]

    def test_a_very_long_line_is_cut(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "é" * 100_000 + "\nnext\n")
        assert (
            bench.call("read_file", path="a.txt") == f"1\t{'é' * 1_000} [... 198000 more bytes on this line]\n2\tnext"
        )

    def test_a_line_that_is_cut_inside_of_a_character(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "x" + "é" * 100_000)
        assert bench.call("read_file", path="a.txt").startswith(f"1\tx{'é' * 999} [...")

    def test_a_line_that_just_fits_is_whole(self, bench: Workbench) -> None:
        put(bench.work / "a.txt", "x" * 2_000 + "\nnext\n")
        assert bench.call("read_file", path="a.txt") == f"1\t{'x' * 2_000}\n2\tnext"

    @pytest.mark.parametrize(
        ("data", "text"),
        [(b"\xef\xbb\xbfone\n", "1\tone"), ("größe\n".encode("latin-1"), "1\tgröße"), ("größe\n".encode(), "1\tgröße")],
    )
    def test_other_encodings(self, bench: Workbench, data: bytes, text: str) -> None:
        put(bench.work / "a.txt", data)
        assert bench.call("read_file", path="a.txt") == text

    def test_a_binary_file_is_said_to_be_one(self, bench: Workbench) -> None:
        put(bench.work / "a.bin", b"\x89PNG\x00\x01")
        assert bench.refused("read_file", path="a.bin") == "this is no text: a binary file of 6 bytes"

    def test_a_directory_is_listed(self, bench: Workbench) -> None:
        put(bench.work / "b.txt", "12345")
        put(bench.work / "a" / "c.txt")
        assert bench.call("read_file", path=".") == f"{bench.work} has 2 entries\na/\nb.txt  5 bytes"

    def test_a_large_directory_is_listed_in_part(self, bench: Workbench) -> None:
        for number in range(510):
            put(bench.work / f"{number:03}")
        text = bench.call("read_file", path=".")
        assert text.endswith("499  5 bytes\n[... 10 more entries]")

    def test_a_pipe_is_not_waited_for(self, bench: Workbench) -> None:
        os.mkfifo(bench.work / "pipe")
        assert "is not a file that can be read" in bench.refused("read_file", path="pipe")

    def test_a_file_that_is_not_there(self, bench: Workbench) -> None:
        assert "there is no file missing.txt" in bench.refused("read_file", path="missing.txt")

    @pytest.mark.parametrize("path", ["", "a\0b"])
    def test_what_is_no_path(self, bench: Workbench, path: str) -> None:
        assert "is not a path" in bench.refused("read_file", path=path)

    def test_paths_start_where_the_session_works_now(self, bench: Workbench) -> None:
        put(bench.work / "sub" / "a.txt")
        bench.call("terminal", command="pwd", cwd="sub")
        assert bench.call("read_file", path="a.txt") == "1\ttext"


class TestOutside:
    def test_inside_nobody_is_asked(self, bench: Workbench) -> None:
        put(bench.work / "a.txt")
        bench.call("read_file", path=str(bench.work / "a.txt"))
        assert bench.person.asked == []

    def test_outside_the_person_is_asked(self, bench: Workbench, tmp_path: Path) -> None:
        there = put(tmp_path / "elsewhere.txt")
        assert bench.call("read_file", path=str(there)) == "1\ttext"
        assert [(request.tool, request.detail) for request in bench.person.asked] == [("read_file", str(there))]

    def test_a_denied_file_is_not_read(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "elsewhere.txt")
        bench.person.decision = Decision.DENY
        assert "The person has not allowed this." in bench.refused("read_file", path="../../elsewhere.txt")

    def test_a_link_out_is_asked_about_by_where_it_leads(self, bench: Workbench, tmp_path: Path) -> None:
        there = put(tmp_path / "elsewhere.txt")
        (bench.work / "link").symlink_to(there)
        bench.call("read_file", path="link")
        (request,) = bench.person.asked
        assert request.detail == f"{there}\n\nwhich was named {bench.work / 'link'}"

    def test_another_working_directory_does_not_widen_it(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "elsewhere.txt")
        bench.call("terminal", command="true", cwd=str(tmp_path))
        bench.change(approve=None)
        bench.refused("read_file", path="elsewhere.txt")


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
"""What nobody gets, as somebody in `~/work` names it."""


class TestProtected:
    @pytest.fixture(autouse=True)
    def with_everything_allowed(self, bench: Workbench, tmp_path: Path) -> None:
        bench.change(approvals=Approvals("allow", Permits(tmp_path)))

    @pytest.mark.parametrize("path", PROTECTED)
    def test_nobody_can_allow_it(self, bench: Workbench, tmp_path: Path, path: str) -> None:
        if path.startswith("~") and not path.startswith("~/.hermes/state.db") and path != "~/.ssh":
            put(tmp_path / "person" / path[2:])
        assert "is not read, because" in bench.refused("read_file", path=path)

    def test_a_link_to_it_is_not_a_way_around(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "person" / ".ssh" / "config")
        (bench.work / "innocent.txt").symlink_to(tmp_path / "person" / ".ssh" / "config")
        assert "is not read" in bench.refused("read_file", path="innocent.txt")

    def test_a_linked_directory_is_not_a_way_around(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "person" / ".ssh" / "config")
        (bench.work / "sub").symlink_to(tmp_path / "person" / ".ssh")
        assert "is not read" in bench.refused("read_file", path="sub/config")

    def test_keys_that_are_kept_elsewhere_are_found_by_their_real_place(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "disk" / "config")
        (tmp_path / "person" / ".ssh").symlink_to(tmp_path / "disk")
        assert "is not read" in bench.refused("read_file", path=str(tmp_path / "disk" / "config"))

    def test_a_link_with_the_name_of_a_secret_is_one(self, bench: Workbench) -> None:
        put(bench.work / "settings")
        (bench.work / ".env").symlink_to("settings")
        assert "is not read" in bench.refused("read_file", path=".env")

    def test_the_store_is_not_opened_under_any_name(self, bench: Workbench) -> None:
        os.link(bench.context.home / "state.db", bench.work / "innocent.txt")
        assert "Hermes keeps its own files there" in bench.refused("read_file", path="innocent.txt")

    @pytest.mark.parametrize(
        "name", [".env.example", "id_rsa.pub", "id_map.py", "environment.py", "keys.txt", "credentials.py", "token.py"]
    )
    def test_what_only_looks_alike_is_read(self, bench: Workbench, name: str) -> None:
        put(bench.work / name)
        assert bench.call("read_file", path=name) == "1\ttext"

    def test_a_project_inside_of_the_hermes_home_is_not_read(self, bench: Workbench) -> None:
        project = bench.context.home / "workspace"
        put(project / "a.txt")
        assert "Hermes keeps its own files there" in bench.refused("read_file", path=str(project / "a.txt"))

    @pytest.mark.parametrize(
        "name", [each.replace("*", "x") for each in (*FILES, *(f"{directory}/x" for directory in DIRECTORIES))]
    )
    @pytest.mark.parametrize("place", ["", "deep/down/"])
    def test_every_name_on_the_list_is_protected_in_a_project(self, bench: Workbench, place: str, name: str) -> None:
        put(bench.work / f"{place}{name}")
        assert "is not read" in bench.refused("read_file", path=f"{place}{name}")

    @pytest.mark.parametrize("ending", COPIES)
    def test_a_copy_of_it_that_lies_beside_it_is_protected_too(self, bench: Workbench, ending: str) -> None:
        for name in ("server.key", ".netrc", "secrets.yaml", ".secrets.yaml", "data.db"):
            put(bench.work / f"{name}{ending}")
            assert "is not read" in bench.refused("read_file", path=f"{name}{ending}")

    @pytest.mark.parametrize("name", [*HOME_PLACES, ".anything", ".config/any/thing", ".anything.txt"])
    def test_hidden_entries_of_the_home_are_protected(self, bench: Workbench, tmp_path: Path, name: str) -> None:
        put(tmp_path / "person" / name)
        assert "is not read" in bench.refused("read_file", path=f"~/{name}")

    @pytest.mark.parametrize("name", SYSTEM_PLACES)
    @pytest.mark.parametrize("spelling", ["{}", "/{}", "//{}", "/.{}", "/usr/..{}", "/proc/self/root{}"])
    def test_places_of_the_system_are_protected_by_any_spelling(
        self, bench: Workbench, name: str, spelling: str
    ) -> None:
        assert "it belongs to the system" in bench.refused("read_file", path=spelling.format(name))

    def test_shared_memory_is_a_place_for_temporary_files_like_tmp(self, tmp_path: Path) -> None:
        places = ProtectedPlaces([tmp_path / "person"], tmp_path / "person" / ".hermes")
        for path, reason in [("/dev/shm/a.txt", None), ("/dev/sda", "it belongs to the system")]:
            assert places.reason(ResolvedPath(Path(path), Path(path))) == reason
        assert is_too_wide(Path("/dev/shm"), [tmp_path])

    def test_the_home_of_the_system_counts_besides_that_of_the_environment(self, bench: Workbench) -> None:
        home = pwd.getpwuid(os.getuid()).pw_dir
        assert "is not read" in bench.refused("read_file", path=f"{home}/.anything")

    def test_a_hidden_entry_of_the_home_that_is_a_link_protects_where_it_leads(
        self, bench: Workbench, tmp_path: Path
    ) -> None:
        put(tmp_path / "disk" / "tool" / "config")
        (tmp_path / "person" / ".tool").symlink_to(tmp_path / "disk" / "tool")
        assert "is not read" in bench.refused("read_file", path=str(tmp_path / "disk" / "tool" / "config"))

    def test_a_path_that_is_too_long_is_no_path(self, bench: Workbench) -> None:
        assert "is not a path" in bench.refused("read_file", path="a/" * 50_000)


class TestWideRoots:
    """Where nothing is free to read, although it lies in the session's directory."""

    @pytest.mark.parametrize("root", ["{home}", "{home}/..", "{home}/../..", "/", "/home", "/etc", "/usr"])
    def test_nothing_is_read_unasked(self, bench: Workbench, tmp_path: Path, root: str) -> None:
        place = Path(root.format(home=tmp_path / "person"))
        inside = next(each for each in ("/etc/hostname", "/usr/bin/env", "/etc/passwd") if Path(each).exists())
        target = put(tmp_path / "person" / "a.txt") if root.startswith("{home}") else Path(inside)
        bench.change(working_directory=WorkingDirectory(place), approve=None)
        assert "nobody to ask" in bench.refused("read_file", path=str(target))
        assert "nobody to ask" in bench.refused("terminal", command="ls")
        assert "nobody to ask" in bench.refused("terminal", command=f"cat {target}")
        assert "nobody to ask" in bench.refused("terminal", command="pwd")

    @pytest.mark.parametrize("root", ["/home/ada", "/Users/ada", "/mnt/c", "/mnt/c/Users", "/mnt/c/Users/ada"])
    def test_a_home_of_another_person_or_system_is_one_too(self, root: str) -> None:
        assert is_too_wide(Path(root), [Path("/root")])
        assert not is_too_wide(Path(root, "x", "project"), [Path("/root")])

    def test_a_link_to_the_home_is_the_home(self, bench: Workbench, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "person")
        put(tmp_path / "person" / "a.txt")
        bench.change(working_directory=WorkingDirectory(tmp_path / "link"), approve=None)
        assert "nobody to ask" in bench.refused("read_file", path="a.txt")

    def test_a_home_that_is_a_link_is_the_home(self, bench: Workbench, tmp_path: Path) -> None:
        (tmp_path / "link").symlink_to(tmp_path / "person")
        put(tmp_path / "person" / "a.txt")
        bench.change(
            working_directory=WorkingDirectory(tmp_path / "person"),
            environ={**bench.context.environ, "HOME": str(tmp_path / "link")},
            approve=None,
        )
        assert "nobody to ask" in bench.refused("read_file", path="a.txt")

    def test_a_command_there_is_asked_about_and_not_dangerous_for_that(self, bench: Workbench, tmp_path: Path) -> None:
        bench.change(working_directory=WorkingDirectory(tmp_path / "person"))
        bench.call("terminal", command="ls")
        assert [request.risk for request in bench.person.asked] == ["normal"]

    def test_a_project_below_the_home_is_free(self, bench: Workbench) -> None:
        put(bench.work / "a.txt")
        bench.change(approve=None)
        assert bench.call("read_file", path="a.txt") == "1\ttext"

    def test_a_project_behind_a_hidden_name_of_the_home_is_not(self, bench: Workbench, tmp_path: Path) -> None:
        put(tmp_path / "person" / ".dotfiles" / "a.txt")
        bench.change(working_directory=WorkingDirectory(tmp_path / "person" / ".dotfiles"))
        bench.call("terminal", command="ls")
        assert [request.risk for request in bench.person.asked] == ["high"]
