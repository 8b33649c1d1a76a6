"""Commands without approval, in real directories: they run no other program and read nothing else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from hermes.agent.safety.environment import read_only_environment
from tests.agent.tools.workbench import Workbench


def put_program(path: Path, mark: Path) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n: > {mark}\n")
    path.chmod(0o755)


@pytest.fixture
def alone(bench: Workbench) -> Workbench:
    """A session whose user cannot be asked."""
    bench.change(approve=None)
    (bench.work / "a.txt").write_text("text\n")
    return bench


class TestPrograms:
    @pytest.mark.parametrize("place", ["work/bin", "work/node_modules/.bin", ".local/bin"])
    def test_program_with_the_same_name_in_the_project_or_home_is_not_run(
        self, alone: Workbench, tmp_path: Path, place: str
    ) -> None:
        directory, mark = tmp_path / "person" / place, tmp_path / "mark"
        put_program(directory / "ls", mark)
        alone.change(environ={**alone.context.environ, "PATH": f"{directory}{os.pathsep}{os.environ['PATH']}"})
        assert "a.txt" in alone.call("terminal", command="ls")
        assert not mark.exists()

    def test_without_a_system_directory_nothing_runs_unasked(self, alone: Workbench, tmp_path: Path) -> None:
        put_program(alone.work / "bin" / "ls", tmp_path / "mark")
        alone.change(environ={**alone.context.environ, "PATH": str(alone.work / "bin")})
        assert "cannot be asked" in alone.refused("terminal", command="ls")
        assert not (tmp_path / "mark").exists()

    def test_directory_writable_by_others_is_not_trusted(self, tmp_path: Path) -> None:
        tmp_path.chmod(0o777)
        environ = read_only_environment({"PATH": f"{tmp_path}:/usr/bin"}, [])
        assert environ is not None
        assert environ["PATH"] == "/usr/bin"

    def test_unasked_command_gets_no_passed_variables(self, alone: Workbench, tmp_path: Path) -> None:
        script = tmp_path / "start.sh"
        script.write_text(f": > {tmp_path / 'mark'}\n")
        alone.change(environ={**alone.context.environ, "BASH_ENV": str(script)}, env_passthrough=["BASH_ENV"])
        alone.call("terminal", command="cat a.txt")
        assert not (tmp_path / "mark").exists()


class TestFiles:
    @pytest.mark.parametrize("program", ["cat", "head", "tail", "wc", "file", "stat", "grep x", "ls", "du"])
    def test_reading_a_pipe_needs_approval(self, alone: Workbench, program: str) -> None:
        os.mkfifo(alone.work / "pipe")
        assert "cannot be asked" in alone.refused("terminal", command=f"{program} pipe")

    @pytest.mark.parametrize(
        "command",
        [
            "ls -R",
            "ls -L",
            "ls -lR .",
            "ls -H out",
            "ls --dereference",
            "du -a",
            "du -L",
            "du --files0-from=a.txt",
            "du -X a.txt",
            "wc --files0-from=a.txt",
            "grep -f a.txt a.txt",
            "grep -fa.txt a.txt",
            "grep -nf a.txt a.txt",
            "grep --file=a.txt a.txt",
            "file -f a.txt",
            "file -m a.txt a.txt",
            "file -C -m a.txt",
            "file -z a.txt",
            "date -f a.txt",
            "date -r a.txt",
            "date -s now",
            "date --set=now",
            "stat --format=%n a.txt",
            "df --output",
            "head --lines=3 a.txt",
            "which ./a.txt",
            "which /etc/shadow",
        ],
    )
    def test_options_that_follow_links_or_name_files_need_approval(self, alone: Workbench, command: str) -> None:
        assert "cannot be asked" in alone.refused("terminal", command=command)

    @pytest.mark.parametrize("program", ["cat", "head", "grep x", "file", "stat", "ls -l", "wc", "tail", "du", "df"])
    @pytest.mark.parametrize(
        "path",
        [
            "/proc/self/environ",
            "/proc/1/environ",
            "//proc/self/environ",
            "/proc/self/root/etc/passwd",
            "/dev/fd/0",
            "environ",
            "through",
            "to-proc/self/environ",
        ],
    )
    def test_reading_the_environment_of_processes_needs_approval(
        self, alone: Workbench, program: str, path: str
    ) -> None:
        (alone.work / "environ").symlink_to(f"/proc/{os.getpid()}/environ")
        (alone.work / "through").symlink_to("/proc/self/cwd/a.txt")
        (alone.work / "to-proc").symlink_to("/proc")
        assert "cannot be asked" in alone.refused("terminal", command=f"{program} {path}")

    def test_link_with_another_target_per_process_is_not_followed(
        self, alone: Workbench, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        harmless, project = alone.work / "harmless", alone.work / "project"
        harmless.mkdir()
        project.mkdir()
        (harmless / "x").write_text("harmless")
        (tmp_path / "outside.txt").write_text("private words")
        (project / "x").symlink_to(tmp_path / "outside.txt")
        (project / "link").symlink_to("/proc/self/cwd/x")
        monkeypatch.chdir(harmless)
        alone.refused("terminal", command="cat link", cwd="project")
        assert "cannot be read, because" in alone.refused("read_file", path="project/link")
