"""Editing the current input in the user's own editor."""

from __future__ import annotations

import os
import shlex
import subprocess
import tempfile
from collections.abc import Mapping

from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.document import Document

from hermes.cli.chat.prompt.history import valid_input
from hermes.cli.chat.terminal.output import write_notice
from hermes.cli.display.terminal import printable
from hermes.home import read_plain_file
from hermes.log import warn

FALLBACKS = ("editor", "nano", "vi")
MAX_BYTES = 1024 * 1024


async def edit_in_editor(buffer: Buffer) -> None:
    """Let the user edit the input in their editor; it returns to the prompt and is not sent."""
    edited = await run_in_terminal(lambda: _edit(buffer.text), in_executor=True)
    if edited is not None:
        buffer.document = Document(edited, len(edited))


def editor_commands(environ: Mapping[str, str]) -> list[list[str]]:
    """Return the commands to try: the user's own editor, or else those that most systems have."""
    own = environ.get("VISUAL", "").strip() or environ.get("EDITOR", "").strip()
    if not own:
        return [[name] for name in FALLBACKS]
    try:
        return [shlex.split(own)]
    except ValueError:  # a quote without its end
        return [[own]]


def _edit(text: str) -> str | None:
    """Return the edited text, or None if there is no editor or it failed."""
    file, path = tempfile.mkstemp(prefix="hermes-", suffix=".md")  # 0600
    try:
        with os.fdopen(file, "wb") as draft:
            draft.write(f"{valid_input(text)}\n".encode())  # a text file, to which an editor can append
        return _read(path) if _run_editor(path) else None
    except OSError as error:
        write_notice(f"The text cannot be edited: {error.strerror}\n")
        return None
    finally:
        try:
            os.unlink(path)
        except OSError as error:
            warn(__name__, "%s cannot be deleted: %s", path, error.strerror)


def _run_editor(path: str) -> bool:
    commands = editor_commands(os.environ)
    for command in commands:
        try:
            code = subprocess.call([*command, path])
        except OSError:
            continue  # there is no such program: the next one may be there
        if code:
            write_notice(f"{printable(command[0])} ended with exit code {code}; the text is unchanged.\n")
        return code == 0
    names = ", ".join(printable(command[0]) for command in commands)
    write_notice(f"There is no editor ({names}). Set EDITOR to one.\n")
    return False


def _read(path: str) -> str | None:
    from pathlib import Path

    data = read_plain_file(Path(path))
    if len(data) > MAX_BYTES:
        write_notice("The edited text is longer than 1 MB; it was not taken.\n")
        return None
    return data.decode("utf-8", "replace").replace("\r\n", "\n").removesuffix("\n")
