"""Runs git without any setting of a repository, a user or the system, and with limits."""

from __future__ import annotations

import contextlib
import os
import selectors
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from hermes.agent.models.model import Cancellation
from hermes.agent.references.texts import NotAttached
from hermes.agent.safety.environment import read_only_environment
from hermes.agent.safety.visible_text import make_path_visible
from hermes.agent.tools.context import ToolContext
from hermes.agent.tools.shell import process_group

TIMEOUT_S = 10.0

MAX_MEMORY_BYTES = 1024 * 1024 * 1024
"""A few small objects can stand for any number of files, which git lists in memory before it writes a word."""

_POLL_S = 0.1
_CHUNK_BYTES = 64 * 1024
_MAX_ERROR_BYTES = 4_096
_MAX_ERROR_CHARACTERS = 200

_ALWAYS = {
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_ATTR_NOSYSTEM": "1",
    "GIT_ALLOW_PROTOCOL": "",  # no remote helper, no ssh, no upload-pack
    "GIT_NO_LAZY_FETCH": "1",
    "GIT_NO_REPLACE_OBJECTS": "1",
    "GIT_OPTIONAL_LOCKS": "0",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_LITERAL_PATHSPECS": "1",
    "GIT_PAGER": "cat",
    "GIT_EDITOR": "false",
    "GIT_ASKPASS": "false",
    "LC_ALL": "C",
}
_OPTIONS = (
    *("--no-pager", "-c", "core.fsmonitor=false", "-c", f"core.hooksPath={os.devnull}"),
    *("-c", f"core.attributesFile={os.devnull}", "-c", f"core.excludesFile={os.devnull}"),
    *("-c", "core.bigFileThreshold=16m"),  # larger files count as binary and are not loaded
    *("-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false"),  # they repeat what the objects say
    *("-c", "core.untrackedCache=false", "-c", "core.quotePath=true", "-c", "diff.ignoreSubmodules=all"),
)


class GitFailed(NotAttached):
    """Git ended with an error."""


@dataclass(frozen=True, slots=True)
class GitOutput:
    """What git wrote."""

    data: bytes
    is_cut: bool
    """Whether git wrote more than the limit, and was ended."""


@dataclass(frozen=True, slots=True)
class Git:
    """A git of the system, with its variables."""

    program: str
    variables: Mapping[str, str]
    cancellation: Cancellation
    timeout_s: float = TIMEOUT_S

    def run(self, arguments: Sequence[str], *, cwd: Path, variables: Mapping[str, str], limit_bytes: int) -> GitOutput:
        """Return the output of git; raise `NotAttached` with its error, or if it takes too long."""
        process = subprocess.Popen(
            [self.program, *_OPTIONS, *arguments],
            cwd=cwd,
            env={**self.variables, **_ALWAYS, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        try:
            _limit_memory(process.pid)
            output, error = self._read(process, limit_bytes)
        finally:
            if process.poll() is None:
                process_group.send(process.pid, signal.SIGKILL)
            process.wait()
            for stream in (process.stdout, process.stderr):
                if stream is not None:
                    stream.close()
        if process.returncode != 0 and not output.is_cut:
            # The directory that git takes for `.git` is ours, and says nothing to a user.
            plain = error.replace(os.fsencode(variables.get("GIT_DIR", "\0")), b".git")
            raise GitFailed(f"git failed: {_plain_error(plain, process.returncode)}")
        return output

    @property
    def _too_slow(self) -> str:
        return f"git took longer than {self.timeout_s:g} s"

    def _read(self, process: subprocess.Popen[bytes], limit_bytes: int) -> tuple[GitOutput, bytes]:
        """Read both outputs until git ends, the limit is reached or the time is over."""
        assert process.stdout is not None
        assert process.stderr is not None
        deadline = time.monotonic() + self.timeout_s
        pieces: dict[IO[bytes], bytearray] = {process.stdout: bytearray(), process.stderr: bytearray()}
        with selectors.DefaultSelector() as selector:
            for stream in pieces:
                selector.register(stream, selectors.EVENT_READ)
            while selector.get_map():
                if self.cancellation.is_cancelled:
                    raise NotAttached("you stopped this turn")
                if time.monotonic() > deadline:
                    raise NotAttached(self._too_slow)
                for key, _ in selector.select(_POLL_S):
                    chunk = os.read(key.fd, _CHUNK_BYTES)
                    if not chunk:
                        selector.unregister(key.fileobj)
                        continue
                    kept = pieces[process.stdout if key.fd == process.stdout.fileno() else process.stderr]
                    kept += chunk
                    if key.fd == process.stderr.fileno():
                        del kept[_MAX_ERROR_BYTES:]
                    elif len(kept) > limit_bytes:
                        return GitOutput(bytes(kept[:limit_bytes]), is_cut=True), b""
        try:
            process.wait(max(_POLL_S, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise NotAttached(self._too_slow) from None
        return GitOutput(bytes(pieces[process.stdout]), is_cut=False), bytes(pieces[process.stderr])


def find_git(context: ToolContext, timeout_s: float = TIMEOUT_S) -> Git:
    """Return the git of the system; raise `NotAttached` if there is none outside the user's own directories."""
    variables = read_only_environment(context.environ, (context.directory.root, *context.user_homes))
    program = None if variables is None else shutil.which("git", path=variables["PATH"])
    if variables is None or program is None:
        raise NotAttached("git is not installed in a directory of the system")
    kept = {name: value for name, value in variables.items() if name in ("PATH", "TMPDIR")}
    return Git(program, kept, context.cancellation, timeout_s)


def _limit_memory(process_id: int) -> None:
    """Limit the memory of a process, not counting files that it maps, where the system can do that."""
    import resource

    if hasattr(resource, "prlimit"):  # Linux
        with contextlib.suppress(OSError):  # it has ended already, or has a lower limit
            resource.prlimit(process_id, resource.RLIMIT_DATA, (MAX_MEMORY_BYTES, MAX_MEMORY_BYTES))


def _plain_error(error: bytes, code: int) -> str:
    """Return the first line of git's error, without its prefix, or its exit code."""
    for line in error.decode("utf-8", "replace").splitlines():
        text = line.removeprefix("fatal: ").removeprefix("error: ").strip()
        if text:
            return make_path_visible(text)[:_MAX_ERROR_CHARACTERS]
    return f"exit code {code}"
