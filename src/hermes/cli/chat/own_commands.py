"""`!command`: the user's own commands, whose output the model reads with the next message."""

from __future__ import annotations

import codecs
import os
import re
import select
import subprocess
import time
from typing import TYPE_CHECKING

from hermes.agent.references.texts import Block, format_block
from hermes.cli.chat.keyboard.modes import echo_on
from hermes.cli.chat.terminal.output import write_notice
from hermes.cli.display.terminal import printable
from hermes.errors import HermesError
from hermes.phrases import plural

if TYPE_CHECKING:
    from pathlib import Path

    from hermes.cli.chat.chat_loop import Chat

PATTERN = re.compile(r"!(?!!)\s*(\S.*)", re.DOTALL)
HEAD, TAIL = 8_000, 24_000
"""How many characters of an output the model gets, from its beginning and from its end."""
MAX_OUTPUTS = 20
_CHUNK = 65_536
_LINGER_S = 0.3
"""How long output is read after the command has ended: a process that it left in the background keeps it open."""
_STOP_S = 2.0
_TICK_S = 0.1


class OwnCommands:
    """Runs the user's commands, and keeps their output until the next message."""

    def __init__(self) -> None:
        self._outputs: list[str] = []

    def run(self, chat: Chat, command: str) -> None:
        """Run a command in the user's shell and show its output."""
        directory = chat.conversation.session.tools.directory
        output = Output()
        with echo_on():
            process = _start(command, None if directory is None else directory.cwd)
            try:
                with chat.signals.interruptible():
                    _read_output(process, output)
            except KeyboardInterrupt:
                output.interrupt()
                _stop(process)
            finally:
                assert process.stdout is not None
                process.stdout.close()
        end = "interrupted" if output.is_interrupted else f"exit code {process.returncode}"
        output.close(end if process.returncode or output.is_interrupted else "")
        from hermes.secrets import redact  # its patterns take longer to load than all of a short chat

        text, _ = redact(output.text)
        block = Block(f"the user ran this command; {end}", text)
        self._outputs = [*self._outputs, format_block(f"!{command}", block)][-MAX_OUTPUTS:]
        chat.screen.print_dim("The model reads this with your next message.")

    def take(self) -> list[str]:
        """Return the outputs since the last message, and forget them."""
        outputs, self._outputs = self._outputs, []
        return outputs


class Output:
    """The output of a command: shown as it arrives, with a part of it kept."""

    def __init__(self) -> None:
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._head = ""
        self._tail = ""
        self._omitted = 0
        self._is_line_open = False
        self.is_interrupted = False

    @property
    def text(self) -> str:
        """What the model gets."""
        between = f"\n[... {plural(self._omitted, 'character')} omitted ...]\n" if self._omitted else ""
        return f"{self._head}{between}{self._tail}"

    def add(self, data: bytes) -> None:
        """Show and keep the next bytes."""
        text = self._decoder.decode(data).replace("\r\n", "\n")
        if not text:
            return
        write_notice("\n".join("\t".join(map(printable, line.split("\t"))) for line in text.split("\n")))
        self._is_line_open = not text.endswith("\n")
        room = HEAD - len(self._head)
        self._head += text[:room]
        rest = self._tail + text[room:]
        self._omitted += max(0, len(rest) - TAIL)
        self._tail = rest[-TAIL:]

    def interrupt(self) -> None:
        """Note that the user ended the command; the terminal has written ^C behind the output."""
        self.is_interrupted = self._is_line_open = True

    def close(self, remark: str) -> None:
        """End the last line, and show how the command ended."""
        if self._is_line_open:
            write_notice("\n")
        if remark:
            write_notice(f"[{remark}]\n")


def _start(command: str, directory: Path | None) -> subprocess.Popen[bytes]:
    shell = os.environ.get("SHELL") or "/bin/sh"
    try:
        return subprocess.Popen([shell, "-c", command], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, cwd=directory)
    except (OSError, ValueError) as error:
        raise HermesError(f"the command cannot be run: {error}") from error


def _read_output(process: subprocess.Popen[bytes], output: Output) -> None:
    assert process.stdout is not None
    pipe = process.stdout.fileno()
    deadline = None
    while deadline is None or time.monotonic() < deadline:
        if select.select([pipe], [], [], _TICK_S)[0]:
            data = os.read(pipe, _CHUNK)
            if not data:
                break
            output.add(data)
        elif deadline is None and process.poll() is not None:
            deadline = time.monotonic() + _LINGER_S
    process.wait()


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a command that Ctrl-C, which it gets too, has not ended."""
    for end in (None, process.terminate, process.kill):
        if end is not None:
            end()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            continue
        return
